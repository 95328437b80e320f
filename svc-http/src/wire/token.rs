//! Service tokens (CONTRACT part 2, "People, keys, tokens").

use ipnet::IpNet;
use serde_json::{Map, Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::people::show::KeyState;
use svc_core::state::people::{ServiceToken, TOKEN_DAYS_MAX, TokenScope};
use svc_core::value::text::Label;
use svc_core::value::{Invalid, Timestamp};

use super::named::Names;
use super::{Fields, integer, parse, text};

/// Ranges of one token.
const RANGES_MAX: usize = 100;

/// A wish for a service token.
#[derive(Debug)]
pub struct NewToken {
    /// What people call it.
    pub name: Label,
    /// What it may do.
    pub scopes: Vec<TokenScope>,
    /// In how many days it ends.
    pub days: u16,
    /// Where it may be shown.
    pub ip_allow: Vec<IpNet>,
}

/// What a wish for a service token names.
pub const IDS: &[(&str, Names)] = &[("name", Names::NewToken)];

/// Reads a wish for a service token.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<NewToken, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["name", "scopes", "expiresInDays", "ipAllow"]);
    let name = fields.required("name", |it| Label::parse(text(it)?));
    let scopes = fields.texts("scopes", (1, TokenScope::ALL.len() * 2), scope);
    fields.demand("scopes");
    let days = fields.optional("expiresInDays", |it| days(integer(it)?));
    let ip_allow = fields.texts("ipAllow", (0, RANGES_MAX), range);
    let days = days.unwrap_or(TOKEN_DAYS_MAX);
    let made = name.zip(scopes);
    let made = made.map(|(name, scopes)| NewToken { name, scopes, days, ip_allow: ip_allow.unwrap_or_default() });
    fields.finish(made)
}

/// A scope by its word.
///
/// # Errors
/// [`Invalid`] for any other word.
pub fn scope(word: &str) -> Result<TokenScope, Invalid> {
    let words: Vec<&str> = TokenScope::ALL.iter().map(|it| it.as_str()).collect();
    TokenScope::parse(word).ok_or_else(|| Invalid::new(format!("must be one of `{}`", words.join("`, `"))))
}

/// A life in days.
///
/// # Errors
/// [`Invalid`] below 1 and above 90.
pub fn days(days: i64) -> Result<u16, Invalid> {
    let days = u16::try_from(days).ok().filter(|it| (1..=TOKEN_DAYS_MAX).contains(it));
    days.ok_or_else(|| Invalid::new(format!("must be between 1 and {TOKEN_DAYS_MAX}")))
}

/// An address range in CIDR form, without host bits.
///
/// # Errors
/// [`Invalid`] for anything else.
pub fn range(word: &str) -> Result<IpNet, Invalid> {
    let range = spelled(word).ok_or_else(|| Invalid::new("must be an address range such as `192.0.2.0/24`"))?;
    if let IpNet::V6(inner) = range
        && inner.network().to_ipv4_mapped().is_some()
    {
        return Err(Invalid::new("must be written as the IPv4 range that it is"));
    }
    if range.trunc() == range {
        Ok(range)
    } else {
        Err(Invalid::new(format!("has host bits set: `{}` has none", range.trunc())))
    }
}

/// A range whose numbers begin with no zero: to some readers that is another base, and they would mean another range.
fn spelled(word: &str) -> Option<IpNet> {
    let (address, length) = word.split_once('/')?;
    let is_plain = length == "0" || !length.starts_with(['0', '+']);
    IpNet::new(address.parse().ok()?, length.parse().ok().filter(|_| is_plain)?).ok()
}

/// A service token's record, without its text. `used_at` is when it was last shown to this server, `is_void` whether it ended with its
/// maker.
#[must_use]
pub fn write(token: &ServiceToken, now: Timestamp, is_void: bool, used_at: Option<Timestamp>) -> Map<String, Value> {
    let state = match token.revoked_at {
        Some(_) => KeyState::Revoked,
        None if is_void => KeyState::Revoked,
        None if now < token.expires_at => KeyState::Active,
        None => KeyState::Expired,
    };
    let shown = json!({
        "id": token.token,
        "name": token.name,
        "scopes": token.scopes.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
        "ipAllow": token.ip_allow.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "state": state.as_str(),
        "expiresAt": token.expires_at.to_string(),
        "lastUsedAt": used_at.map(|it| it.to_string()),
        "createdBy": token.created_by,
        "createdAt": token.created_at.to_string(),
    });
    if let Value::Object(members) = shown { members } else { Map::new() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A range is read as it is written everywhere, or not at all.
    #[test]
    fn a_range_has_one_reading() {
        for good in ["10.0.0.0/8", "0.0.0.0/0", "192.0.2.7/32", "2001:db8::/32", "::/0"] {
            assert_eq!(range(good).unwrap().to_string(), good);
        }
        for bad in
            ["010.0.0.0/8", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/8 ", "10.0.0.0/", "/8", "10.0.0.0", "10.0.0.1/8"]
        {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
