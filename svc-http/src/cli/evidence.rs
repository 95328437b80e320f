//! `svc evidence verify`: whether a bundle is whole and unaltered, by nothing but itself and what its reader has.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svc_core::state::evidence::bundle::{Report, Signers, Verdict, Verifier};
use svc_core::state::evidence::note::{Checkpoint, NOTE_BYTES_MAX};
use svc_core::state::gate::receipt::PublicKeys;
use svc_http::clock;
use svc_http::pages::quoted::in_line;

use super::output::{Problem, note, print, print_json};
use super::receipt;

/// Exit codes of what is not whole.
const TAMPERED: u8 = 1;
const INCOMPLETE: u8 = 2;
const MALFORMED: u8 = 3;
/// That of no verdict at all, which says nothing against the bundle.
pub(super) const UNREAD: u8 = 4;
/// What a bundle begins with, and no note: an opening brace.
const OBJECT: u8 = 0x7b;
/// What some programs put before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Bytes that are read at once.
const READ_AT_ONCE: usize = 1 << 16;
/// How often is told how far it is, where it takes long.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Files with what a reader has, beside which a bundle is put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    /// The service's published keys.
    pub(crate) keys: Option<&'a Path>,
    /// A checkpoint: an earlier bundle, or a note.
    pub(crate) held: Option<&'a Path>,
}

/// What is in such a file.
enum Held {
    /// A checkpoint, and its note as it was signed, if it is signed still.
    Note(Checkpoint, String),
    /// An earlier bundle that fits in itself.
    Bundle(Box<Report>),
}

/// Checks the bundle in a file; `-` is standard input. What is held of it does not grow with its texts. Where there is no verdict, the exit
/// code is none of a verdict.
pub(crate) fn verify(path: &Path, known: Known<'_>, json: bool) -> ExitCode {
    checked(path, known, json).unwrap_or_else(|problem| {
        problem.tell();
        ExitCode::from(UNREAD)
    })
}

fn checked(path: &Path, known: Known<'_>, json: bool) -> Result<ExitCode, Problem> {
    let held = known.held.map(held_in).transpose()?;
    let keys = known.keys.map(published).transpose()?;
    let report = if path == Path::new("-") { read(&mut io::stdin().lock(), None) } else { read_file(path) };
    let mut report = report.map_err(|error| unreadable(path, &error))?;
    report = match (&keys, &held) {
        (Some(keys), _) => report.signed_among(keys, clock::now()),
        (None, Some(Held::Bundle(earlier))) => report.signed_as(earlier),
        (None, Some(Held::Note(_, note))) => report.signed_as_note(note),
        (None, None) => report,
    };
    if let Some(held) = held {
        let own = report.clone();
        let compared = match &held {
            Held::Bundle(earlier) => own.against_bundle(earlier),
            Held::Note(checkpoint, _) => own.against(checkpoint),
        };
        // What is no bundle, or does not fit in itself, is beside nothing.
        report = match (report.verdict, compared) {
            (Verdict::Whole | Verdict::Incomplete, Err(why)) => {
                return Err(Problem::plain(format!(
                    "it cannot be put beside the checkpoint that you hold: {}",
                    in_line(&why.to_string())
                )));
            }
            (_, compared) => compared.unwrap_or(report),
        };
    }
    if json {
        print_json(&as_json(&report))?;
    } else {
        print(&as_text(&report))?;
    }
    Ok(match report.verdict {
        Verdict::Whole => ExitCode::SUCCESS,
        Verdict::Tampered => ExitCode::from(TAMPERED),
        Verdict::Incomplete => ExitCode::from(INCOMPLETE),
        Verdict::Malformed => ExitCode::from(MALFORMED),
    })
}

fn read_file(path: &Path) -> io::Result<Report> {
    let mut file = File::open(path)?;
    let length = file.metadata().ok().map(|it| it.len());
    read(&mut file, length)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(format!("{} cannot be read: {error}", path.display()), "Check the path and its permissions.")
}

/// The published keys in a file. A bundle lists keys too, and names none that is a published one: that it is no key set is to be said.
fn published(path: &Path) -> Result<PublicKeys, Problem> {
    let keys = receipt::key_set(path)?;
    if keys.iter().next().is_none() {
        let what = format!("{} has no key that signs", path.display());
        return Err(Problem::new(what, "Fetch it anew from the service's `/.well-known/jwks.json`."));
    }
    Ok(keys)
}

/// The checkpoint that a reader has: that of an earlier bundle which fits in itself, or one that was kept as a note.
fn held_in(path: &Path) -> Result<Held, Problem> {
    let none = |why: &str| {
        let what = format!("{} holds no checkpoint: {}", path.display(), in_line(why));
        Problem::new(what, "Name an earlier bundle, or a file with the `checkpoint` of one.")
    };
    let mut start = Vec::new();
    let file = File::open(path).and_then(|file| file.take(NOTE_BYTES_MAX as u64 + 1).read_to_end(&mut start));
    file.map_err(|error| unreadable(path, &error))?;
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&start);
    if start.trim_ascii_start().first() != Some(&OBJECT) {
        let note = std::str::from_utf8(start).map_err(|_| none("it is no text"))?.replace("\r\n", "\n");
        let text = note
            .split_inclusive("\n\n")
            .next()
            .map(|it| it.strip_suffix('\n').filter(|cut| cut.ends_with('\n')).unwrap_or(it));
        let checkpoint = Checkpoint::parse(text.unwrap_or_default()).map_err(|fault| none(&fault.to_string()))?;
        return Ok(Held::Note(checkpoint, note));
    }
    let report = read_file(path).map_err(|error| unreadable(path, &error))?;
    let fits = matches!(report.verdict, Verdict::Whole | Verdict::Incomplete) && report.checkpoint.is_some();
    if fits { Ok(Held::Bundle(Box::new(report))) } else { Err(none("it is no bundle that fits in itself")) }
}

