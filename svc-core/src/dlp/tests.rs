//! What is found and what is not, by a corpus; what redacting leaves; that no text makes it slow.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic and print")]

use std::collections::BTreeMap;

use super::*;
use crate::value::hidden::{is_hidden, is_space};

/// The corpus as it is read: what a line is to give by kind, and its text.
fn corpus() -> Vec<(BTreeMap<&'static str, u32>, String)> {
    let lines = include_str!("corpus.txt").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let (expected, text) = line.split_once('\t').unwrap();
        let kinds = expected.split(", ").filter(|it| *it != "-").map(|it| {
            let (count, kind) = it.split_once(' ').unwrap_or(("1", it));
            (kind, count.parse().unwrap())
        });
        (kinds.collect(), text.replace("\\\\", "\u{1}").replace("\\n", "\n").replace('\u{1}', "\\"))
    };
    lines.map(read).collect()
}

/// Every kind has at least 25 lines that hold it and 25 near misses, and is found with a precision and a recall of at
/// least 0.95 over all lines of the corpus: as the documentation says.
#[test]
fn each_kind_is_found_with_the_precision_and_recall_that_are_promised() {
    let mut sections: BTreeMap<&str, usize> = BTreeMap::new();
    let mut section = "";
    for line in include_str!("corpus.txt").lines() {
        match line.strip_prefix("# ") {
            Some(title) => section = title,
            None => *sections.entry(section).or_default() += 1,
        }
    }
    let documented = include_str!("../../../docs/gateway.md");
    for kind in Kind::ALL {
        let (mut right, mut wrong, mut missed) = (0, 0, 0);
        for (expected, text) in corpus() {
            let wanted = expected.get(kind.as_str()).copied().unwrap_or_default();
            let got = scan(&text).count(kind);
            right += wanted.min(got);
            wrong += got.saturating_sub(wanted);
            missed += wanted.saturating_sub(got);
        }
        let (precision, recall) = (1_000 * right / (right + wrong), 1_000 * right / (right + missed));
        assert!(precision >= 950 && recall >= 950, "{kind}: {precision} ‰, {recall} ‰");
        let row = format!("| `{kind}` | {right} | {wrong} | {missed} | {precision} | {recall} |\n");
        assert!(documented.contains(&row), "docs/gateway.md has to say: {row}");
        for part in ["true", "near misses"] {
            let lines = sections.get(format!("{kind}: {part}").as_str()).copied().unwrap_or_default();
            assert!(lines >= 25, "{kind}: {part} has {lines} lines");
        }
    }
}

/// Keys that chance draws are found whatever it draws: without a digit, or with dashes where words would have them. Names of the
/// same length that are made of words are none.
#[test]
fn keys_of_a_fixed_length_are_found_whatever_chance_drew() {
    const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const UPPER: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut state = 0x5eed_u64;
    println!("seed {state:#x}");
    let mut below = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let own = ["aat_", "art_", "ask_", "ims_", "sil_", "whsec_"].map(|it| (it, &URL[..], 43));
    for (prefix, letters, length) in
        own.into_iter().chain([("glpat-", &URL[..], 20), ("AIza", &URL[..], 35), ("AKIA", &UPPER[..], 16)])
    {
        for _ in 0..1_500 {
            let body: String = (0..length).map(|_| char::from(letters[below(letters.len())])).collect();
            let text = format!("use {prefix}{body} here");
            assert_eq!(scan(&text).counts().collect::<Vec<_>>(), [(Kind::ApiKey, 1)], "{text}");
        }
    }
    for name in
        ["ask_the_user_what_is_to_be_done_before_going_on", "glpat-your-token-goes-here", "aat_x", "art_history"]
    {
        assert!(scan(name).is_empty(), "{name}");
    }
    assert_eq!(
        scan("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw and whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").describe(),
        "2 api_key"
    );
}

