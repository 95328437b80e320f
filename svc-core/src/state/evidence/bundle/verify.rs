//! Checks a bundle as it comes in, holding little more than a few dozen bytes a record.
//!
//! **Invariant:** what is not shown is said; a bundle that leaves records out is never called whole.

mod shown;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::pieces::{NotABundle, Piece, Pieces};
use super::replay::Replay;
use super::signers::Signers;
use super::{BundleKey, Disclosed, FORMAT, MEMBERS, OPTIONAL, Range, sealed_text};
use crate::state::evidence::merkle::{leaf_hash, verify_consistency, verify_inclusion};
use crate::state::evidence::note::Checkpoint;
use crate::state::gate::receipt::{PublicKey, parse};
use crate::state::people::Purpose;
use crate::value::Timestamp;
use crate::value::canonical::{Object, canonical, canonical_without, text};
use crate::value::digest::Digest;
use crate::value::id::WorkspaceId;
use crate::value::json::Json;

/// What a bundle comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything in it fits, and nothing between its ends is missing; whether these are the ledger's, [`Report::shows_all`] says.
    Whole,
    /// Something does not fit.
    Tampered,
    /// What is there fits, but records were left out, or the proof of one is missing.
    Incomplete,
    /// It is no bundle.
    Malformed,
}

/// The first thing that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How bad it is: never [`Verdict::Whole`].
    pub verdict: Verdict,
    /// The record's number, where it is a record's.
    pub seq: Option<u64>,
    /// The record's id.
    pub record: Option<String>,
    /// What is wrong.
    pub what: String,
}

impl Fault {
    fn new(verdict: Verdict, what: impl Into<String>) -> Self {
        Self { verdict, seq: None, record: None, what: what.into() }
    }
}

impl From<NotABundle> for Fault {
    fn from(not: NotABundle) -> Self {
        Self::new(Verdict::Malformed, format!("it {}", not.0))
    }
}

fn tampered(what: impl Into<String>) -> Fault {
    Fault::new(Verdict::Tampered, what)
}

fn malformed(member: &str) -> Fault {
    Fault::new(Verdict::Malformed, format!("`{member}` is not as a bundle has it"))
}

/// What was checked, and what it comes to.
#[must_use = "a bundle may be no good"]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// What it comes to.
    pub verdict: Verdict,
    /// The first thing that does not fit, or that is missing.
    pub fault: Option<Fault>,
    /// Whose ledger.
    pub workspace: Option<WorkspaceId>,
    /// The signed checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// The earlier checkpoint that it was shown to continue, where the bundle has one. Whoever wrote the bundle has written it too: it
    /// shows nothing unless it is the one that the reader holds ([`against`](Self::against)).
    pub previous: Option<Checkpoint>,
    /// Which records.
    pub range: Option<Range>,
    /// How many records were read.
    pub records: u64,
    /// How many personal texts were shown to be what records commit to.
    pub disclosed: u64,
    /// How many receipts were checked.
    pub receipts: u64,
    /// The ids of the keys that signed what was checked, each with what it is for.
    pub signed_by: BTreeSet<(&'static str, String)>,
    /// What those keys were held against: by themselves they are whoever's the bundle is.
    pub signers: Signers,
    /// The keys that it lists.
    pub keys: Vec<BundleKey>,
    /// What these bytes cannot show.
    pub not_proven: Vec<String>,
}

/// Reads a bundle; see the module.
#[derive(Debug)]
pub struct Verifier {
    pieces: Option<Pieces>,
    state: Checked,
    fault: Option<Fault>,
}

impl Default for Verifier {
    fn default() -> Self {
        Self { pieces: Some(Pieces::new()), state: Checked::default(), fault: None }
    }
}

impl Verifier {
    /// Takes the next bytes; gives whether more of them can change anything.
    pub fn feed(&mut self, bytes: &[u8]) -> bool {
        if self.fault.is_none()
            && let Some(pieces) = &mut self.pieces
        {
            self.fault = pieces.feed(bytes, |pieces, piece| self.state.take(pieces, piece)).err();
        }
        self.fault.is_none()
    }

