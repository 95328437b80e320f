//! Identifiers: a prefix that names the kind, and 26 Crockford base32 characters of a ULID.
//!
//! **Invariant:** an id is made from bits that come in from outside; nothing here reads a clock or a random source.

use std::fmt;
use std::str::FromStr;

use super::bits::Bits;
use super::link::RowId;
use super::{Invalid, Timestamp};

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters of the ULID part.
const CHARS: usize = 26;
/// The longest id: a prefix of at most five characters and the ULID.
const TEXT_MAX: usize = 5 + CHARS;
/// Characters that 64 bits hold.
const DIGITS_AT_ONCE: usize = 12;
/// Low bits of an id that are random; the rest is the time in milliseconds.
const RANDOM_BITS: u32 = 80;

/// What every identifier has in common (CONTRACT part 1, "Names").
pub trait Id: Copy + Ord + fmt::Display + fmt::Debug {
    /// The prefix with its underscore, such as `act_`.
    const PREFIX: &'static str;
    /// The id over these 128 bits: 48 of time in milliseconds, 80 of randomness.
    fn from_bits(bits: u128) -> Self;
    /// The 128 bits.
    fn bits(self) -> u128;
    /// When the id was made, by the clock of the node that made it.
    fn time(self) -> Timestamp {
        let ms = self.bits() >> RANDOM_BITS;
        Timestamp::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
    }
}

/// Joins an instant and random bits into the bits of an id; only the low 80 of `random` count.
#[must_use]
pub fn ulid_bits(at: Timestamp, random: u128) -> u128 {
    let ms = u128::try_from(at.as_millis().max(0)).unwrap_or(0) & ((1 << 48) - 1);
    (ms << RANDOM_BITS) | (random & ((1 << RANDOM_BITS) - 1))
}

/// Gives `take` the text of an id, written in one piece and without an allocation: a row has a dozen of them.
fn with_text<T>(prefix: &str, bits: u128, take: impl FnOnce(&str) -> T) -> T {
    let mut text = [b'0'; TEXT_MAX];
    let len = prefix.len().saturating_add(CHARS).min(TEXT_MAX);
    let (head, _) = text.split_at_mut(len);
    let (name, digits) = head.split_at_mut(len.saturating_sub(CHARS));
    name.copy_from_slice(prefix.as_bytes());
    let mut rest = bits;
    for part in digits.rchunks_mut(DIGITS_AT_ONCE) {
        let mut low = u64::try_from(rest & ((1 << (5 * DIGITS_AT_ONCE)) - 1)).unwrap_or(0);
        for slot in part.iter_mut().rev() {
            let digit = usize::try_from(low & 31).unwrap_or(0);
            *slot = CROCKFORD.get(digit).copied().unwrap_or(b'0');
            low >>= 5;
        }
        rest >>= 5 * DIGITS_AT_ONCE;
    }
    take(std::str::from_utf8(head).unwrap_or_default())
}

/// Reads 26 characters of upper-case Crockford base32, the first at most `7`.
fn parse_ulid(text: &str) -> Option<u128> {
    if text.len() != CHARS {
        return None;
    }
    let mut bits: u128 = 0;
    for (place, byte) in text.bytes().enumerate() {
        let digit = CROCKFORD.iter().position(|it| *it == byte)?;
        if place == 0 && digit > 7 {
            return None;
        }
        bits = (bits << 5) | u128::try_from(digit).ok()?;
    }
    Some(bits)
}

/// Reads an id text with `prefix` into bits.
///
/// # Errors
/// [`Invalid`] where the prefix is another or what follows is no ULID in upper case.
pub(crate) fn parse_bits(text: &str, prefix: &str) -> Result<u128, Invalid> {
    text.strip_prefix(prefix)
        .and_then(parse_ulid)
        .ok_or_else(|| Invalid::new(format!("must be `{prefix}` and 26 digits and upper-case letters")))
}

pub(crate) fn format_bits(prefix: &str, bits: u128, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    with_text(prefix, bits, |text| out.write_str(text))
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Bits);

        impl Id for $name {
            const PREFIX: &'static str = $prefix;
            fn from_bits(bits: u128) -> Self { Self(Bits::of(bits)) }
            fn bits(self) -> u128 { self.0.get() }
        }
        impl $name {
            /// Reads the id from its text.
            ///
            /// # Errors
            /// [`Invalid`] where the prefix is another or the rest is no ULID.
            pub fn parse(text: &str) -> Result<Self, Invalid> { parse_bits(text, $prefix).map(Self::from_bits) }
        }
        impl RowId for $name {
            fn parts(self) -> (u128, Option<u32>) { (self.bits(), None) }
            fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
                number.is_none().then_some(Self::from_bits(bits))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result { format_bits($prefix, self.bits(), out) }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, out) }
        }
        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> { Self::parse(text) }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                with_text($prefix, self.bits(), |text| to.serialize_str(text))
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                crate::value::stored::read(from, Self::parse)
            }
        }
    )*};
}

