//! Which signs of a text nobody sees.
//!
//! **Invariant:** a sign that nobody sees is told from the others wherever it does not change how one beside it is shown: what joins
//! or varies is kept where it does that, once for each, and never for being a joiner alone. The scripts of the pages go by the same
//! pattern, which a test compares.

use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use svc_core::value::hidden::is_hidden;

/// A stretch of signs, both ends in it.
type Range = (char, char);

/// Scripts in which a joiner between two letters changes how these are written: of each its letters and marks.
const SCRIPTS: &[&[Range]] = &[
    &[
        ('\u{620}', '\u{6dc}'),
        ('\u{6de}', '\u{6ff}'),
        ('\u{750}', '\u{77f}'),
        ('\u{8a0}', '\u{8e1}'),
        ('\u{8e3}', '\u{8ff}'),
    ],
    &[('\u{710}', '\u{74f}')],
    &[('\u{7ca}', '\u{7f5}')],
    &[('\u{900}', '\u{97f}')],
    &[('\u{980}', '\u{9ff}')],
    &[('\u{a00}', '\u{a7f}')],
    &[('\u{a80}', '\u{aff}')],
    &[('\u{b00}', '\u{b7f}')],
    &[('\u{b80}', '\u{bff}')],
    &[('\u{c00}', '\u{c7f}')],
    &[('\u{c80}', '\u{cff}')],
    &[('\u{d00}', '\u{d7f}')],
    &[('\u{d80}', '\u{dff}')],
    &[('\u{1000}', '\u{109f}')],
    &[('\u{1780}', '\u{17b3}'), ('\u{17b6}', '\u{17d3}')],
    &[MONGOLIAN],
];

const MONGOLIAN: Range = ('\u{1820}', '\u{18aa}');

/// Signs that take a vowel away: a joiner behind one says how the consonant is written, whatever follows (RFC 5892, appendix A).
const VIRAMAS: &[char] =
    &['\u{94d}', '\u{9cd}', '\u{a4d}', '\u{acd}', '\u{b4d}', '\u{bcd}', '\u{c4d}', '\u{ccd}', '\u{d4d}', '\u{dca}'];

/// Ideographs, of which a selector chooses a form.
const IDEOGRAPHS: &[Range] =
    &[('\u{3400}', '\u{4dbf}'), ('\u{4e00}', '\u{9fff}'), ('\u{f900}', '\u{faff}'), ('\u{20000}', '\u{3ffff}')];