    /// How many records were read so far.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.state.records
    }

    /// What the bytes come to, now that there are no more.
    pub fn finish(self) -> Report {
        let done = self.pieces.is_some_and(|it| it.is_done());
        let early = || (!done).then(|| Fault::new(Verdict::Malformed, "it ends before its end"));
        let fault = self.fault.or_else(early).or_else(|| self.state.end().err());
        let state = self.state;
        Report {
            verdict: fault.as_ref().map_or(Verdict::Whole, |it| it.verdict),
            not_proven: state.not_proven(),
            fault,
            workspace: state.workspace,
            checkpoint: state.checkpoint,
            previous: state.previous,
            range: state.range,
            records: state.records,
            disclosed: state.disclosed,
            receipts: state.receipts,
            signed_by: state.signed_by,
            signers: Signers::default(),
            keys: state.keys,
        }
    }
}

/// What is known so far.
#[derive(Debug, Default)]
struct Checked {
    member: usize,
    seen: BTreeSet<&'static str>,
    workspace: Option<WorkspaceId>,
    origin: String,
    range: Option<Range>,
    keys: Vec<BundleKey>,
    checkpoint: Option<Checkpoint>,
    previous: Option<Checkpoint>,
    consistency: Vec<Digest>,
    records: u64,
    next: u64,
    prev: Option<Digest>,
    hashes: BTreeMap<u64, Digest>,
    last: Option<(u64, Digest)>,
    latest: Option<Timestamp>,
    commitments: BTreeSet<u128>,
    committed: u64,
    disclosed: u64,
    proved: BTreeSet<u64>,
    receipts: u64,
    signed_by: BTreeSet<(&'static str, String)>,
    truncated: Option<bool>,
    replay: Replay,
}

impl Checked {
    fn take(&mut self, pieces: &Pieces, piece: Piece<'_>) -> Result<(), Fault> {
        let (name, raw) = match piece {
            Piece::Member(name) => return self.begin(name),
            Piece::Value(name, raw) => (name, raw),
        };
        let json = Json::parse(raw).map_err(|_| malformed(name))?;
        let raw = std::str::from_utf8(raw).map_err(|_| malformed(name))?;
        // A text has one writing; a record and everything else is compared with its own below.
        if json.as_str().is_some_and(|it| text(it) != raw) {
            return Err(malformed(name));
        }
        match name {
            "format" if json.as_str() == Some(FORMAT) => Ok(()),
            "workspaceId" => self.set_workspace(&json),
            "origin" => self.set_origin(&json),
            "range" => self.set_range(&json, raw),
            "keys" => self.add_key(&json, raw),
            "checkpoint" => self.set_checkpoint(&json),
            "previous" => self.set_previous(&json),
            "consistency" => hash_of(&json).map(|it| self.consistency.push(it)).ok_or_else(|| malformed(name)),
            "records" => self.record(&json, raw),
            "disclosures" => self.disclosure(&json, raw),
            "inclusionProofs" => self.proof(&json, raw),
            "receipts" => self.receipt(&json, raw),
            "truncated" => json.as_bool().map(|it| self.truncated = Some(it)).ok_or_else(|| malformed(name)),
            "nextCursor" if json.as_str().is_some() && self.truncated == Some(true) => Ok(()),
            "seal" => self.seal(&json, raw, &pieces.digest()),
            _ => Err(malformed(name)),
        }
    }

    /// A member begins: it has to be a known one, behind those before it, and none may have been left out.
    fn begin(&mut self, name: &str) -> Result<(), Fault> {
        let rest = MEMBERS.get(self.member..).unwrap_or_default();
        let place = rest.iter().position(|it| *it == name).ok_or_else(|| malformed(name))?;
        let (skipped, found) = (rest.get(..place).unwrap_or_default(), rest.get(place));
        if let Some(missing) = skipped.iter().find(|it| !OPTIONAL.contains(it)) {
            return Err(malformed(missing));
        }
        self.seen.extend(found);
        self.member = self.member.saturating_add(place).saturating_add(1);
        if name == "records" {
            self.before_records()?;
        }
        Ok(())
    }

