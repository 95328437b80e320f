//! `svc evidence verify`: whether a bundle is whole and unaltered, by nothing but itself.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svc_core::state::evidence::bundle::{Report, Verdict, Verifier};
use svc_core::state::evidence::note::{Checkpoint, NOTE_BYTES_MAX};

use super::output::{Problem, note, print, print_json};

/// Exit codes of what is not whole.
const TAMPERED: u8 = 1;
const INCOMPLETE: u8 = 2;
const MALFORMED: u8 = 3;
/// That of no verdict at all, which says nothing against the bundle.
pub(super) const UNREAD: u8 = 4;
/// What a bundle begins with, and no note: an opening brace.
const OBJECT: u8 = 0x7b;
/// Bytes that are read at once.
const READ_AT_ONCE: usize = 1 << 16;
/// How often is told how far it is, where it takes long.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Checks the bundle in a file; `-` is standard input. What is held of it does not grow with its texts. Where there is no verdict, the exit
/// code is none of a verdict.
///
/// `held` is a file with the checkpoint that the reader has, an earlier bundle or a note, beside which the bundle is put.
pub(crate) fn verify(path: &Path, held: Option<&Path>, json: bool) -> ExitCode {
    checked(path, held, json).unwrap_or_else(|problem| {
        problem.tell();
        ExitCode::from(UNREAD)
    })
}

fn checked(path: &Path, held: Option<&Path>, json: bool) -> Result<ExitCode, Problem> {
    let held = held.map(held_in).transpose()?;
    let report = if path == Path::new("-") { read(&mut io::stdin().lock(), None) } else { read_file(path) };
    let mut report = report.map_err(|error| unreadable(path, &error))?;
    if let Some(held) = held {
        // What is no bundle, or does not fit in itself, is beside nothing.
        report = match (report.verdict, report.clone().against(&held)) {
            (Verdict::Whole | Verdict::Incomplete, Err(why)) => {
                return Err(Problem::plain(format!("it cannot be put beside the checkpoint that you hold: {why}")));
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

/// The checkpoint that a reader has: that of an earlier bundle which fits in itself, or one that was kept as a note. Its signature says
/// nothing here: it is theirs.
fn held_in(path: &Path) -> Result<Checkpoint, Problem> {
    let none = |why: &str| {
        let what = format!("{} holds no checkpoint: {why}", path.display());
        Problem::new(what, "Name an earlier bundle, or a file with the `checkpoint` of one.")
    };
    let mut start = Vec::new();
    let file = File::open(path).and_then(|file| file.take(NOTE_BYTES_MAX as u64 + 1).read_to_end(&mut start));
    file.map_err(|error| unreadable(path, &error))?;
    if start.first() != Some(&OBJECT) {
        let text = String::from_utf8(start).map_err(|_| none("it is no text"))?;
        let text = text
            .split_inclusive("\n\n")
            .next()
            .map(|it| it.strip_suffix('\n').filter(|cut| cut.ends_with('\n')).unwrap_or(it));
        return Checkpoint::parse(text.unwrap_or_default()).map_err(|fault| none(&fault.to_string()));
    }
    let report = read_file(path).map_err(|error| unreadable(path, &error))?;
    let fits = matches!(report.verdict, Verdict::Whole | Verdict::Incomplete);
    report.checkpoint.filter(|_| fits).ok_or_else(|| none("it is no bundle that fits in itself"))
}

fn read(file: &mut dyn Read, length: Option<u64>) -> io::Result<Report> {
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

/// A text of somebody else's, without what a terminal would obey.
fn shown(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { char::REPLACEMENT_CHARACTER } else { it }).collect()
}

fn as_text(report: &Report) -> String {
    let mut lines = vec![match &report.fault {
        None => word(report.verdict).to_owned(),
        Some(fault) => {
            let seq = fault.seq.map(|it| format!("record {it}")).unwrap_or_default();
            let id = fault.record.as_deref().map(|it| format!(" ({})", shown(it))).unwrap_or_default();
            let colon = if fault.seq.is_some() { ": " } else { "" };
            format!("{}: {seq}{id}{colon}{}", word(report.verdict), shown(&fault.what))
        }
    }];
    if let Some(checkpoint) = &report.checkpoint {
        lines.push(format!("  ledger      {}", shown(&checkpoint.origin)));
        lines.push(format!("  checkpoint  {} records, root {}", checkpoint.size, checkpoint.root));
    }
    if let Some(previous) = &report.previous {
        lines.push(format!("  continues   {} records, root {}", previous.size, previous.root));
    }
    lines.push(format!("  records     {}", report.records));
    lines.push(format!("  disclosed   {}", report.disclosed));
    lines.push(format!("  receipts    {}", report.receipts));
    lines.extend(report.signed_by.iter().map(|(purpose, kid)| format!("  signed by   {} ({purpose})", shown(kid))));
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
        "verdict": word(report.verdict),
        "fault": fault.map(|it| json!({ "seq": it.seq, "record": it.record, "what": it.what })),
        "workspaceId": report.workspace,
        "checkpoint": report.checkpoint.as_ref().map(checkpoint),
        "previous": report.previous.as_ref().map(checkpoint),
        "range": report.range.map(|it| json!({ "fromSeq": it.from, "toSeq": it.to, "complete": it.complete })),
        "records": report.records,
        "disclosed": report.disclosed,
        "receipts": report.receipts,
        "signedBy": report.signed_by.iter().map(|(purpose, kid)| json!({ "use": purpose, "kid": kid })).collect::<Vec<_>>(),
        "notProven": report.not_proven,
    })
}
