//! `svc erase`: the personal texts of one action or of one person, gone from the database; records and tree stay.

use std::process::ExitCode;

use serde_json::json;
use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::evidence::erase::Target;
use svc_core::rules::people::by::By;
use svc_core::state::people::Principal;
use svc_http::config::Config;
use svc_store::sqlite::is_log_cut;

use super::output::{Problem, note, print, print_json};
use super::store::{Missing, Use, open};
use super::{Erasure, setup};

/// Erases what was named and says how many rows lost their texts, and whether the database's log is rid of them as well; and of a
/// person who is still a member that name and address stay, which they sign in by. A running server takes it in by itself, the log too.
///
/// # Errors
/// [`Problem`] where there is no workspace, or it has no such action, or the action waits for a person.
pub(crate) fn run(config: &Config, wish: &Erasure) -> Result<ExitCode, Problem> {
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let workspace = setup::made(config, &gate)?;
    let (target, named) = match (wish.action, wish.principal) {
        (Some(id), _) => (Target::Action(id), id.to_string()),
        (None, Some(id)) => (Target::Principal(id), id.to_string()),
        (None, None) => return Err(Problem::plain("nothing was named")),
    };
    let erased = gate.erase(workspace.id, &By::Program, target).map_err(|failure| match &failure {
        Failure::Refused(refusal) if refusal.kind() == Kind::NotFound => {
            Problem::new(format!("this workspace has no {named}"), "Check the id; nothing was erased.")
        }
        Failure::Refused(refusal) if refusal.kind() == Kind::NotAllowed => {
            let why = refusal.reason().unwrap_or("it is in use");
            Problem::new(format!("{named} is not erased: {why}"), "Nothing was erased.")
        }
        _ => failure.into(),
    })?;
    let still_member = match target {
        Target::Principal(id) => {
            Some(gate.read(|scope| Ok(scope.get::<Principal>(id)?.is_some_and(|it| it.membership().is_some())))?)
        }
        Target::Action(_) => None,
    };
    let whole = gate.is_whole(workspace.id)?;
    gate.close();
    drop(gate);
    let log_cut = config.postgres.is_none() && is_log_cut(config.database_directory())?;
    if wish.json {
        let mut told = json!({ "subject": named, "erased": erased, "ledgerWhole": whole, "logCut": log_cut });
        if let (Some(members), Some(still_member)) = (told.as_object_mut(), still_member) {
            members.insert("stillMember".to_owned(), still_member.into());
        }
        print_json(&told)?;
    } else {
        print(&format!("{erased}\n"))?;
        let (rows, their) = if erased == 1 { ("row", "its") } else { ("rows", "their") };
        let of_ledger = if whole {
            "The ledger's records stay, and every proof holds: all of them were checked"
        } else {
            "But the ledger is not what its checkpoint says: take a bundle and see `svc evidence verify`"
        };
        let of_log = if config.postgres.is_some() {
            "the database server holds them in dead rows until it vacuums, and in its log until it recycles that"
        } else if log_cut {
            "the database's log holds none of the texts"
        } else {
            "the database's log may hold the texts until the running server cuts it off, as soon as nothing reads from it"
        };
        note(&format!(
            "{erased} {rows} of {named} lost {their} personal texts. {of_ledger}; {of_log}, and backups made before keep them.\n"
        ));
        if still_member == Some(true) {
            note(&format!("{named} is still a member: name and address stay. Remove them first, then erase again.\n"));
        }
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
