//! Evidence as a gate gives it: the ledger's signed checkpoint, proofs of records, and bundles written as they are read.
//!
//! **Invariant:** whatever the ledger's length, a bundle holds a page of rows and a few dozen bytes a record in memory; every
//! signature is made here, on the thread that asks, never on a lane.

mod wanted;

use std::sync::Arc;

use svc_core::engine::Failure;
use svc_core::refusal::Refusal;
use svc_core::rules::evidence::proof::{self, Proof};
use svc_core::state::evidence::bundle::{
    BundleKey, Disclosed, Head, Range as Stretch, foot_text, path_text, receipt_text, seal_text,
};
use svc_core::state::evidence::merkle::leaf_hash;
use svc_core::state::evidence::note::Checkpoint;
use svc_core::state::evidence::{Chain, Disclosure, Entry};
use svc_core::state::gate::receipt::{Claims, PublicKey, Signer, write};
use svc_core::state::gate::{Action, Agent, Payload, commitment, commitment_salt};
use svc_core::state::people::{Purpose, SigningKey};
use svc_core::store::{Key, Listed, Range, Row};
use svc_core::value::canonical::{Object, text};
use svc_core::value::digest::{Digest, Hasher};
use svc_core::value::id::{ActionId, AgentId, EvidenceId, ReceiptId, WorkspaceId};
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Span, Timestamp};

pub use self::wanted::Wanted;
use self::wanted::cursor_of;
use crate::error::StoreError;
use crate::gate::Gate;
pub use crate::read_back::altered;
use crate::scans::scan_each;
pub use crate::scorecard::{Card, GoOn, Tallied};

/// Records that are read at once.
pub(crate) const PAGE: usize = 128;
/// More than a record's instant may be behind that of one that was placed before it: servers whose clocks are more than a few
/// seconds off are not ready.
const CLOCKS_APART_MAX: Span = Span::seconds(30);

pub(crate) type Failed = Failure<StoreError>;

/// A record with its place in the signed tree.
#[derive(Clone, Debug)]
pub struct Proved {
    /// The record.
    pub entry: Arc<Entry>,
    /// Where it stands.
    pub seq: u64,
    /// The tree's size.
    pub size: u64,
    /// The leaf's hash.
    pub leaf: Digest,
    /// The hashes beside the way up, nearest the leaf first.
    pub path: Vec<Digest>,
    /// The signed checkpoint.
    pub checkpoint: String,
}

impl Proved {
    /// The answer `{record, leafIndex, treeSize, leafHash, path, checkpoint}`.
    #[must_use]
    pub fn text(&self) -> String {
        let path: Vec<String> = self.path.iter().map(|it| format!("\"{it}\"")).collect();
        Object::new()
            .raw("record", &self.entry.record_text().unwrap_or_else(|| "null".to_owned()))
            .raw("leafIndex", &self.seq.to_string())
            .raw("treeSize", &self.size.to_string())
            .text("leafHash", &self.leaf.to_string())
            .raw("path", &format!("[{}]", path.join(",")))
            .text("checkpoint", &self.checkpoint)
            .finish()
    }
}

/// What a ledger is called in checkpoints: the base address without its scheme, a slash, the workspace.
#[must_use]
pub fn origin(issuer: &str, workspace: WorkspaceId) -> String {
    let bare = issuer.split_once("://").map_or(issuer, |(_, rest)| rest);
    format!("{}/{workspace}", bare.trim_end_matches('/'))
}