/// A number that is one for the word before it has that word whole and near, in any case; each of several numbers is asked by itself.
#[test]
fn a_word_tells_what_a_number_is() {
    let far = " ".repeat(20);
    for (text, count) in [
        ("Tel 0201 234567", 1),
        ("TEL\n0201 234567; 0301 234567", 2),
        ("tél. 0201 234567, hotel 0201 234567", 1),
        ("intel 0201 234567", 0),
        ("telex 0201 234567", 0),
        ("in a hotel at night 0201 234567", 0),
        (&format!("tel {far}0201 234567"), 1),
        (&format!("tel  {far}0201 234567"), 0),
        ("0201 234567 tel 0201 234567", 1),
    ] {
        let found = scan(text);
        assert_eq!(found.count(Kind::Phone), count, "{text}: {}", found.describe());
    }
    assert_eq!(scan("Social Security 536904399 and 536904399").count(Kind::NationalId), 2);
    assert!(scan("antisocial security 536904399").is_empty());
}

/// A card's number is one where a program wrote it as a number with a fraction of noughts; any other fraction makes it another.
#[test]
fn a_fraction_of_noughts_hides_no_card() {
    for text in ["4111111111111111.0", "[4111111111111111.00, 1]", "4111111111111111.0."] {
        assert_eq!(scan(text).count(Kind::PaymentCard), 1, "{text}");
    }
    for text in ["4111111111111111.5", "4111111111111111.01", "4111111111111111.0a", "4111111111111111.0.1"] {
        assert!(scan(text).is_empty(), "{text}");
    }
}

/// Digits of full width, signs that are not seen and two spaces between groups hide nothing, and what stands around is left as it
/// was; domains have letters of any script.
#[test]
fn what_looks_alike_is_found_alike() {
    for (text, left) in [
        ("カード４２４２４２４２４２４２４２４２です", "カード[redacted:payment_card]です"),
        ("４２４２－４２４２－４２４２－４２４２、ａ", "[redacted:payment_card]、ａ"),
        ("4242\u{200b}4242\u{2060}4242\u{feff}4242 a\u{200d}b", "[redacted:payment_card] a\u{200d}b"),
        ("4242  4242  4242  4242", "[redacted:payment_card]"),
        ("4242\u{a0}4242\u{a0}4242\u{a0}4242", "[redacted:payment_card]"),
        ("ａｌｉｃｅ＠ｅｘａｍｐｌｅ．ｃｏｍ", "[redacted:email]"),
        ("an alice@müller.de, ok", "an [redacted:email], ok"),
        ("alice@почта.рф!", "[redacted:email]!"),
        ("联系alice@example.com谢谢", "联系[redacted:email]谢谢"),
        ("联系alice@example.com。谢谢", "联系[redacted:email]。谢谢"),
        ("alice@bücher.example.", "[redacted:email]."),
        ("بطاقة ٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢ شكرا", "بطاقة [redacted:payment_card] شكرا"),
        ("۴۲۴۲ ۴۲۴۲ ۴۲۴۲ ۴۲۴۲", "[redacted:payment_card]"),
        ("कार्ड ४२४२-४२४२-४२४२-४२४२।", "कार्ड [redacted:payment_card]।"),
        ("𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐", "[redacted:payment_card]"),
    ] {
        assert_eq!(redact(text).map(|it| it.0).as_deref(), Some(left), "{text}");
    }
    for text in ["@müller.de", "a@é", "logo@2x.png", "٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٣", "²⁴²⁴²⁴²⁴²⁴²⁴²⁴²⁴"]
    {
        assert!(scan(text).is_empty(), "{text}");
    }
}

