//! Did you mean: the word that somebody probably meant.

/// Longer words are typing errors of nothing, and comparing them would cost more than an answer.
const WORD_MAX: usize = 128;
/// From this likeness on (Jaro–Winkler, 0 to 1) a word is a guess worth making.
const LIKENESS_MIN: f64 = 0.8;

/// The candidate most like `word`, whatever its case, if one is like it at all; the first of equals.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > WORD_MAX {
        return None;
    }
    let word = word.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let likeness = strsim::jaro_winkler(&word, &candidate.to_lowercase());
        if likeness >= LIKENESS_MIN && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const KINDS: [&str; 7] = ["payment", "refund", "transfer", "deploy", "tool.call", "message.send", "infra.change"];

    /// Beginnings, slips of the finger and other cases find their word; strange words find none.
    #[test]
    fn near_words_are_found_and_strange_ones_are_not() {
        for (word, meant) in [
            ("pay", Some("payment")),
            ("paymnt", Some("payment")),
            ("PAYMENT", Some("payment")),
            ("refnud", Some("refund")),
            ("transfers", Some("transfer")),
            ("deployment", Some("deploy")),
            ("tool", Some("tool.call")),
            ("zzz", None),
            ("", None),
            ("crm", None),
            ("invoice", None),
        ] {
            assert_eq!(nearest(word, KINDS.into_iter()), meant, "{word}");
        }
    }

    /// Of several like words the likest wins, and a very long word is not compared at all.
    #[test]
    fn the_likest_wins_and_length_is_bounded() {
        assert_eq!(nearest("velocityCont", ["velocityMinutes", "velocityCount"].into_iter()), Some("velocityCount"));
        assert_eq!(nearest(&"p".repeat(1 << 20), KINDS.into_iter()), None);
    }
}