/// Pictographs, as Unicode lists them (`Extended_Pictographic`): what joins them, or shows them as text or in colours, follows one.
#[rustfmt::skip] // Many a line.
const PICTOGRAPHS: &[Range] = &[
    ('\u{a9}', '\u{a9}'), ('\u{ae}', '\u{ae}'), ('\u{203c}', '\u{203c}'), ('\u{2049}', '\u{2049}'),
    ('\u{2122}', '\u{2122}'), ('\u{2139}', '\u{2139}'), ('\u{2194}', '\u{2199}'), ('\u{21a9}', '\u{21aa}'),
    ('\u{231a}', '\u{231b}'), ('\u{2328}', '\u{2328}'), ('\u{23cf}', '\u{23cf}'), ('\u{23e9}', '\u{23f3}'),
    ('\u{23f8}', '\u{23fa}'), ('\u{24c2}', '\u{24c2}'), ('\u{25aa}', '\u{25ab}'), ('\u{25b6}', '\u{25b6}'),
    ('\u{25c0}', '\u{25c0}'), ('\u{25fb}', '\u{25fe}'), ('\u{2600}', '\u{2604}'), ('\u{260e}', '\u{260e}'),
    ('\u{2611}', '\u{2611}'), ('\u{2614}', '\u{2615}'), ('\u{2618}', '\u{2618}'), ('\u{261d}', '\u{261d}'),
    ('\u{2620}', '\u{2620}'), ('\u{2622}', '\u{2623}'), ('\u{2626}', '\u{2626}'), ('\u{262a}', '\u{262a}'),
    ('\u{262e}', '\u{262f}'), ('\u{2638}', '\u{263a}'), ('\u{2640}', '\u{2640}'), ('\u{2642}', '\u{2642}'),
    ('\u{2648}', '\u{2653}'), ('\u{265f}', '\u{2660}'), ('\u{2663}', '\u{2663}'), ('\u{2665}', '\u{2666}'),
    ('\u{2668}', '\u{2668}'), ('\u{267b}', '\u{267b}'), ('\u{267e}', '\u{267f}'), ('\u{2692}', '\u{2697}'),
    ('\u{2699}', '\u{2699}'), ('\u{269b}', '\u{269c}'), ('\u{26a0}', '\u{26a1}'), ('\u{26a7}', '\u{26a7}'),
    ('\u{26aa}', '\u{26ab}'), ('\u{26b0}', '\u{26b1}'), ('\u{26bd}', '\u{26be}'), ('\u{26c4}', '\u{26c5}'),
    ('\u{26c8}', '\u{26c8}'), ('\u{26ce}', '\u{26cf}'), ('\u{26d1}', '\u{26d1}'), ('\u{26d3}', '\u{26d4}'),
    ('\u{26e9}', '\u{26ea}'), ('\u{26f0}', '\u{26f5}'), ('\u{26f7}', '\u{26fa}'), ('\u{26fd}', '\u{26fd}'),
    ('\u{2702}', '\u{2702}'), ('\u{2705}', '\u{2705}'), ('\u{2708}', '\u{270d}'), ('\u{270f}', '\u{270f}'),
    ('\u{2712}', '\u{2712}'), ('\u{2714}', '\u{2714}'), ('\u{2716}', '\u{2716}'), ('\u{271d}', '\u{271d}'),
    ('\u{2721}', '\u{2721}'), ('\u{2728}', '\u{2728}'), ('\u{2733}', '\u{2734}'), ('\u{2744}', '\u{2744}'),
    ('\u{2747}', '\u{2747}'), ('\u{274c}', '\u{274c}'), ('\u{274e}', '\u{274e}'), ('\u{2753}', '\u{2755}'),
    ('\u{2757}', '\u{2757}'), ('\u{2763}', '\u{2764}'), ('\u{2795}', '\u{2797}'), ('\u{27a1}', '\u{27a1}'),
    ('\u{27b0}', '\u{27b0}'), ('\u{27bf}', '\u{27bf}'), ('\u{2934}', '\u{2935}'), ('\u{2b05}', '\u{2b07}'),
    ('\u{2b1b}', '\u{2b1c}'), ('\u{2b50}', '\u{2b50}'), ('\u{2b55}', '\u{2b55}'), ('\u{3030}', '\u{3030}'),
    ('\u{303d}', '\u{303d}'), ('\u{3297}', '\u{3297}'), ('\u{3299}', '\u{3299}'), ('\u{1f004}', '\u{1f004}'),
    ('\u{1f02c}', '\u{1f02f}'), ('\u{1f094}', '\u{1f09f}'), ('\u{1f0af}', '\u{1f0b0}'), ('\u{1f0c0}', '\u{1f0c0}'),
    ('\u{1f0cf}', '\u{1f0d0}'), ('\u{1f0f6}', '\u{1f0ff}'), ('\u{1f170}', '\u{1f171}'), ('\u{1f17e}', '\u{1f17f}'),
    ('\u{1f18e}', '\u{1f18e}'), ('\u{1f191}', '\u{1f19a}'), ('\u{1f1ae}', '\u{1f1e5}'), ('\u{1f201}', '\u{1f20f}'),
    ('\u{1f21a}', '\u{1f21a}'), ('\u{1f22f}', '\u{1f22f}'), ('\u{1f232}', '\u{1f23a}'), ('\u{1f23c}', '\u{1f23f}'),
    ('\u{1f249}', '\u{1f25f}'), ('\u{1f266}', '\u{1f321}'), ('\u{1f324}', '\u{1f393}'), ('\u{1f396}', '\u{1f397}'),
    ('\u{1f399}', '\u{1f39b}'), ('\u{1f39e}', '\u{1f3f0}'), ('\u{1f3f3}', '\u{1f3f5}'), ('\u{1f3f7}', '\u{1f3fa}'),
    ('\u{1f400}', '\u{1f4fd}'), ('\u{1f4ff}', '\u{1f53d}'), ('\u{1f549}', '\u{1f54e}'), ('\u{1f550}', '\u{1f567}'),
    ('\u{1f56f}', '\u{1f570}'), ('\u{1f573}', '\u{1f57a}'), ('\u{1f587}', '\u{1f587}'), ('\u{1f58a}', '\u{1f58d}'),
    ('\u{1f590}', '\u{1f590}'), ('\u{1f595}', '\u{1f596}'), ('\u{1f5a4}', '\u{1f5a5}'), ('\u{1f5a8}', '\u{1f5a8}'),
    ('\u{1f5b1}', '\u{1f5b2}'), ('\u{1f5bc}', '\u{1f5bc}'), ('\u{1f5c2}', '\u{1f5c4}'), ('\u{1f5d1}', '\u{1f5d3}'),
    ('\u{1f5dc}', '\u{1f5de}'), ('\u{1f5e1}', '\u{1f5e1}'), ('\u{1f5e3}', '\u{1f5e3}'), ('\u{1f5e8}', '\u{1f5e8}'),
    ('\u{1f5ef}', '\u{1f5ef}'), ('\u{1f5f3}', '\u{1f5f3}'), ('\u{1f5fa}', '\u{1f64f}'), ('\u{1f680}', '\u{1f6c5}'),
    ('\u{1f6cb}', '\u{1f6d2}'), ('\u{1f6d5}', '\u{1f6e5}'), ('\u{1f6e9}', '\u{1f6e9}'), ('\u{1f6eb}', '\u{1f6f0}'),
    ('\u{1f6f3}', '\u{1f6ff}'), ('\u{1f7da}', '\u{1f7ff}'), ('\u{1f80c}', '\u{1f80f}'), ('\u{1f848}', '\u{1f84f}'),
    ('\u{1f85a}', '\u{1f85f}'), ('\u{1f888}', '\u{1f88f}'), ('\u{1f8ae}', '\u{1f8af}'), ('\u{1f8bc}', '\u{1f8bf}'),
    ('\u{1f8c2}', '\u{1f8cf}'), ('\u{1f8d9}', '\u{1f8ff}'), ('\u{1f90c}', '\u{1f93a}'), ('\u{1f93c}', '\u{1f945}'),
    ('\u{1f947}', '\u{1f9ff}'), ('\u{1fa58}', '\u{1fa5f}'), ('\u{1fa6e}', '\u{1faff}'), ('\u{1fc00}', '\u{1fffd}'),
];

