//! Evidence bundles and signed notes.

use svc_core::state::evidence::bundle::{Report, Verdict, Verifier};
use svc_core::state::evidence::note::{Checkpoint, NoteFault, open};

use super::inputs;

/// A bundle that is whole: whatever differs from it in one byte or more is not.
const WHOLE: &[u8] = include_bytes!("bundle.json");

fn read(data: &[u8], at_once: usize) -> Report {
    let mut verifier = Verifier::default();
    for chunk in data.chunks(at_once) {
        if !verifier.feed(chunk) {
            break;
        }
    }
    verifier.finish()
}

/// However the bytes come, they come to the same; and only the bundle that was signed is whole.
///
/// # Panics
/// Where they do not, or another is.
pub fn bundle(data: &[u8]) {
    let report = read(data, 4_096);
    let again = read(data, 7);
    assert_eq!((report.verdict, &report.fault), (again.verdict, &again.fault));
    assert_eq!(report.verdict == Verdict::Whole, report.fault.is_none());
    assert!(report.verdict != Verdict::Whole || data == WHOLE, "another bundle is called whole");
}

/// The bundle that is whole, and the beginnings of others.
#[must_use]
pub fn bundle_seeds() -> Vec<Vec<u8>> {
    let mut seeds = inputs(&["{}", r#"{"format":"svc-evidence/1","workspaceId":"wsp_01K6FN0001000000000000000A","#]);
    seeds.push(WHOLE.to_vec());
    seeds
}

/// Without a key nothing is believed, and a checkpoint that is read has one text.
///
/// # Panics
/// Where it is not so.
pub fn note(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let opened = open(text, &[]);
    assert!(matches!(opened, Err(NoteFault::Malformed | NoteFault::Unsigned)), "{opened:?}");
    if let Ok(checkpoint) = Checkpoint::parse(text) {
        assert!(text.starts_with(&checkpoint.text()), "{text:?}");
    }
}

/// A note with two signatures, and a checkpoint's text.
#[must_use]
pub fn note_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "example.com/log\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u{2014} a Az3grlgtzPIC\n\u{2014} b Az3grlgtzPIC\n",
    ])
}