impl Gate {
    /// The record with this id and what shows that it stands in the ledger. One that waits for its place is given it first.
    ///
    /// # Errors
    /// `not_found` where the workspace has no such record; the store does not answer, or this gate has no checkpoint key.
    pub fn proof(&self, workspace: WorkspaceId, id: EvidenceId) -> Result<Proved, Failed> {
        let look = || self.read(|scope| proof::prove(scope, workspace, id));
        let mut found: Proof = look()?;
        if found.placed.is_none() {
            self.place(workspace)?;
            found = look()?;
        }
        let Proof { entry, placed: Some(path) } = found else { return Err(refused(Refusal::not_ready())) };
        let Some((seq, hash)) = entry.place.as_ref().map(|it| (it.seq, it.hash)) else {
            return Err(refused(Refusal::not_ready()));
        };
        let leaf = leaf_hash(hash.as_bytes());
        let checkpoint = self.signed(workspace, path.size, path.root)?;
        Ok(Proved { entry, seq, size: path.size, leaf, path: path.hashes, checkpoint })
    }

    /// That an agent that is asked about is one of the workspace: of another's there is nothing to tell, and nothing to sign.
    pub(crate) fn names_own(&self, workspace: WorkspaceId, agent: Option<AgentId>) -> Result<(), Failed> {
        let Some(id) = agent else { return Ok(()) };
        let found = self.read(|scope| Ok(scope.get::<Agent>(id)?.filter(|it| it.workspace == workspace)))?;
        found.map(drop).ok_or_else(|| refused(Refusal::not_found()))
    }

    /// The ledger's signed checkpoint as it stands.
    ///
    /// # Errors
    /// `not_found` where there is no such workspace; as [`proof`](Self::proof).
    pub fn checkpoint(&self, workspace: WorkspaceId) -> Result<String, Failed> {
        let chain = self.read(|scope| proof::chain(scope, workspace))?;
        self.signed(workspace, chain.size, chain.root())
    }

    /// A bundle, piece by piece. What can be refused is refused before the first one.
    ///
    /// # Errors
    /// `invalid_request` for a `since` that is no size of a checkpoint, `not_found` for an agent of another workspace; as
    /// [`proof`](Self::proof).
    pub fn bundle(&self, wanted: &Wanted) -> Result<Bundle, Failed> {
        self.place(wanted.workspace)?;
        self.names_own(wanted.workspace, wanted.agent)?;
        let chain = self.read(|scope| proof::chain(scope, wanted.workspace))?;
        let previous = match wanted.since {
            Some(old) => Some((old, self.read(|scope| proof::continues(scope, &chain, old))?)),
            None => None,
        };
        let (from, end) = self.stretch(wanted, &chain)?;
        let to = end.min(from.saturating_add(self.bundle_max()));
        let range = Stretch { from, to, complete: wanted.agent.is_none() };
        // Signed by none but keys as they are listed, whatever another process has made of them just now.
        self.signer().renew(self.signing_keys()?);
        let ring = self.ring()?;
        let keys: Vec<BundleKey> = ring.iter().filter_map(BundleKey::of).collect();
        let (sealer, key) = self.checkpoint_key(&ring)?;
        let signed = |size, root| self.signed_by(wanted.workspace, size, root, &key, &*sealer);
        let checkpoint = signed(chain.size, chain.root())?;
        let previous = match previous {
            Some((size, (root, proof))) => Some((signed(size, root)?, proof)),
            None => None,
        };
        let head = Head {
            workspace: wanted.workspace,
            origin: &origin(self.signer().issuer(), wanted.workspace),
            range,
            keys: &keys,
            checkpoint: &checkpoint,
            previous: previous.as_ref().map(|(note, proof)| (note.as_str(), proof.as_slice())),
        };
        let cursor = (to < end).then(|| cursor_of(wanted, to, Some(chain.size)));
        Ok(Bundle {
            gate: self.clone(),
            wanted: *wanted,
            chain,
            range,
            cursor,
            held: Vec::new(),
            hash: Hasher::default(),
            step: Step::Head(head.text()),
            first: true,
            sealer,
            ring,
        })
    }