    fn set_workspace(&mut self, json: &Json) -> Result<(), Fault> {
        let id = json.as_str().and_then(|it| WorkspaceId::parse(it).ok());
        self.workspace = Some(id.ok_or_else(|| malformed("workspaceId"))?);
        Ok(())
    }

    fn set_origin(&mut self, json: &Json) -> Result<(), Fault> {
        let origin = json.as_str().ok_or_else(|| malformed("origin"))?;
        let own = self.workspace.is_some_and(|id| origin.strip_suffix(&format!("/{id}")).is_some());
        self.origin = origin.to_owned();
        if own { Ok(()) } else { Err(tampered("the origin is another ledger's")) }
    }

    fn set_range(&mut self, json: &Json, raw: &str) -> Result<(), Fault> {
        let range = Range::read(json).filter(|it| it.text() == raw && it.from <= it.to);
        let range = range.ok_or_else(|| malformed("range"))?;
        self.next = range.from;
        self.replay.strict = range.complete && range.from == 0;
        self.range = Some(range);
        Ok(())
    }

    fn add_key(&mut self, json: &Json, raw: &str) -> Result<(), Fault> {
        let kid = json.get("kid").and_then(Json::as_str).ok_or_else(|| malformed("keys"))?;
        let key = BundleKey::read(json).ok_or_else(|| malformed("keys"))?;
        // A key is named by its own bytes: one whose name is another's was put in its place.
        if key.key.kid() != kid {
            return Err(tampered("a key has another's name"));
        }
        if key.text() != raw {
            return Err(malformed("keys"));
        }
        self.keys.push(key);
        Ok(())
    }

    fn keys_of(&self, purpose: Purpose) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter().filter(move |it| it.purpose == purpose).map(|it| &it.key)
    }

    /// The keys here of a purpose that are in nobody else's hands and have had a turn.
    fn sound_keys_of(&self, purpose: Purpose) -> impl Iterator<Item = &PublicKey> {
        self.keys_of(purpose).filter(|it| it.compromised_at.is_none() && it.has_a_turn())
    }

    /// The checkpoint that a note carries: its own ledger's, by a key that was not compromised.
    fn note(&mut self, json: &Json, name: &str) -> Result<Checkpoint, Fault> {
        let note = json.as_str().ok_or_else(|| malformed(name))?;
        let checkpoint = Checkpoint::open(note, self.sound_keys_of(Purpose::Checkpoint))
            .map_err(|fault| tampered(format!("`{name}`: {fault}")))?;
        if *checkpoint.origin != *self.origin {
            return Err(tampered(format!("`{name}` is another ledger's")));
        }
        let signers = self.sound_keys_of(Purpose::Checkpoint).filter(|it| Checkpoint::open(note, [*it]).is_ok());
        let kids: Vec<String> = signers.map(|it| it.kid().to_owned()).collect();
        kids.iter().for_each(|kid| self.note_signer(Purpose::Checkpoint, kid));
        Ok(checkpoint)
    }

    fn note_signer(&mut self, purpose: Purpose, kid: &str) {
        self.signed_by.insert((purpose.as_str(), kid.to_owned()));
    }

    fn set_checkpoint(&mut self, json: &Json) -> Result<(), Fault> {
        let checkpoint = self.note(json, "checkpoint")?;
        if self.range.is_some_and(|it| it.to > checkpoint.size) {
            return Err(tampered("the range goes beyond the checkpoint"));
        }
        self.checkpoint = Some(checkpoint);
        Ok(())
    }

    fn set_previous(&mut self, json: &Json) -> Result<(), Fault> {
        self.previous = Some(self.note(json, "previous")?);
        Ok(())
    }