/// Whether nobody sees a sign of a text, of which `before` says the two that stand before it, the nearest first, and `after` the one
/// behind it.
pub(super) fn is_unseen(sign: char, before: [Option<char>; 2], after: Option<char>) -> bool {
    is_hidden(sign) && !is_shown_beside(sign, before, after)
}

/// Whether a sign stands on the one before it (the Unicode category M).
pub(super) fn is_mark(sign: char) -> bool {
    // No sign below is one, and most of what is read is below.
    sign >= '\u{300}' && GeneralCategoryGroup::Mark.contains(CodePointMapData::<GeneralCategory>::new().get(sign))
}

/// Whether a sign without a shape changes how those beside it are shown.
fn is_shown_beside(sign: char, [before, second]: [Option<char>; 2], after: Option<char>) -> bool {
    let is_in = |it: Option<char>, ranges: &[Range]| it.is_some_and(|it| is_within(it, ranges));
    match sign {
        '\u{200c}' | '\u{200d}' => {
            let is_written = SCRIPTS.iter().any(|script| is_in(before, script) && is_in(after, script));
            let pictograph = match before {
                Some('\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}') => second,
                other => other,
            };
            let joins = sign == '\u{200d}' && is_in(pictograph, PICTOGRAPHS) && is_in(after, PICTOGRAPHS);
            is_written || joins || before.is_some_and(|it| VIRAMAS.contains(&it))
        }
        '\u{fe0e}' => is_in(before, PICTOGRAPHS),
        '\u{fe0f}' => {
            let is_key = matches!(before, Some('0'..='9' | '#' | '*')) && after == Some('\u{20e3}');
            is_key || is_in(before, PICTOGRAPHS)
        }
        // No ideograph has more forms than these that fonts would know.
        '\u{fe00}'..='\u{fe02}' | '\u{e0100}'..='\u{e011f}' => is_in(before, IDEOGRAPHS),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => is_in(before, &[MONGOLIAN]),
        _ => false,
    }
}

fn is_within(sign: char, ranges: &[Range]) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&sign))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::path::Path;

    use super::*;

    /// A sign as a pattern of a script names it.
    fn named(sign: char) -> String {
        let code = u32::from(sign);
        if code > 0xffff { format!("\\u{{{code:x}}}") } else { format!("\\u{code:04x}") }
    }

    fn class(ranges: &[Range]) -> String {
        let ranges = ranges.iter().map(|(first, last)| format!("{}-{}", named(*first), named(*last)));
        format!("[{}]", ranges.collect::<String>())
    }

    /// The scripts of the pages go by the same pattern: first what changes the sign before it, with that sign, then what is named.
    /// `UPDATE_EXPECTED=1` writes it.
    #[test]
    fn the_scripts_go_by_the_same_pattern() {
        let written: String =
            SCRIPTS.iter().map(|it| class(it)).map(|it| format!("{it}[\\u200c\\u200d](?={it})|")).collect();
        let viramas: String = VIRAMAS.iter().map(|it| named(*it)).collect();
        let joined = "\\p{ExtPict}(?:\\p{EMod}|\\ufe0f)?\\u200d(?=\\p{ExtPict})|\\p{ExtPict}[\\ufe0e\\ufe0f]|[0-9#*]\\ufe0f(?=\\u20e3)";
        let varied = format!(
            "{}[\\ufe00-\\ufe02\\u{{e0100}}-\\u{{e011f}}]|{}[\\u180b-\\u180d\\u180f]",
            class(IDEOGRAPHS),
            class(&[MONGOLIAN])
        );
        let hidden = "(?![\\n\\t])[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{DI}\\u2800]";
        let line = format!("const UNSEEN = /({written}[{viramas}][\\u200c\\u200d]|{joined}|{varied})|{hidden}/gu;\n");
        for name in ["pages/approval_texts.js", "console/text.js"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
            let script = std::fs::read_to_string(&path).unwrap();
            let own = script.split_inclusive('\n').find(|it| it.starts_with("const UNSEEN = ")).unwrap();
            if std::env::var_os("UPDATE_EXPECTED").is_some() {
                std::fs::write(&path, script.replace(own, &line)).unwrap();
            } else {
                assert_eq!(own, line, "{name}");
            }
        }
    }
}