    /// Which records: their numbers from the first to behind the last.
    fn stretch(&self, wanted: &Wanted, chain: &Chain) -> Result<(u64, u64), Failed> {
        let end = match wanted.to {
            Some(at) => self.first_at(chain, at)?,
            None => chain.size,
        };
        let from = match (wanted.start, wanted.since) {
            (Some(start), _) => start,
            (None, Some(since)) => since,
            (None, None) => self.first_at(chain, wanted.from)?,
        };
        Ok((from.min(chain.size), end.max(from.min(chain.size))))
    }

    /// The numbers of a workspace's records from the first of the instant `from` up to, not including, the first of `to`; nothing
    /// said is no bound.
    ///
    /// # Errors
    /// `not_found` where there is no such workspace, and what reading says.
    pub fn numbers(
        &self,
        workspace: WorkspaceId,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Result<(u64, u64), Failed> {
        if from.is_none() && to.is_none() {
            return Ok((0, u64::MAX));
        }
        let chain = self.read(|scope| proof::chain(scope, workspace))?;
        let from = from.map_or(Ok(0), |at| self.first_at(&chain, at))?;
        let to = to.map_or(Ok(u64::MAX), |at| self.first_at(&chain, at))?;
        Ok((from, to))
    }

    /// The number of the first record that is not before `at`, however many there are by now: what one range ends at, the next one
    /// begins with.
    pub(crate) fn first_at(&self, chain: &Chain, at: Timestamp) -> Result<u64, Failed> {
        // By halves it is found where the order is that of time, and from there on record by record.
        let mut next = self.near(chain, at.minus(CLOCKS_APART_MAX))?;
        loop {
            let page = self.page(chain.workspace, next, chain.size, PAGE)?;
            let before = page.iter().take_while(|it| it.at < at).count();
            next = next.saturating_add(before.try_into().unwrap_or(u64::MAX));
            if before < page.len() || page.is_empty() {
                return Ok(next);
            }
        }
    }

    /// The number of a record that is not before `at`, where the one ahead of it is: the ledger's order is that of time, as far as
    /// clocks agree.
    fn near(&self, chain: &Chain, at: Timestamp) -> Result<u64, Failed> {
        let (mut low, mut high) = (0, chain.size);
        while low < high {
            let middle = low.midpoint(high);
            let before = self.page(chain.workspace, middle, high, 1)?.first().is_some_and(|it| it.at < at);
            if before { low = middle.saturating_add(1) } else { high = middle }
        }
        Ok(low)
    }

    /// Placed records from `from` on.
    pub(crate) fn page(
        &self,
        workspace: WorkspaceId,
        from: u64,
        to: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Entry>>, Failed> {
        let all = Range::all(Index::LedgerOf, workspace.bits(), limit);
        self.records(&Range { from: from.into(), until: to.into(), ..all })
    }

    /// The placed records that [`Index::LedgerOf`] has in a range, from one moment. Whoever is given them passes over none: where one
    /// cannot be read, or what is found is none, there are none, and the failure names it.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn records(&self, range: &Range) -> Result<Vec<Arc<Entry>>, Failed> {
        let record = |it: Listed<StoreError>| match (it.key, it.row) {
            (Key::Entry(record), Err(error)) => Err(error.of_record(record)),
            (_, Err(error)) => Err(error),
            (_, Ok(row)) => row.record.as_ref().and_then(Entry::peel).cloned().ok_or(NO_RECORD),
        };
        scan_each(self.core(), range)?.into_iter().map(|it| record(it).map_err(Failure::Load)).collect()
    }

    /// A checkpoint as a note by the key whose turn it is.
    fn signed(&self, workspace: WorkspaceId, size: u64, root: Digest) -> Result<String, Failed> {
        let (signer, key) = self.checkpoint_key(&self.ring()?)?;
        self.signed_by(workspace, size, root, &key, &*signer)
    }

    fn signed_by(
        &self,
        workspace: WorkspaceId,
        size: u64,
        root: Digest,
        key: &PublicKey,
        signer: &dyn Signer,
    ) -> Result<String, Failed> {
        let checkpoint = Checkpoint { origin: origin(self.signer().issuer(), workspace).into(), size, root };
        checkpoint.sign(key, signer).ok_or(Failure::Load(StoreError::Malformed("the base address names no ledger")))
    }

    fn ring(&self) -> Result<Arc<[SigningKey]>, Failed> {
        self.signer().ring().ok_or(Failure::Load(NO_KEY))
    }

    fn checkpoint_key(&self, ring: &[SigningKey]) -> Result<(Arc<dyn Signer>, PublicKey), Failed> {
        let missing = || Failure::Load(NO_KEY);
        let signer = self.signer().of(Purpose::Checkpoint, self.now()).ok_or_else(missing)?;
        let mut keys = ring.iter().filter_map(|row| PublicKey::of(row).ok());
        let key = keys.rfind(|key| key.kid() == signer.kid()).ok_or_else(missing)?;
        Ok((signer, key))
    }
}

const NO_RECORD: StoreError = StoreError::row("as something stands in a ledger that is no record");
const NO_KEY: StoreError = StoreError::Malformed("this gate has no checkpoint key");

pub(crate) fn refused(refusal: Refusal) -> Failed {
    Failure::Refused(refusal)
}

/// A bundle that is being written: an iterator over its text.
pub struct Bundle {
    gate: Gate,
    wanted: Wanted,
    chain: Arc<Chain>,
    pub(crate) range: Stretch,
    pub(crate) cursor: Option<String>,
    /// What later members need of the records: a few dozen bytes each.
    held: Vec<Kept>,
    hash: Hasher,
    step: Step,
    first: bool,
    /// Who signed the checkpoint, and seals.
    sealer: Arc<dyn Signer>,
    /// The keys as the head lists them.
    ring: Arc<[SigningKey]>,
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Bundle").field("wanted", &self.wanted).field("range", &self.range).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
struct Kept {
    seq: u64,
    id: EvidenceId,
    /// The action whose receipt the record allowed.
    receipt: Option<ActionId>,
    /// The action that the record tells of, where it commits to something.
    commits: Option<Option<ActionId>>,
}

enum Step {
    Head(String),
    Records(u64),
    Disclosures(usize),
    Proofs(usize),
    Receipts(usize),
    Foot,
    Done,
}

impl Iterator for Bundle {
    type Item = Result<Vec<u8>, Failed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut out = String::new();
            match self.step(&mut out) {
                Ok(true) if out.is_empty() => {}
                Ok(true) => {
                    self.hash.update(out.as_bytes());
                    return Some(Ok(out.into_bytes()));
                }
                Ok(false) => return None,
                Err(failure) => {
                    self.step = Step::Done;
                    return Some(Err(failure));
                }
            }
        }
    }
}