    /// All that stands before the records is there: the checkpoint continues the one before.
    fn before_records(&mut self) -> Result<(), Fault> {
        let proves = self.seen.contains("consistency");
        let (Some(new), Some(old)) = (&self.checkpoint, &self.previous) else {
            return if proves { Err(malformed("consistency")) } else { Ok(()) };
        };
        let proof: Vec<_> = self.consistency.iter().map(|it| *it.as_bytes()).collect();
        let (before, after) = (old.root.as_bytes(), new.root.as_bytes());
        verify_consistency(old.size, before, new.size, after, &proof)
            .map_err(|_| tampered("the checkpoint does not continue the previous one"))
    }

    fn record(&mut self, json: &Json, raw: &str) -> Result<(), Fault> {
        let member = |name| json.get(name).and_then(Json::as_str);
        let seq = json.get("seq").and_then(Json::as_int).and_then(|it| u64::try_from(it).ok());
        let id = member("id").map(str::to_owned);
        let wrong = |fault: Fault| Fault { seq, record: id.clone(), ..fault };
        let (seq, hash) = seq.zip(member("hash")).ok_or_else(|| malformed("records"))?;
        let hashed = Digest::of(canonical_without(json, "hash"));
        if hashed.to_string() != hash {
            return Err(wrong(tampered("its hash is not that of its text")));
        }
        if json.as_object().is_none_or(|it| it.len() != 9) || canonical(json) != raw {
            return Err(wrong(malformed("records")));
        }
        let range = self.range.unwrap_or(Range { from: 0, to: 0, complete: true });
        let place = if range.complete { seq == self.next } else { seq >= self.next };
        if !place || seq >= range.to {
            return Err(wrong(tampered(format!("it does not stand where record {} was to", self.next))));
        }
        let zeros = (seq == 0).then(|| Digest::from_bytes([0; 32]));
        let before = self.prev.filter(|_| seq == self.next).or(zeros);
        if before.is_some_and(|it| member("prevHash") != Some(it.to_string().as_str())) {
            return Err(wrong(tampered("it does not name the hash of the record before it")));
        }
        self.follow(json, seq).map_err(wrong)?;
        self.keep(seq, hashed, &range);
        Ok(())
    }

    /// What the record says has to be able to follow the others.
    fn follow(&mut self, json: &Json, seq: u64) -> Result<(), Fault> {
        let member = |name| json.get(name).and_then(Json::as_str).ok_or_else(|| malformed("records"));
        let (kind, subject, at) = (member("kind")?, member("subject")?, member("at")?);
        let at = Timestamp::parse(at).map_err(|_| malformed("records"))?;
        self.latest = self.latest.max(Some(at));
        let data = json.get("data").ok_or_else(|| malformed("records"))?;
        let receipt = receipt_of_record(data, at.as_seconds());
        self.replay.take(kind, subject, data, receipt).map_err(tampered)?;
        self.commit_to(seq, "data", data);
        Ok(())
    }

    fn keep(&mut self, seq: u64, hash: Digest, range: &Range) {
        // The chain binds all records between: the first and the last are enough to prove.
        if !range.complete || seq == range.from {
            self.hashes.insert(seq, hash);
        }
        self.last = Some((seq, hash));
        self.prev = Some(hash);
        self.next = seq.saturating_add(1);
        self.records = self.records.saturating_add(1);
    }

    /// Notes every commitment in the record, by its place.
    fn commit_to(&mut self, seq: u64, path: &str, json: &Json) {
        let Some(members) = json.as_object() else { return };
        if let [(name, Json::Text(hash))] = members
            && name == "commit"
        {
            self.commitments.insert(commitment_key(seq, path, hash));
            self.committed = self.committed.saturating_add(1);
            return;
        }
        for (name, value) in members {
            self.commit_to(seq, &format!("{path}.{name}"), value);
        }
    }

