//! What a timer does, by the row that it is of.

use std::sync::Arc;

use super::Wake;
use crate::rules::connect::consent;
use crate::rules::connect::register;
use crate::rules::connect::sweep as connections;
use crate::rules::edge::{deliver, integrations, receive};
use crate::rules::evidence::sweep;
use crate::rules::gate::{drill, expire, lapse, lift};
use crate::rules::gateway::{finish, refuse};
use crate::rules::people::{applications, links, sessions, sign_in};
use crate::state::gateway::Call;
use crate::store::Key;
use crate::turn::{Halt, Scope};

/// Runs what the timer of a row is for, and gives the call that has lapsed by it. A row that is gone or has no timer any more needs
/// nothing.
pub(super) fn wake(scope: &mut Scope<'_>, due: &Wake) -> Result<Option<Arc<Call>>, Halt> {
    match due.0 {
        Key::Action(id) => lapse::lapse(scope, id),
        Key::Call(id) => return finish::lapse_call(scope, id),
        Key::RefusalNote(id) => refuse::end_note(scope, id),
        Key::Received(id) => receive::forget(scope, id),
        Key::Job(id) => deliver::bring_forward(scope, id),
        Key::Integration(slot) => integrations::end_secrets(scope, slot),
        Key::Application(id) => applications::expire_application(scope, id),
        Key::Approval(id) => expire::expire(scope, id),
        Key::PendingSignIn(id) => sign_in::expire_pending(scope, id),
        Key::OAuthClient(id) => register::expire_client(scope, id),
        Key::Connection(id) => connections::wake(scope, id),
        Key::Consent(id) => consent::expire_consent(scope, id),
        Key::AuthCode(id) => consent::expire_code(scope, id),
        Key::Session(id) => sessions::expire_session(scope, id),
        Key::SignInLink(id) => links::expire_link(scope, id),
        Key::Drill(id) => drill::expire_drill(scope, id),
        Key::Hold(id) => lift::work_on(scope, id),
        Key::Sweep(id) => sweep::end_sweep(scope, id),
        Key::ClientTally(_)
        | Key::RefreshToken(_)
        | Key::Account(_)
        | Key::Activity(_)
        | Key::Agent(_)
        | Key::Block(_)
        | Key::BillingImport(_)
        | Key::Budget(_)
        | Key::BudgetUse(_)
        | Key::Cell(_)
        | Key::Context(_)
        | Key::Month(_)
        | Key::Yields(_)
        | Key::Task(_)
        | Key::Chain(_)
        | Key::ClientSession(_)
        | Key::Credential(_)
        | Key::Disclosure(_)
        | Key::EmailUse(_)
        | Key::Entry(_)
        | Key::Export(_)
        | Key::Mandate(_)
        | Key::MemberPart(_)
        | Key::Payee(_)
        | Key::Payload(_)
        | Key::Principal(_)
        | Key::Replay(_)
        | Key::Roster(_)
        | Key::Routing(_)
        | Key::ModelListing(_)
        | Key::UpstreamKey(_)
        | Key::McpServers(_)
        | Key::McpSecret(_)
        | Key::McpTools(_)
        | Key::BoundKeys(_)
        | Key::ServiceToken(_)
        | Key::SigningKey(_)
        | Key::TokenUse(_)
        | Key::Team(_)
        | Key::Tally(_)
        | Key::Tile(_)
        | Key::Topic(_)
        | Key::TokenName(_)
        | Key::WorkspaceTemplate(_)
        | Key::SsoLink(_)
        | Key::Workspace(_) => Ok(()),
    }?;
    Ok(None)
}
