//! A card issuer's requests (CONTRACT part 6): whether a charge is covered, what it came to, that it was taken back.

use http::HeaderName;
use svc_core::refusal::Refusal;
use svc_core::rules::edge::charge::{ChargeAsked, Cover};
use svc_core::rules::edge::receive::{Deed, Event, EventName};
use svc_core::state::edge::IntegrationKind;
use svc_core::state::gate::{Action, OPEN_MAX, OutcomeStatus};
use svc_core::store::{Range, Row as _};
use svc_core::value::id::{ActionId, AgentId, WorkspaceId, ulid_bits};
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Timestamp};
use svc_store::Gate;

use super::{Claimed, GateService};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::ops::refusal;
use crate::wire::issuer::{self as wire, ChargeWish, IssuerDeed, Named};

pub(super) const SVC_SIGNATURE: HeaderName = HeaderName::from_static("svc-signature");
/// Rows that one look at an agent's actions takes, and how often it is looked: an issuer waits two seconds.
const LOOK: usize = 500;
const LOOKS_MAX: usize = 20;
/// Actions that a charge is tried on.
const FOUND_MAX: usize = 16;

pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let from = Claimed::of(service, call, IntegrationKind::Issuer)?.stamped(service, call, &SVC_SIGNATURE)?;
    from.count(service)?;
    let asked = wire::read(&call.body)?;
    let (workspace, id) = (from.integration.slot.workspace, from.event(&asked.id, &asked.deed.says()));
    let (name, deed) = match asked.deed {
        IssuerDeed::Request(it) => {
            (EventName::Known("authorization.request"), Deed::Charge(covered(service, workspace, it).await?))
        }
        IssuerDeed::Settled(action, amount) => {
            (EventName::Known("authorization.settled"), Deed::Settle { action, amount })
        }
        IssuerDeed::Reversed(action) => (EventName::Known("authorization.reversed"), Deed::Reverse { action }),
        IssuerDeed::Other(name) => (EventName::Other(name), Deed::Nothing),
    };
    let event = Event { name, id: Some(id), deed };
    wire::write(&from.take(service, event).await?).map(Answer::json)
}

/// The charge with the actions that could cover it: the one that is named, or those of the agent that fit as far as their rows
/// tell. The gate looks at each again.
pub(super) async fn covered(
    service: &GateService,
    workspace: WorkspaceId,
    wish: ChargeWish,
) -> Result<ChargeAsked, Refusal> {
    let by = match wish.named {
        Named::Action(id) => Cover::Action(id),
        Named::Agent(agent) => {
            // Not on a thread that serves others, and in nobody's turn: an issuer does not wait.
            let (gate, wish) = (service.gate.clone(), wish.clone());
            let found = crate::at_hand::spawn_blocking(move || open(&gate, workspace, agent, &wish)).await;
            Cover::Agent { agent, found: found.map_err(|_| Refusal::internal())?? }
        }
    };
    Ok(ChargeAsked { by, amount: wish.amount, currency: wish.currency, merchant: wish.merchant })
}

/// Actions of an agent whose receipts could still be used for a charge, the newest first.
fn open(gate: &Gate, workspace: WorkspaceId, agent: AgentId, wish: &ChargeWish) -> Result<Vec<ActionId>, Refusal> {
    let now = gate.now();
    let fits = |it: &Action| it.workspace == workspace && now < until(it) && suits(it, wish);
    let all = Range::all(Index::ActionsOf, agent.bits(), LOOK);
    let mut range = Range { from: ulid_bits(now.minus(OPEN_MAX), 0), newest_first: true, ..all };
    let mut found = Vec::new();
    for _ in 0..LOOKS_MAX {
        let rows = gate.scan(&range).map_err(refusal)?;
        let actions = rows.iter().filter_map(|it| it.row.record.as_ref().and_then(Action::peel));
        found.extend(actions.filter(|it| fits(it)).map(|it| it.id));
        if found.len() >= FOUND_MAX || !range.turn_page(&rows) {
            break;
        }
    }
    found.truncate(FOUND_MAX);
    Ok(found)
}

/// Until when an action's receipt can be used, as far as its row tells; of one that cannot be used the beginning of time.
fn until(action: &Action) -> Timestamp {
    let unused = action.allowed().filter(|it| it.consumed.is_none() && it.revoked.is_none());
    let open = unused.filter(|it| it.outcome.as_ref().is_none_or(|said| said.status == OutcomeStatus::Completed));
    open.map(|it| it.receipt_expires_at).unwrap_or_default()
}

fn suits(action: &Action, wish: &ChargeWish) -> bool {
    let settled = action.allowed().and_then(|it| it.outcome.as_ref()).and_then(|it| it.amount);
    action.payment.as_ref().is_some_and(|payment| {
        let merchant = wish.merchant.as_ref().is_none_or(|it| it.is_within(&payment.domain));
        let most = settled.unwrap_or(payment.amount);
        payment.currency == wish.currency && most >= wish.amount.minor() && merchant
    })
}