    fn disclosure(&mut self, json: &Json, raw: &str) -> Result<(), Fault> {
        let shown = Disclosed::read(json).filter(|it| it.text() == raw).ok_or_else(|| malformed("disclosures"))?;
        let hash = Digest::of([shown.salt.as_slice(), shown.text.as_bytes()].concat()).to_string();
        // One commitment is disclosed once.
        if !self.commitments.remove(&commitment_key(shown.seq, &shown.path, &hash)) {
            let fault = tampered(format!("the text shown for `{}` is not what the record commits to", shown.path));
            return Err(Fault { seq: Some(shown.seq), ..fault });
        }
        self.disclosed = self.disclosed.saturating_add(1);
        Ok(())
    }

    fn proof(&mut self, json: &Json, raw: &str) -> Result<(), Fault> {
        let seq = json.get("seq").and_then(Json::as_int).and_then(|it| u64::try_from(it).ok());
        let path = json.get("path").and_then(Json::as_list);
        let path: Option<Vec<Digest>> = path.and_then(|it| it.iter().map(hash_of).collect());
        let (seq, path) = seq.zip(path).ok_or_else(|| malformed("inclusionProofs"))?;
        if super::path_text(seq, &path) != raw {
            return Err(malformed("inclusionProofs"));
        }
        let wrong = |what: &str| Fault { seq: Some(seq), ..tampered(what) };
        let last = self.last.filter(|it| it.0 == seq).map(|it| it.1);
        let hash = self.hashes.get(&seq).copied().or(last).ok_or_else(|| wrong("a proof is of no record here"))?;
        let checkpoint = self.checkpoint.as_ref().ok_or_else(|| malformed("checkpoint"))?;
        let path: Vec<_> = path.iter().map(|it| *it.as_bytes()).collect();
        let (leaf, root) = (leaf_hash(hash.as_bytes()), checkpoint.root.as_bytes());
        verify_inclusion(leaf.as_bytes(), seq, checkpoint.size, &path, root)
            .map_err(|_| wrong("it is not in the checkpoint's tree"))?;
        self.proved.insert(seq);
        Ok(())
    }

    fn receipt(&mut self, json: &Json, raw: &str) -> Result<(), Fault> {
        let member = |name| json.get(name).and_then(Json::as_str).ok_or_else(|| malformed("receipts"));
        let (id, jws) = (member("id")?, member("jws")?);
        if super::receipt_text(id, jws) != raw {
            return Err(malformed("receipts"));
        }
        let wrong = |what: &str| tampered(format!("receipt {id}: {what}"));
        let parsed = parse(jws).map_err(|_| wrong("it is none"))?;
        let key = self.sound_keys_of(Purpose::Receipt).find(|it| it.kid() == parsed.kid());
        let key = key.ok_or_else(|| wrong("no key here signed it"))?;
        if !key.signed(parsed.signing_input().as_bytes(), parsed.signature()) {
            return Err(wrong("the signature does not fit"));
        }
        let claims = parsed.claims();
        let at = Timestamp::from_millis(claims.issued_at_s.saturating_mul(1_000));
        // Where the key of that time is in other hands, another stands in for it, by whose turn nothing is told.
        if !key.had_its_turn_at(at) && self.sound_keys_of(Purpose::Receipt).any(|it| it.surely_had_its_turn_at(at)) {
            return Err(wrong("its key had not its turn when it was issued"));
        }
        let mut says = Object::new()
            .text("agentId", &claims.agent.to_string())
            .text("digest", &claims.digest)
            .int("iat", claims.issued_at_s)
            .text("receiptId", id)
            .text("type", &claims.kind);
        if let Some(payment) = &claims.payment {
            says = says.int("amount", payment.amount).text("currency", &payment.currency);
            says = says.text("domain", &payment.domain);
        }
        let origin = claims.issuer.split_once("://").map_or("", |it| it.1);
        let own = format!("{}/{}", origin.trim_end_matches('/'), claims.workspace) == self.origin;
        let known = self.replay.has_receipt(&claims.action.to_string(), short(&says.finish()));
        if !own || claims.receipt.to_string() != id || !known {
            return Err(wrong("no record here allowed what it says"));
        }
        self.note_signer(Purpose::Receipt, parsed.kid());
        self.receipts = self.receipts.saturating_add(1);
        Ok(())
    }

