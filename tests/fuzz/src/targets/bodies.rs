//! What bodies of the console's routes and of those that people administer by have in common, whichever reader reads them.

use std::fmt::Debug;

use svc_core::refusal::Refusal;
use svc_core::value::canonical::canonical;
use svc_core::value::json::Json;

use super::is_the_callers;

/// Stands in secrets of the seeds: no text that anybody is told has it.
const PLANTED: &str = "planted-secret";
/// The members that secrets come in.
const SECRETS: [&str; 9] =
    ["password", "current", "token", "pending", "code", "recoveryCode", "secret", "apiKey", "botToken"];

/// A body, by whoever reads it.
#[derive(Debug)]
pub struct Body {
    /// Reads one, and gives all that it says.
    pub read: fn(&[u8]) -> Result<String, Refusal>,
    /// Some that are read to their end, and some that are not.
    pub seeds: &'static [&'static str],
}

/// What a reader made, as a text that differs where it does.
///
/// # Errors
/// What it refused.
pub fn told<T: Debug>(read: Result<T, Refusal>) -> Result<String, Refusal> {
    read.map(|it| format!("{it:?}"))
}

/// The first byte chooses the reader, the rest is a body: it means the same however it is written, or is refused for the caller to
/// mend, by the places of its faults; and nobody is told a secret of it.
///
/// # Panics
/// Where that is not so.
pub fn hold(bodies: &[Body], data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let read = bodies[usize::from(*choice) % bodies.len()].read;
    let outcome = read(body);
    let json = Json::parse(if body.is_empty() { b"{}" } else { body });
    let said = match &outcome {
        Ok(made) => {
            let json = json.as_ref().expect("what was read is JSON");
            assert_eq!(read(canonical(json).as_bytes()).as_ref(), Ok(made), "it means the same however it is written");
            made.clone()
        }
        Err(refusal) => {
            is_the_callers(refusal);
            if let Ok(json) = &json {
                for fault in refusal.errors() {
                    let path = fault.field.as_deref().unwrap_or_default();
                    assert!(leads(json, path), "{path:?} leads nowhere: {refusal:?}");
                }
            }
            format!("{refusal:?}")
        }
    };
    if json.is_ok_and(|it| hides(&it)) {
        assert!(!said.contains(PLANTED), "{said}");
    }
}

/// Every seed, behind the byte that chooses its reader.
///
/// # Panics
/// Where there are more readers than a byte can choose from.
#[must_use]
pub fn seeds(bodies: &[Body]) -> Vec<Vec<u8>> {
    assert!(bodies.len() <= 256);
    let seed = |place: usize, text: &str| {
        let mut seed = vec![u8::try_from(place).expect("there are fewer")];
        seed.extend_from_slice(text.as_bytes());
        seed
    };
    bodies.iter().enumerate().flat_map(|(place, body)| body.seeds.iter().map(move |text| seed(place, text))).collect()
}

/// Whether a dotted path leads to something, or to a member that is lacking, as one of `null` is. Names may have full stops of their own.
#[must_use]
pub fn leads(json: &Json, path: &str) -> bool {
    if path.is_empty() {
        return true;
    }
    let rest = |name: &str| {
        let behind = path.strip_prefix(name)?;
        if behind.is_empty() { Some(behind) } else { behind.strip_prefix('.') }
    };
    match json {
        Json::Object(members) => {
            let mut led = members.iter().filter_map(|(name, it)| Some((it, rest(name)?))).peekable();
            (led.peek().is_none() && is_plain(path)) || led.any(|(it, rest)| leads(it, rest))
        }
        Json::List(items) => {
            let place = path.split('.').next().unwrap_or_default();
            let item = place.parse::<usize>().ok().and_then(|it| items.get(it));
            item.zip(rest(place)).is_some_and(|(it, rest)| leads(it, rest))
        }
        Json::Null => is_plain(path),
        Json::Bool(_) | Json::Number(_) | Json::Text(_) => false,
    }
}

/// Whether this may be the path of what this server knows the name of.
fn is_plain(path: &str) -> bool {
    path.split('.').all(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphabetic() || it == b'_'))
}

/// Whether what is planted stands in secrets alone.
fn hides(json: &Json) -> bool {
    match json {
        Json::Object(members) => {
            members.iter().all(|(name, it)| !name.contains(PLANTED) && (SECRETS.contains(&name.as_str()) || hides(it)))
        }
        Json::List(items) => items.iter().all(hides),
        Json::Text(text) => !text.contains(PLANTED),
        Json::Null | Json::Bool(_) | Json::Number(_) => true,
    }
}
