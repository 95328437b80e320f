//! What differs between two texts, line by line, for people.

use std::fmt::Write as _;

/// Lines around a change that are shown too.
const AROUND: usize = 2;
/// Pairs of lines of the stretch that differs beyond which it is shown as a whole.
const COMPARED_MAX: usize = 1_000_000;

/// A line as it is shown: its sign and its text.
type Shown<'a> = (char, &'a str);

/// Lines taken away behind `-`, new ones behind `+`, with some of those that stay.
#[must_use]
pub fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let lines = compared(&old, &new);
    let changed: Vec<usize> = (0..lines.len()).filter(|at| lines.get(*at).is_some_and(|it| it.0 != ' ')).collect();
    let mut out = String::new();
    let mut last = None;
    for (at, (sign, text)) in lines.iter().enumerate() {
        let from = changed.partition_point(|it| it + AROUND < at);
        if changed.get(from).is_none_or(|it| *it > at + AROUND) {
            continue;
        }
        if last.is_some_and(|it: usize| it + 1 < at) {
            out.push_str("  …\n");
        }
        last = Some(at);
        let _ = writeln!(out, "{sign} {text}");
    }
    out
}

/// The longest run of lines that both have, in order, and the others around it.
fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Shown<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let middle = |lines: &[&'a str]| lines.get(head..lines.len() - tail).unwrap_or_default().to_vec();
    let (a, b) = (middle(old), middle(new));
    let kept = |lines: &[&'a str]| lines.iter().map(|it| (' ', *it)).collect::<Vec<Shown<'a>>>();
    let mut out = kept(old.get(..head).unwrap_or_default());
    out.extend(between(&a, &b));
    out.extend(kept(old.get(old.len() - tail..).unwrap_or_default()));
    out
}

fn between<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<Shown<'a>> {
    if a.len().saturating_mul(b.len()) > COMPARED_MAX {
        return a.iter().map(|it| ('-', *it)).chain(b.iter().map(|it| ('+', *it))).collect();
    }
    // common[i][j]: how many lines what is left behind i and j has in common.
    let wide = b.len() + 1;
    let mut common = vec![0_usize; (a.len() + 1) * wide];
    let at = |common: &[usize], i: usize, j: usize| common.get(i * wide + j).copied().unwrap_or_default();
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            let best = if a.get(i) == b.get(j) {
                at(&common, i + 1, j + 1) + 1
            } else {
                at(&common, i + 1, j).max(at(&common, i, j + 1))
            };
            if let Some(cell) = common.get_mut(i * wide + j) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    loop {
        match (a.get(i), b.get(j)) {
            (Some(old), Some(new)) if old == new => {
                out.push((' ', *old));
                (i, j) = (i + 1, j + 1);
            }
            (Some(old), other) if other.is_none() || at(&common, i + 1, j) >= at(&common, i, j + 1) => {
                out.push(('-', *old));
                i += 1;
            }
            (_, Some(new)) => {
                out.push(('+', *new));
                j += 1;
            }
            _ => return out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change is shown with a little of what stays, and stretches far from it are not.
    #[test]
    fn what_changed_is_shown_with_a_little_around_it() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        assert_eq!(difference(old, "a\nb\nc\nD\ne\nf\ng\nh\n"), "  b\n  c\n- d\n+ D\n  e\n  f\n");
        assert_eq!(difference(old, "x\na\nb\nc\nd\ne\nf\ng\nh\ny\n"), "+ x\n  a\n  b\n  …\n  g\n  h\n+ y\n");
        assert_eq!(
            (difference(old, old), difference("", "a\n"), difference("a\n", "")),
            (String::new(), "+ a\n".into(), "- a\n".into())
        );
    }
}