/// No sign that nobody sees hides a number, wherever it stands in it, and no space of another width keeps its groups apart.
#[test]
fn what_is_not_seen_hides_nothing() {
    let hidden = (0..=0x10_ffff).filter_map(char::from_u32).filter(|it| is_hidden(*it));
    for sign in hidden {
        for text in [format!("4242{sign}4242{sign}4242{sign}4242"), format!("4242 {sign}4242 {sign}4242 {sign}4242")] {
            let left = redact(&format!("a {text}{sign} b")).map(|it| it.0);
            let left = left.as_deref().map(|it| it.replace(sign, ""));
            assert_eq!(left.as_deref(), Some("a [redacted:payment_card] b"), "{}", text.escape_unicode());
        }
    }
    let spaces: Vec<char> = (0..=0x10_ffff).filter_map(char::from_u32).filter(|it| is_space(*it)).collect();
    assert_eq!(spaces.len(), 17, "{spaces:?}");
    for space in spaces {
        for text in [format!("4242{space}4242{space}4242{space}4242"), format!("4242 {space}4242 4242{space} 4242")] {
            let left = redact(&text).map(|it| it.0);
            assert_eq!(left.as_deref(), Some("[redacted:payment_card]"), "{}", text.escape_unicode());
        }
    }
    assert_eq!(
        redact("\u{200e}\u{fe0f}alice@example.com\u{2009}\u{2066}!").unwrap().0,
        "\u{200e}\u{fe0f}[redacted:email]\u{2009}\u{2066}!"
    );
    // What ends a line unseen, or is a blank, keeps words apart as a space does.
    for apart in ['\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{115f}', '\u{2800}', '\u{3164}', '\u{ffa0}'] {
        let (text, left) = (format!("alice@example.com{apart}next"), format!("[redacted:email]{apart}next"));
        assert_eq!(redact(&text).unwrap().0, left, "{}", text.escape_unicode());
    }
}