/// What a bundle comes to. A byte order mark before it is the file's.
fn read(file: &mut dyn Read, length: Option<u64>) -> io::Result<Report> {
    let mut start = Vec::new();
    file.take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut start)?;
    let mut file = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&start).chain(file);
    let (mut verifier, mut buffer, mut done) = (Verifier::default(), vec![0; READ_AT_ONCE], 0_u64);
    let mut told = Instant::now();
    loop {
        let count = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        // A fault is found: what follows cannot mend it.
        if bytes.is_empty() || !verifier.feed(bytes) {
            return Ok(verifier.finish());
        }
        done = done.saturating_add(u64::try_from(count).unwrap_or(0));
        if told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            let of = length.map(|it| format!(" of {}", it / 1_048_576)).unwrap_or_default();
            note(&format!("{}{of} MiB, {} records\n", done / 1_048_576, verifier.records()));
        }
    }
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Whole => "ok",
        Verdict::Tampered => "tampered",
        Verdict::Incomplete => "incomplete",
        Verdict::Malformed => "malformed",
    }
}

/// What the keys that signed were held against, in the words of JSON.
const fn known_by(signers: Signers) -> Option<&'static str> {
    match signers {
        Signers::Held | Signers::Note => Some("held"),
        Signers::KeySet => Some("jwks"),
        Signers::Unknown => None,
    }
}

/// The same for people, behind a verdict that says that all fits.
const fn signers_told(signers: Signers) -> &'static str {
    match signers {
        Signers::Held => "signed by a key that the bundle you hold lists",
        Signers::Note => "signed by the key of the note you hold",
        Signers::KeySet => "signed by keys of the key set",
        Signers::Unknown => "signers not checked against a key set",
    }
}

/// How much of the ledger a bundle is in which nothing is missing: what leaves records out is not called whole.
fn extent(report: &Report) -> String {
    match report.stretch() {
        _ if report.shows_all() => "whole".to_owned(),
        Some(stretch) if report.records > 0 => format!("whole from record {stretch}"),
        Some(_) | None => "no records".to_owned(),
    }
}

fn as_text(report: &Report) -> String {
    let mut lines = vec![match &report.fault {
        None => format!("{}: {}; {}", word(report.verdict), extent(report), signers_told(report.signers)),
        Some(fault) => {
            let seq = fault.seq.map(|it| format!("record {it}")).unwrap_or_default();
            let id = fault.record.as_deref().map(|it| format!(" ({})", in_line(it))).unwrap_or_default();
            let colon = if fault.seq.is_some() { ": " } else { "" };
            let signers = match report.verdict {
                Verdict::Incomplete => format!("; {}", signers_told(report.signers)),
                Verdict::Whole | Verdict::Tampered | Verdict::Malformed => String::new(),
            };
            format!("{}: {seq}{id}{colon}{}{signers}", word(report.verdict), in_line(&fault.what))
        }
    }];
    if let Some(checkpoint) = &report.checkpoint {
        lines.push(format!("  ledger      {}", in_line(&checkpoint.origin)));
        lines.push(format!("  checkpoint  {} records, root {}", checkpoint.size, checkpoint.root));
    }
    if let Some(previous) = &report.previous {
        lines.push(format!("  continues   {} records, root {}", previous.size, previous.root));
    }
    lines.extend(report.stretch().map(|it| format!("  range       {it}")));
    lines.push(format!("  records     {}", report.records));
    lines.push(format!("  disclosed   {}", report.disclosed));
    lines.push(format!("  receipts    {}", report.receipts));
    lines.extend(report.signed_by.iter().map(|(purpose, kid)| format!("  signed by   {} ({purpose})", in_line(kid))));
    if matches!(report.verdict, Verdict::Whole | Verdict::Incomplete) {
        lines.push("Not proven:".to_owned());
        lines.extend(report.not_proven.iter().map(|it| format!("  {it}")));
    }
    lines.join("\n") + "\n"
}

fn as_json(report: &Report) -> Value {
    let checkpoint = |it: &Checkpoint| json!({ "origin": it.origin, "size": it.size, "root": it.root.to_string() });
    let fault = report.fault.as_ref();
    json!({
        "ok": report.verdict == Verdict::Whole,
        "whole": report.verdict == Verdict::Whole && report.shows_all(),
        "verdict": word(report.verdict),
        "fault": fault.map(|it| json!({ "seq": it.seq, "record": it.record, "what": it.what })),
        "workspaceId": report.workspace,
        "checkpoint": report.checkpoint.as_ref().map(checkpoint),
        "previous": report.previous.as_ref().map(checkpoint),
        "range": report.range.map(|it| json!({ "fromSeq": it.from, "toSeq": it.to, "complete": it.complete })),
        "records": report.records,
        "disclosed": report.disclosed,
        "receipts": report.receipts,
        "signersKnownBy": known_by(report.signers),
        "signedBy": report.signed_by.iter().map(|(purpose, kid)| json!({ "use": purpose, "kid": kid })).collect::<Vec<_>>(),
        "notProven": report.not_proven,
    })
}