impl Bundle {
    /// Which records it holds.
    #[must_use]
    pub const fn range(&self) -> Stretch {
        self.range
    }

    fn step(&mut self, out: &mut String) -> Result<bool, Failed> {
        self.step = match std::mem::replace(&mut self.step, Step::Done) {
            Step::Head(head) => {
                out.push_str(&head);
                Step::Records(self.range.from)
            }
            Step::Records(from) => self.records(out, from)?,
            Step::Disclosures(from) => self.disclosures(out, from)?,
            Step::Proofs(from) => self.proofs(out, from)?,
            Step::Receipts(from) => self.receipts(out, from)?,
            Step::Foot => {
                out.push_str(&foot_text(self.cursor.as_deref()));
                self.hash.update(out.as_bytes());
                self.are_keys_as_listed()?;
                out.push_str(&seal_text(&self.hash.digest(), &*self.sealer));
                Step::Done
            }
            Step::Done => return Ok(false),
        };
        Ok(true)
    }

    /// That the keys which sign in a bundle are still those that the head lists: with others, what is signed from here on would be by one
    /// that is not there, or is not to be trusted any more, and a genuine bundle would read as tampered with. It is to be asked for again.
    fn are_keys_as_listed(&self) -> Result<(), Failed> {
        let ring = self.gate.ring()?;
        let signs = |row: &&SigningKey| match row.id.purpose {
            Purpose::Receipt | Purpose::Checkpoint => true,
            Purpose::Scorecard => false,
        };
        if ring.iter().filter(signs).eq(self.ring.iter().filter(signs)) {
            return Ok(());
        }
        for changed in ring.iter().filter(signs).filter(|it| !self.ring.contains(it)) {
            let key = format!("{} {}", changed.id.purpose.as_str(), changed.id.generation);
            tracing::warn!(workspace = %self.wanted.workspace, key, "a rotated key cuts an evidence bundle: it is to be fetched again");
        }
        Err(Failure::Contended)
    }