/// A number each of whose groups has a line or a column of its own is one where it stands alone; numbers of a table are none.
#[test]
fn a_card_is_found_in_lines_and_columns() {
    for (text, left) in [
        ("4242\t4242\t4242\t4242", "[redacted:payment_card]"),
        ("card:\n4242\n4242\n4242\n4242\nthanks", "card:\n[redacted:payment_card]\nthanks"),
        ("4242\r\n4242\r\n4242\r\n4242\r\n123", "[redacted:payment_card]\r\n123"),
        ("Ada\t3782\t822463\t10005\t04/29", "Ada\t[redacted:payment_card]\t04/29"),
        (
            "7\t4242\t4242\t4242\t4242\n8\t4000\t0566\t5566\t5556",
            "7\t[redacted:payment_card]\n8\t[redacted:payment_card]",
        ),
        (r#"{"a":"4242\t4242\t4242\t4242"}"#, r#"{"a":"[redacted:payment_card]"}"#),
        (r"4242\n4242\n4242\n4242\nx", r"[redacted:payment_card]\nx"),
        (r"4242\r\n4242\r\n4242\r\n4242", "[redacted:payment_card]"),
        (r"4242\r4242\r4242\r4242", "[redacted:payment_card]"),
    ] {
        assert_eq!(redact(text).map(|it| it.0).as_deref(), Some(left), "{text}");
    }
    for text in [
        "4242\t4242\t4242\t4243",
        "4242\t4242\n4242\t4242",
        "4242\t4242 4242\t4242",
        "4242\t\t4242\t4242\t4242",
        "4242\t4242\t4242\t4242\t1999",
        "1999\t4242\t4242\t4242\t4242",
        "4242\t4242\t4242\t4242\n1998\t1999\t2000\t2001",
        "1998\t1999\t2000\t2001\n4242\t4242\t4242\t4242\n",
        "1998\r\n4242\r\n4242\r\n4242\r\n4242",
        r"1998\r\n4242\r\n4242\r\n4242\r\n4242",
        "4242\t4242\t4242\t4242.5",
        "4222\t2222\t2222\t2",
    ] {
        assert!(scan(text).is_empty(), "{text}");
    }
}

/// A number whose groups are joined by `/` or `_` is one where it stands alone and has all that a card has: dates, paths and names of
/// things are none.
#[test]
fn a_card_is_found_joined() {
    for (text, left) in [
        ("4242/4242/4242/4242", "[redacted:payment_card]"),
        ("card: 4242_4242_4242_4242.", "card: [redacted:payment_card]."),
        (r"3782\/822463\/10005", "[redacted:payment_card]"),
        ("/pay/4242/4242/4242/4242/now", "/pay/[redacted:payment_card]/now"),
    ] {
        assert_eq!(redact(text).map(|it| it.0).as_deref(), Some(left), "{text}");
    }
    for text in [
        "4242/4242/4242/4243",
        "4242/4242_4242/4242",
        "4242/4242/4242/4242/4242",
        "4242/4242/4242/4242/1",
        "2024/4242/4242/4242/4242",
        "4242_4242_4242_4242_v2",
        "v_4242_4242_4242_4242",
        "4242//4242//4242//4242",
        "2026/11/30 2026/12/01",
        "42/42/4242/4242/4242",
    ] {
        assert!(scan(text).is_empty(), "{text}");
    }
}

/// What texts that stand one behind the other make together is found, counts once, and is taken out of each; what each has by itself
/// counts as it would alone, and what is only made up by them side by side does not.
#[test]
fn what_texts_make_together_is_found() {
    let long = "word ".repeat(4_000);
    for (texts, told, left) in [
        (&["4242 4242", " 4242 4242"][..], "1 payment_card", &[Some("[redacted:payment_card]"); 2][..]),
        (&["4242 4242", "4242 4242"], "1 payment_card", &[Some("[redacted:payment_card]"); 2]),
        (
            &["4242", "", "42424242", "4242"],
            "1 payment_card",
            &[Some("[redacted:payment_card]"), None, Some("[redacted:payment_card]"), Some("[redacted:payment_card]")],
        ),
        (
            &["to alice@", "example.com, bob@example.com"],
            "2 email",
            &[Some("to [redacted:email]"), Some("[redacted:email], [redacted:email]")],
        ),
        (&["4242424242424242", "4242 is all"], "1 payment_card", &[Some("[redacted:payment_card]"), None]),
        (&["4242424242424242", "4012888888881881"], "2 payment_card", &[Some("[redacted:payment_card]"); 2]),
        (&["note 0201", "234567"], "", &[None, None]),
        // As coding clients send what they are told: files and people that are spoken of, and numbers side by side.
        (&["Summarize", "@README.md please"], "", &[None, None]),
        (&["Fix the bug in", "@lib.rs and @main.py"], "", &[None, None]),
        (&["cc", "@jane.doe please"], "", &[None, None]),
        (&["Score +1", "2125551234 was the sum"], "", &[None, None]),
        (&["call +1 212", " 555 1234"], "1 phone", &[Some("call [redacted:phone]"), Some("[redacted:phone]")]),
        (&["4242 4242 4242", "in between", "4242"], "", &[None, None, None]),
    ] {
        assert_eq!(scan_parts(texts).describe(), told, "{texts:?}");
        assert_eq!(redact_parts(texts).iter().map(Option::as_deref).collect::<Vec<_>>(), left, "{texts:?}");
    }
    let (before, behind) = (format!("{long}4242 4242"), format!(" 4242 4242 {long}"));
    let texts = [&*before, &*behind, &*before, &*behind];
    assert_eq!(scan_parts(&texts).describe(), "2 payment_card");
    let left = redact_parts(&texts);
    assert!(left.iter().all(|it| it.as_ref().is_some_and(|it| it.contains("word") && !it.contains("4242"))));
    let cut = format!("{}4242 4242 4242 4242{}", "9".repeat(5_000), "1".repeat(5_000));
    assert!(scan_parts(&[&cut, &cut]).is_empty(), "what is cut begins and ends nowhere");
    assert_eq!(scan_parts(&[]), Findings::default());
}

/// What is found is replaced by its kind alone: nothing of it stays, all around it does, and what is left holds none.
#[test]
fn redacting_leaves_kinds_and_nothing_of_what_was_found() {
    let text = "Grüße, Karte 4242 4242 4242 4242 und alice@example.com, IBAN DE89 3704 0044 0532 0130 00 ✓";
    let (left, findings) = redact(text).unwrap();
    assert_eq!(left, "Grüße, Karte [redacted:payment_card] und [redacted:email], IBAN [redacted:iban] ✓");
    assert_eq!(findings.describe(), "1 email, 1 iban, 1 payment_card");
    assert_eq!(findings, scan(text));
    assert_eq!(redact("nothing to see"), None);
    assert_eq!(redact(""), None);
    for (_, text) in corpus() {
        if let Some((left, found)) = redact(&text) {
            assert!(!found.is_empty(), "{text}");
            assert_eq!(scan(&left), Findings::default(), "{text} became {left}");
        }
    }
}

/// Findings of several texts add up, are told by kind in the order of its words, in which rows have them, and are stored as kinds and numbers.
#[test]
fn findings_add_up_and_name_kinds_alone() {
    let mut all = scan("alice@example.com, bob@example.com");
    all.add(&scan("4242424242424242 and carol@example.com"));
    assert_eq!(all.describe(), "3 email, 1 payment_card");
    assert_eq!(serde_json::to_string(&all).unwrap(), r#"{"email":3,"payment_card":1}"#);
    assert_eq!(serde_json::from_str::<Findings>(r#"{"email":3,"payment_card":1}"#).unwrap(), all);
    assert!(Kind::ALL.is_sorted() && Kind::ALL.is_sorted_by_key(|it| it.as_str()));
    assert!(Findings::default().is_empty() && Findings::default().describe().is_empty());
}

/// Pieces of texts that are made to be slow.
const HOSTILE: [&str; 52] = [
    "1",
    "1 ",
    "11-",
    "4111 ",
    "4111/",
    "4_",
    "(1",
    "+1(",
    "1.",
    "12-34-",
    "a@",
    "a@a.",
    "a.",
    "@",
    "a:",
    "a='",
    "a=",
    "token=a1 ",
    "token=\"",
    "password:a1b2c3d4e5f6g7h8i9",
    "eyJ.",
    "eyJ",
    "eyJhbGciOiJIUzI1NiJ9.",
    "-",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----a-",
    "sk-",
    "SG.a1",
    "ya29.",
    "AIza ",
    "DE89 3704 ",
    "DE89",
    "://a:",
    "://",
    "://a:b",
    "2A",
    "X1234567 ",
    "AB12",
    "RSSMRA85 ",
    "é",
    "\u{a0}1",
    "a@é",
    "a@é.",
    "1  ",
    "\\n",
    "=a1b2",
    "0 ",
    "0 0 0 0 0 0 0 0 tel ",
    "+49 ",
    "12345678a ",
    "national insurance ",
];

/// A mebibyte of text made to be slow, in blocks of one kind each, is read with at most so many looks at a byte for each
/// that it has; so is each block alone.
#[test]
fn no_text_takes_more_than_its_length_allows() {
    const MIB: usize = 1 << 20;
    const LOOKS_A_BYTE: u64 = 120;
    let looks = |text: &str| {
        let read = Text::new(text);
        let found = Scan::new(&read).count();
        (read.reads() / u64::try_from(text.len()).unwrap(), found)
    };
    let block = |piece: &str| piece.repeat(MIB / HOSTILE.len() / piece.len() + 1);
    for piece in HOSTILE {
        let (looks, found) = looks(&block(piece));
        assert!(looks <= LOOKS_A_BYTE, "{piece:?}: {looks} looks a byte, {found} found");
    }
    let whole: String = HOSTILE.into_iter().map(block).collect();
    assert!(whole.len() >= MIB);
    let (looks, _) = looks(&whole);
    assert!(looks <= LOOKS_A_BYTE, "{looks} looks a byte");
}

/// Words before numbers are looked for once, however many numbers ask about the same bytes.
#[test]
fn a_byte_is_searched_for_words_once() {
    for text in ["0 ".repeat(10_000), "tel ".repeat(5_000), "e 0 ".repeat(5_000)] {
        let read = Text::new(&text);
        for place in (0..text.len()).step_by(2) {
            read.told(place, told::Told::Phone);
        }
        let looks = read.reads() / u64::try_from(text.len()).unwrap();
        assert!(looks <= 8, "{looks} looks a byte");
    }
}
