//! The ledger: its records, evidence bundles, proofs and scorecards.

use std::time::Duration;

use svc_core::engine::Failure;
use svc_core::refusal::Refusal;
use svc_core::state::evidence::Entry;
use svc_core::store::{Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::id::{EvidenceId, WorkspaceId};
use svc_core::value::link::Index;
use svc_store::Gate;
use svc_store::evidence::{Bundle, altered};
use tokio::sync::mpsc;

use super::aside::{Asker, Awaited};
use super::reports::zone_of;
use super::{Caller, GateService, log, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::pieces::{self, Piece};
use crate::routes::EvidenceOp;
use crate::shares::Shares;
use crate::wire::evidence;
use crate::wire::page::Query;

/// Records that one part of the list looks at, at most; what is not found among them is looked for from the cursor on.
const LOOKED_MAX: usize = 2_000;
/// Records that are looked at together.
const CHUNK: usize = 128;
/// Pieces of a bundle that wait for a client that reads slowly.
const PIECES_AHEAD: usize = 2;
/// How long a client may read nothing at all of a bundle.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Bundles of one workspace that are written at once.
const OF_ONE_MAX: usize = 4;
/// Bundles that are written at once; each keeps up to 100,000 records' places in memory.
const BUNDLES_MAX: usize = 32;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: EvidenceOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    let asker = Asker::of(&by, workspace);
    match op {
        EvidenceOp::List => {
            let query = Query::among(&call.uri, call.route.query);
            let wish = evidence::Listing::read(query, workspace, &zone_of(service, workspace)?)?;
            let gate = service.gate.clone();
            service.aside.run_awaited(asker, move |awaited| list(&gate, workspace, &wish, awaited)).await
        }
        EvidenceOp::Bundle | EvidenceOp::TokenBundle | EvidenceOp::KeyBundle => bundle(service, workspace, call).await,
        EvidenceOp::Proof | EvidenceOp::TokenProof | EvidenceOp::KeyProof => {
            proof(service, asker, workspace, call).await
        }
        EvidenceOp::Scorecard | EvidenceOp::TokenScorecard => scorecard(service, asker, workspace, call).await,
    }
}

/// A part of the ledger's records, for as long as anybody waits for it.
fn list(gate: &Gate, workspace: WorkspaceId, wish: &evidence::Listing, awaited: &Awaited) -> Result<Answer, Refusal> {
    let (page, mut after) = (&wish.page, wish.page.after);
    let (from, until) = gate.numbers(workspace, wish.from, wish.to).map_err(refusal)?;
    let all = Range { newest_first: true, ..Range::all(Index::LedgerOf, workspace.bits(), CHUNK) };
    let all = Range { from: from.into(), until: until.into(), ..all };
    let (mut data, mut looked) = (Vec::new(), 0);
    loop {
        awaited.go_on()?;
        let chunk = gate.records(&Range { after, ..all.clone() }).map_err(refusal)?;
        for (place, entry) in chunk.iter().enumerate() {
            looked += 1;
            let order: u128 = entry.place.as_ref().map_or(0, |it| it.seq.into());
            let key = Entry::key(entry.id);
            // One that is not there is told, not passed over.
            let missing = after.filter(|(before, _)| *before != order.saturating_add(1));
            if let Some((before, _)) = missing {
                let seq = u64::try_from(before).unwrap_or(u64::MAX).saturating_sub(1);
                return Err(refusal(Failure::Load(altered(workspace, seq))));
            }
            after = Some((order, key));
            if wish.admits(entry) {
                data.push(evidence::write(entry).map_err(|failure| refusal(Failure::Load(failure)))?);
            }
            let more = place + 1 < chunk.len() || chunk.len() == CHUNK;
            if more && (data.len() >= page.limit || looked >= LOOKED_MAX) {
                return Ok(Answer::json(page.list(data, Some(page.cursor(order, key)))?));
            }
        }
        if chunk.len() < CHUNK {
            return Ok(Answer::json(page.list(data, None)?));
        }
    }
}

async fn bundle(service: &GateService, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let (query, zone) = (Query::among(&call.uri, call.route.query), zone_of(service, workspace)?);
    let wanted = evidence::wanted(query, workspace, &zone, service.gate.now())?;
    let place = service.bundles.take(workspace.bits()).ok_or_else(Refusal::not_ready)?;
    let gate = service.gate.clone();
    let begun = crate::at_hand::spawn_blocking(move || gate.bundle(&wanted).map_err(refusal)).await;
    let bundle = begun.map_err(|_| Refusal::internal())??;
    let (send, pieces) = mpsc::channel(PIECES_AHEAD);
    tokio::spawn(async move {
        write(bundle, &send).await;
        drop(place);
    });
    Ok(Answer::stream("application/json", pieces::whole(pieces)))
}

/// Writes a bundle as fast as it is read. Each piece is read on a thread that may wait; nobody's reading is waited for on one, as
/// there are not many of them and all tenants share them. One that is cut has no seal and no last chunk, so nobody takes it for whole.
async fn write(mut bundle: Bundle, to: &mpsc::Sender<Piece>) {
    loop {
        let Ok(Ok(room)) = tokio::time::timeout(STALL_MAX, to.reserve()).await else { return };
        let read = crate::at_hand::spawn_blocking(move || (bundle.next(), bundle)).await;
        let Ok((piece, rest)) = read else { return };
        bundle = rest;
        match piece {
            Some(Ok(piece)) => room.send(Piece::Bytes(piece.into())),
            Some(Err(failure)) => return log(&failure),
            None => return room.send(Piece::End),
        }
    }
}

/// Places for bundles, by workspace.
pub(super) fn places() -> Shares<u128> {
    Shares::new(BUNDLES_MAX, OF_ONE_MAX)
}

async fn proof(service: &GateService, asker: Asker, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let id: EvidenceId = call.param_id("evd")?;
    Query::among(&call.uri, call.route.query).finish()?;
    let gate = service.gate.clone();
    let proved = service.aside.run(asker, move || gate.proof(workspace, id).map_err(refusal)).await?;
    Ok(Answer::json(proved.text()))
}

async fn scorecard(
    service: &GateService,
    asker: Asker,
    workspace: WorkspaceId,
    call: &Call,
) -> Result<Answer, Refusal> {
    let asked = evidence::card(Query::among(&call.uri, call.route.query), workspace, &zone_of(service, workspace)?)?;
    let gate = service.gate.clone();
    let made = move |awaited: &Awaited| gate.scorecard_while(&asked, &|| awaited.go_on()).map_err(refusal);
    let card = service.aside.run_awaited(asker, made).await?;
    Ok(Answer::json(evidence::write_card(&card)?))
}
