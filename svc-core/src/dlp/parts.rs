//! Texts that stand one behind the other, as the parts of one message do: whoever reads them reads what they make together.

use super::{Findings, Kind, Span, spans, without};

/// So many bytes on either side of where two texts meet are looked at together: more than most that is found is long.
const SIDE_MAX: usize = 4_096;

/// What stands in texts of which each follows the one before, by kind: in each by itself, and where they meet.
#[must_use]
pub fn scan_parts(texts: &[&str]) -> Findings {
    found(texts).1
}

/// Each of such texts with `[redacted:kind]` in place of everything found, of what several make together in each of these; none where
/// nothing was found in it.
#[must_use]
pub fn redact_parts(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().zip(found(texts).0).map(|(text, found)| without(text, &found)).collect()
}

/// What was found in each text, from left to right, and how much that is.
fn found(texts: &[&str]) -> (Vec<Vec<Span>>, Findings) {
    let mut found: Vec<Vec<Span>> = texts.iter().map(|it| spans(it)).collect();
    let mut findings = Findings::default();
    found.iter().flatten().for_each(|span| findings.note(span.kind));
    for window in windows(texts) {
        for between in BETWEEN {
            for pieces in crossing(texts, &window, between) {
                let is_free = |(part, piece): &(usize, Span)| {
                    let overlaps = |it: &Span| it.start < piece.end && piece.start < it.end;
                    !found.get(*part).is_some_and(|it| it.iter().any(overlaps))
                };
                let Some(kind) = pieces.first().map(|(_, it)| it.kind) else { continue };
                if !is_believed(kind, between, texts, &pieces) || !pieces.iter().all(is_free) {
                    continue;
                }
                findings.note(kind);
                for (part, piece) in pieces {
                    if let Some(known) = found.get_mut(part) {
                        let place = known.partition_point(|it| it.start < piece.start);
                        known.insert(place, piece);
                    }
                }
            }
        }
    }
    (found, findings)
}

/// Whether what was found over the border of texts is one thing, and not made up by texts that end and begin there: a number with a check
/// is, whatever stands between; the rest only where nothing does.
fn is_believed(kind: Kind, between: &str, texts: &[&str], pieces: &[(usize, Span)]) -> bool {
    let taken = |(part, it): &(usize, Span)| texts.get(*part).and_then(|text| text.get(it.start..it.end));
    let begins = |it: &(usize, Span), sign: fn(char) -> bool| taken(it).is_some_and(|text| text.starts_with(sign));
    let ends = |it: &(usize, Span), sign: fn(char) -> bool| taken(it).is_some_and(|text| text.ends_with(sign));
    match kind {
        Kind::PaymentCard | Kind::Iban => true,
        _ if !between.is_empty() => false,
        // A text that begins with `@` speaks of a file or a person, as coding clients write them.
        Kind::Email => !pieces.iter().skip(1).any(|it| begins(it, |sign| sign == '@')),
        // Two numbers that meet are two.
        Kind::Phone => {
            let meet = |it: &[(usize, Span)]| matches!(it, [one, two] if ends(one, char::is_numeric) && begins(two, char::is_numeric));
            !pieces.windows(2).any(meet)
        }
        _ => true,
    }
}

/// What may stand between two texts for whoever reads them.
const BETWEEN: [&str; 2] = ["", " "];

/// A part of a text that is looked at together with others: which text, and from where to where.
type Piece = (usize, usize, usize);

/// What is looked at together: the ends of two long texts that meet, with all short ones between them.
fn windows(texts: &[&str]) -> Vec<Vec<Piece>> {
    let (mut windows, mut running) = (Vec::new(), Vec::<Piece>::new());
    for (part, text) in texts.iter().enumerate() {
        if text.len() <= 2 * SIDE_MAX {
            running.push((part, 0, text.len()));
            continue;
        }
        running.push((part, 0, border(text, SIDE_MAX)));
        windows.push(std::mem::take(&mut running));
        running.push((part, border(text, text.len().saturating_sub(SIDE_MAX)), text.len()));
    }
    windows.push(running);
    windows.retain(|it| it.len() > 1);
    windows
}

/// Where a character begins, here or just before.
fn border(text: &str, place: usize) -> usize {
    (0..=place).rev().find(|it| text.is_char_boundary(*it)).unwrap_or_default()
}

/// What is found over the border of two texts or more: what it takes of each.
fn crossing(texts: &[&str], window: &[Piece], between: &str) -> Vec<Vec<(usize, Span)>> {
    let (mut joined, mut places) = (String::new(), Vec::new());
    for (part, from, to) in window {
        let text = texts.get(*part).and_then(|it| it.get(*from..*to)).unwrap_or_default();
        if text.is_empty() {
            continue;
        }
        if !joined.is_empty() {
            joined.push_str(between);
        }
        places.push((joined.len(), *part, *from, text.len()));
        joined.push_str(text);
    }
    let is_cut = |span: &Span| {
        let begins = span.start == 0 && window.first().is_some_and(|(_, from, _)| *from > 0);
        let whole = |(part, _, to): &Piece| texts.get(*part).is_some_and(|it| it.len() == *to);
        begins || (span.end == joined.len() && !window.last().is_some_and(whole))
    };
    let mut crossing = Vec::new();
    for span in spans(&joined).into_iter().filter(|it| !is_cut(it)) {
        let first = places.partition_point(|(start, .., length)| start.saturating_add(*length) <= span.start);
        let touched = places.iter().skip(first).take_while(|(start, ..)| *start < span.end);
        let pieces = touched.map(|(start, part, from, length)| {
            let within = |place: usize| from.saturating_add(place.saturating_sub(*start).min(*length));
            (*part, Span { kind: span.kind, start: within(span.start), end: within(span.end) })
        });
        let pieces: Vec<_> = pieces.collect();
        if pieces.len() > 1 {
            crossing.push(pieces);
        }
    }
    crossing
}