ids! {
    /// An account: who signs in.
    AccountId "usr_";
    /// An action that was asked about.
    ActionId "act_";
    /// An agent.
    AgentId "agt_";
    /// What a person is asked.
    ApprovalId "apv_";
    /// A registered callback.
    CallbackId "cbk_";
    /// A ledger record.
    EvidenceId "evd_";
    /// A hold that stops a selection of agents or all of them.
    HoldId "hld_";
    /// A gateway key's binding.
    KeyId "key_";
    /// A mandate, whatever its version.
    MandateId "mnd_";
    /// A person or service that an agent acts for, in one workspace.
    PrincipalId "prp_";
    /// A receipt; it shares its bits with the action that it is for.
    ReceiptId "rcp_";
    /// A list of agents that were selected together.
    SelectionId "sel_";
    /// A service token.
    TokenId "stk_";
    /// A workspace.
    WorkspaceId "wsp_";
    /// A durable piece of outside work, such as one delivery; a callback's shares its bits with the callback.
    DeliveryId "dlv_";
    /// A team.
    TeamId "team_";
    /// An application: what a member asks for that their role cannot do.
    ApplicationId "app_";
    /// A connection of an agent through OAuth.
    ConnectionId "con_";
    /// An OAuth client that registered itself.
    ClientId "mcp_";
    /// A drill.
    DrillId "drl_";
    /// An integration with something outside.
    IntegrationId "int_";
    /// A suggested rule.
    RuleId "sug_";
    /// A signed-in session.
    SessionId "ses_";
    /// One call of a model.
    CallId "cal_";
    /// A budget for model calls.
    BudgetId "bdg_";
    /// A provider of models, as a workspace has it.
    UpstreamId "ups_";
    /// An MCP server that agents reach through this one.
    McpServerId "mcs_";
    /// A policy profile, which keys are bound to.
    ProfileId "pol_";
    /// What a provider billed, compared with what was metered.
    BillingImportId "bil_";
}

impl From<ActionId> for ReceiptId {
    fn from(action: ActionId) -> Self {
        Self(action.0)
    }
}

impl From<ReceiptId> for ActionId {
    fn from(receipt: ReceiptId) -> Self {
        Self(receipt.0)
    }
}

impl From<CallbackId> for DeliveryId {
    fn from(callback: CallbackId) -> Self {
        Self(callback.0)
    }
}

/// One immutable version of a mandate, counted from 1. In storage a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(from = "(MandateId, u32)", into = "(MandateId, u32)")]
pub struct MandateVersionId {
    /// The mandate.
    pub mandate: MandateId,
    /// Which version of it, from 1.
    pub version: u32,
}

impl From<(MandateId, u32)> for MandateVersionId {
    fn from((mandate, version): (MandateId, u32)) -> Self {
        Self { mandate, version }
    }
}

impl From<MandateVersionId> for (MandateId, u32) {
    fn from(id: MandateVersionId) -> Self {
        (id.mandate, id.version)
    }
}

impl RowId for MandateVersionId {
    fn parts(self) -> (u128, Option<u32>) {
        (self.mandate.bits(), Some(self.version))
    }
    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
        Some(Self { mandate: MandateId::from_bits(bits), version: number? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Text and bits are two writings of one id, and order of texts is order of bits.
    #[test]
    fn an_id_survives_its_text_and_sorts_like_it() {
        for bits in [0, 1, 31, 32, u128::MAX >> 1, u128::MAX, ulid_bits(Timestamp::from_millis(1_790_000_000_000), 7)] {
            let id = ActionId::from_bits(bits);
            assert_eq!(ActionId::parse(&id.to_string()).unwrap(), id);
        }
        let (a, b) = (ActionId::from_bits(5), ActionId::from_bits(1 << 90));
        assert!(a < b && a.to_string() < b.to_string());
    }

    /// Every kind of id has the prefix that the interface gives it.
    #[test]
    fn each_kind_has_its_prefix() {
        fn of<I: Id>() -> String {
            I::from_bits(0).to_string()
        }
        let made = [
            (of::<AccountId>(), "usr_"),
            (of::<ActionId>(), "act_"),
            (of::<AgentId>(), "agt_"),
            (of::<ApprovalId>(), "apv_"),
            (of::<CallbackId>(), "cbk_"),
            (of::<DeliveryId>(), "dlv_"),
            (of::<EvidenceId>(), "evd_"),
            (of::<HoldId>(), "hld_"),
            (of::<KeyId>(), "key_"),
            (of::<MandateId>(), "mnd_"),
            (of::<PrincipalId>(), "prp_"),
            (of::<ReceiptId>(), "rcp_"),
            (of::<SelectionId>(), "sel_"),
            (of::<TeamId>(), "team_"),
            (of::<ApplicationId>(), "app_"),
            (of::<ConnectionId>(), "con_"),
            (of::<ClientId>(), "mcp_"),
            (of::<DrillId>(), "drl_"),
            (of::<IntegrationId>(), "int_"),
            (of::<RuleId>(), "sug_"),
            (of::<SessionId>(), "ses_"),
            (of::<CallId>(), "cal_"),
            (of::<BudgetId>(), "bdg_"),
            (of::<UpstreamId>(), "ups_"),
            (of::<McpServerId>(), "mcs_"),
            (of::<ProfileId>(), "pol_"),
            (of::<BillingImportId>(), "bil_"),
            (of::<TokenId>(), "stk_"),
            (of::<WorkspaceId>(), "wsp_"),
        ];
        for (text, prefix) in made {
            assert_eq!(text, format!("{prefix}{}", "0".repeat(26)));
        }
    }

    /// A prefix of another kind, lower case, a short text and an overflowing first digit are refused.
    #[test]
    fn what_is_no_id_is_refused() {
        let good = ActionId::from_bits(77).to_string();
        for bad in [
            "",
            "act_",
            &good.replace("act_", "agt_"),
            &good.to_lowercase(),
            &good[..29],
            &format!("{good}0"),
            "act_8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "act_0000000000000000000000000I",
        ] {
            assert!(ActionId::parse(bad).is_err(), "{bad}");
        }
    }

    /// The time that went in is the time an id tells.
    #[test]
    fn an_id_tells_its_time() {
        let at = Timestamp::from_millis(1_790_000_000_123);
        assert_eq!(ActionId::from_bits(ulid_bits(at, u128::MAX)).time(), at);
    }
}