    fn push(&mut self, out: &mut String, item: &str) {
        if !std::mem::take(&mut self.first) {
            out.push(',');
        }
        out.push_str(item);
    }

    fn open(&mut self, out: &mut String, name: &str) {
        out.push_str(&format!("],{}:[", text(name)));
        self.first = true;
    }

    fn records(&mut self, out: &mut String, from: u64) -> Result<Step, Failed> {
        let page = self.gate.page(self.wanted.workspace, from, self.range.to, PAGE)?;
        if page.is_empty() && from >= self.range.to {
            let step = if self.wanted.redact { "inclusionProofs" } else { "disclosures" };
            self.open(out, step);
            return Ok(if self.wanted.redact { Step::Proofs(0) } else { Step::Disclosures(0) });
        }
        // One that is not there, or cannot be shown, cuts the bundle: with a hole in it nobody would know what it does not say.
        let workspace = self.wanted.workspace;
        let missing = |seq| Failure::Load(altered(workspace, seq));
        if page.is_empty() {
            return Err(missing(from));
        }
        let mut next = from;
        for entry in &page {
            let place = entry.place.as_ref().filter(|it| it.seq == next).ok_or_else(|| missing(next))?;
            next = next.saturating_add(1);
            if self.wanted.agent.is_some_and(|agent| !concerns(entry, agent)) {
                continue;
            }
            let record = entry.record_text().ok_or_else(|| missing(place.seq))?;
            let action = ActionId::parse(&entry.subject).ok();
            let receipt = action.filter(|_| entry.data.contains("\"receiptId\":") && allows(entry));
            let commits = entry.data.contains("{\"commit\":").then_some(action);
            self.held.push(Kept { seq: place.seq, id: entry.id, receipt, commits });
            self.push(out, &record);
        }
        Ok(Step::Records(next))
    }

    fn disclosures(&mut self, out: &mut String, from: usize) -> Result<Step, Failed> {
        let page: Vec<Kept> = self.held.iter().skip(from).take(PAGE).copied().collect();
        if page.is_empty() {
            self.open(out, "inclusionProofs");
            return Ok(Step::Proofs(0));
        }
        for kept in &page {
            let Some(action) = kept.commits else { continue };
            for shown in self.shown(kept, action)? {
                self.push(out, &shown.text());
            }
        }
        Ok(Step::Disclosures(from.saturating_add(page.len())))
    }