    fn seal(&mut self, json: &Json, raw: &str, digest: &Digest) -> Result<(), Fault> {
        let member = |name| json.get(name).and_then(Json::as_str).ok_or_else(|| malformed("seal"));
        let (kid, said, signature) = (member("kid")?, member("digest")?, member("signature")?);
        let again = super::Ordered::default().text("kid", kid).text("digest", said).text("signature", signature);
        let bytes: [u8; 64] = URL_SAFE_NO_PAD
            .decode(signature)
            .ok()
            .and_then(|it| it.try_into().ok())
            .ok_or_else(|| malformed("seal"))?;
        if again.finish() != raw {
            return Err(malformed("seal"));
        }
        let key = self.sound_keys_of(Purpose::Checkpoint).find(|it| it.kid() == kid);
        let signed = key.is_some_and(|it| it.signed(sealed_text(digest).as_bytes(), &bytes));
        if said != digest.to_string() || !signed {
            return Err(tampered("the seal does not fit what is before it"));
        }
        self.note_signer(Purpose::Checkpoint, kid);
        self.in_time()
    }

    /// That whoever signed was still to sign when the last record was written.
    fn in_time(&self) -> Result<(), Fault> {
        let signed = |key: &&PublicKey| self.signed_by.contains(&(Purpose::Checkpoint.as_str(), key.kid().to_owned()));
        let is_over = |key: &PublicKey| self.latest.is_some_and(|at| key.is_over_at(at));
        if self.keys_of(Purpose::Checkpoint).filter(signed).any(is_over) {
            return Err(tampered("a key signed that had retired before the last record was written"));
        }
        Ok(())
    }

    /// What only the end can tell.
    fn end(&self) -> Result<(), Fault> {
        let range = self.range.ok_or_else(|| malformed("range"))?;
        if !self.seen.contains("seal") {
            return Err(malformed("seal"));
        }
        if range.complete && self.next != range.to {
            let what = format!("record {} and those behind it are missing", self.next);
            return Err(Fault { seq: Some(self.next), ..tampered(what) });
        }
        if self.truncated == Some(true) && !self.seen.contains("nextCursor") {
            return Err(malformed("nextCursor"));
        }
        let last = self.last.map(|it| it.0);
        if let Some(seq) = self.hashes.keys().copied().chain(last).find(|it| !self.proved.contains(it)) {
            let fault = Fault::new(Verdict::Incomplete, "the proof that it is in the checkpoint's tree is missing");
            return Err(Fault { seq: Some(seq), ..fault });
        }
        if !range.complete {
            return Err(Fault::new(Verdict::Incomplete, "records were chosen by agent, so others are left out"));
        }
        Ok(())
    }
}

fn hash_of(json: &Json) -> Option<Digest> {
    let text = json.as_str()?;
    Digest::parse(text).ok().filter(|it| it.to_string() == text)
}

fn commitment_key(seq: u64, path: &str, hash: &str) -> u128 {
    Digest::of(format!("{seq} {path} {hash}")).bits()
}

fn short(text: &str) -> [u8; 16] {
    Digest::of(text).bits().to_be_bytes()
}

/// What the receipt of a record has to say, where it has one.
fn receipt_of_record(data: &Json, issued_at_s: i64) -> Option<[u8; 16]> {
    data.get("receiptId")?;
    let mut says = Object::new().int("iat", issued_at_s);
    for name in ["agentId", "digest", "receiptId", "type", "currency", "domain"] {
        if let Some(value) = data.get(name).and_then(Json::as_str) {
            says = says.text(name, value);
        }
    }
    if let Some(amount) = data.get("amount").and_then(Json::as_int) {
        says = says.int("amount", amount);
    }
    Some(short(&says.finish()))
}