    /// What a record commits to, as far as it was not erased: from the row beside it, or from the action's own rows.
    fn shown(&self, kept: &Kept, action: Option<ActionId>) -> Result<Vec<Disclosed>, Failed> {
        let disclosed = |path: &str, salt, text: &str| Disclosed {
            seq: kept.seq,
            path: format!("data.{path}"),
            salt,
            text: text.to_owned(),
        };
        self.gate.read(|scope| {
            let mut keys = vec![Disclosure::key(kept.id)];
            keys.extend(action.iter().flat_map(|it| [Action::key(*it), Payload::key(*it)]));
            keys.push(Entry::key(kept.id));
            scope.want(&keys)?;
            let mut out = Vec::new();
            if let Some(row) = scope.get::<Disclosure>(kept.id)? {
                out.extend(row.texts.iter().map(|(path, text)| disclosed(path, row.salt_of(path), text)));
            }
            let (Some(action), Some(entry)) = (action, scope.get::<Entry>(kept.id)?) else { return Ok(out) };
            let payload = scope.get::<Payload>(action)?;
            if let Some(row) = scope.get::<Action>(action)? {
                for (member, text) in row.committed_texts(payload.as_deref()) {
                    // An erased action commits to nothing it could still show.
                    let made = commitment(&row.salt, member, &text);
                    if entry.data.contains(&format!("\"{member}\":{made}")) {
                        out.push(disclosed(member, commitment_salt(&row.salt, member), &text));
                    }
                }
            }
            Ok(out)
        })
    }

    /// Of a whole stretch the first and the last record are proved, since the chain binds those between; of a choice each.
    fn proofs(&mut self, out: &mut String, from: usize) -> Result<Step, Failed> {
        let all = self.held.len();
        let ends = |at: usize| !self.range.complete || at == 0 || at.saturating_add(1) == all;
        let page: Vec<u64> =
            self.held.iter().enumerate().skip(from).take(PAGE).filter(|it| ends(it.0)).map(|it| it.1.seq).collect();
        for seq in page {
            let path = self.gate.read(|scope| proof::path(scope, &self.chain, seq))?;
            self.push(out, &path_text(seq, &path.hashes));
        }
        let next = from.saturating_add(PAGE);
        if next < all {
            return Ok(Step::Proofs(next));
        }
        if self.wanted.redact {
            out.push(']');
            return Ok(Step::Foot);
        }
        self.open(out, "receipts");
        Ok(Step::Receipts(0))
    }

    /// The receipts of what was allowed, but for those that could be used yet: whoever reads the ledger could use them up, or show
    /// them instead of the agent.
    fn receipts(&mut self, out: &mut String, from: usize) -> Result<Step, Failed> {
        let page: Vec<ActionId> = self.held.iter().skip(from).take(PAGE).filter_map(|it| it.receipt).collect();
        let keys: Vec<Key> = page.iter().map(|id| Action::key(*id)).collect();
        let rows = self.gate.read(|scope| {
            scope.want(&keys)?;
            page.iter().map(|id| scope.get::<Action>(*id)).collect::<Result<Vec<_>, _>>()
        })?;
        let now = self.gate.now();
        self.are_keys_as_listed()?;
        for action in rows.into_iter().flatten() {
            let Some(allowed) = action.allowed().filter(|_| !action.erased) else { continue };
            let is_over = allowed.consumed.is_some() || allowed.revoked.is_some() || allowed.receipt_expires_at <= now;
            if !is_over {
                continue;
            }
            let signer = self.gate.signer();
            let receipt = write(&Claims::of(&action, allowed, signer.issuer()), &**signer);
            self.push(out, &receipt_text(&ReceiptId::from(action.id).to_string(), &receipt));
        }
        let next = from.saturating_add(PAGE);
        if next < self.held.len() {
            return Ok(Step::Receipts(next));
        }
        out.push(']');
        Ok(Step::Foot)
    }
}

/// Whether a record tells of an agent.
fn concerns(entry: &Entry, agent: AgentId) -> bool {
    let id = agent.to_string();
    *entry.subject == *id
        || entry.actor.contains(&format!("\"id\":\"{id}\""))
        || entry.data.contains(&format!("\"agentId\":\"{id}\""))
}

/// Whether a record is the one that allowed its action, and so issued its receipt.
fn allows(entry: &Entry) -> bool {
    &*entry.kind == "action.allowed"
        || (&*entry.kind == "action.approved" && entry.data.contains("\"decision\":\"allow\""))
}
