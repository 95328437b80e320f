//! An integration: a party outside that a workspace calls or is called by, and the secrets between them.
//!
//! **Invariant:** a secret is here only sealed, and what has ended is not kept.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::config::IntegrationConfig;
use crate::value::canonical::canonical;
use crate::value::digest::Digest;
use crate::value::id::{IntegrationId, PrincipalId, WorkspaceId};
use crate::value::json::Json;
use crate::value::link::{Link, Linked, RowId};
use crate::value::words::words;
use crate::value::{Id, Invalid, Span, Timestamp};

/// The longest time that two secrets are good side by side, in hours.
pub const OVERLAP_MAX_HOURS: u16 = 168;

/// Which integration of which workspace: there is one of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IntegrationSlot {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The kind.
    pub kind: IntegrationKind,
}

impl RowId for IntegrationSlot {
    fn parts(self) -> (u128, Option<u32>) {
        (self.workspace.bits(), Some(self.kind.number()))
    }

    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
        let kind = IntegrationKind::ALL.iter().copied().find(|it| Some(it.number()) == number)?;
        Some(Self { workspace: WorkspaceId::from_bits(bits), kind })
    }
}

/// What an integration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntegrationKind {
    /// Agents are called back once their actions are decided.
    Callbacks,
    /// A room is told of what waits for a person.
    Chat,
    /// The ledger is sent to a security-information system.
    Export,
    /// A code host tells what became of pull requests.
    Github,
    /// A card issuer asks before it authorizes, and tells what was settled and reversed.
    Issuer,
    /// People are mailed what waits for them.
    Mail,
    /// An identity provider signs the workspace's people in by OpenID Connect.
    Oidc,
    /// A relay passes on the buttons that people press in a team chat.
    Relay,
    /// People are asked in Slack, and decide by its buttons.
    Slack,
    /// An identity provider tells of accounts and sessions that have ended.
    Ssf,
    /// A payment processor asks before a card that it issues is charged.
    Stripe,
}

/// How an integration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrationState {
    /// What happens with it goes well.
    Ok,
    /// Something went wrong last.
    Failing,
    /// Nothing comes of it.
    Off,
}

words! { IntegrationState;
    Ok "ok";
    Failing "failing";
    Off "off";
}

impl IntegrationKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Callbacks,
        Self::Chat,
        Self::Export,
        Self::Github,
        Self::Issuer,
        Self::Mail,
        Self::Oidc,
        Self::Relay,
        Self::Slack,
        Self::Ssf,
        Self::Stripe,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Callbacks => "callbacks",
            Self::Chat => "chat",
            Self::Export => "export",
            Self::Github => "github",
            Self::Issuer => "issuer",
            Self::Mail => "mail",
            Self::Oidc => "oidc",
            Self::Relay => "relay",
            Self::Slack => "slack",
            Self::Ssf => "ssf",
            Self::Stripe => "stripe",
        }
    }

    /// Whether it is the other side that calls, or sends people, to [`Self::receive_path`].
    #[must_use]
    pub const fn is_received(self) -> bool {
        match self {
            Self::Callbacks | Self::Chat | Self::Export | Self::Mail => false,
            Self::Github | Self::Issuer | Self::Oidc | Self::Relay | Self::Slack | Self::Ssf | Self::Stripe => true,
        }
    }

    /// Whether something is called over it: its calls and messages are deliveries, and it can be tried out.
    #[must_use]
    pub const fn is_called(self) -> bool {
        match self {
            Self::Callbacks | Self::Chat | Self::Export | Self::Mail | Self::Slack => true,
            Self::Github | Self::Issuer | Self::Oidc | Self::Relay | Self::Ssf | Self::Stripe => false,
        }
    }

    /// Where the other side of a workspace's integration calls, or sends people back to: a path of this server.
    #[must_use]
    pub fn receive_path(self, workspace: WorkspaceId) -> Option<String> {
        match self {
            Self::Callbacks | Self::Chat | Self::Export | Self::Mail => None,
            Self::Oidc => Some(format!("/api/sign-in/sso/{workspace}/callback")),
            Self::Github | Self::Issuer | Self::Relay | Self::Slack | Self::Ssf | Self::Stripe => {
                Some(format!("/hooks/{}/{workspace}", self.as_str()))
            }
        }
    }

    /// Whether whoever controls it decides who signs in, or who stays signed in, so that it is the owners' alone.
    #[must_use]
    pub const fn is_owners(self) -> bool {
        matches!(self, Self::Oidc | Self::Ssf)
    }

    /// How people are told over it of what waits for them, where they are.
    #[must_use]
    pub const fn spread(self) -> Option<Spread> {
        match self {
            Self::Mail | Self::Slack => Some(Spread::Each),
            Self::Chat => Some(Spread::Room),
            Self::Callbacks
            | Self::Export
            | Self::Github
            | Self::Issuer
            | Self::Oidc
            | Self::Relay
            | Self::Ssf
            | Self::Stripe => None,
        }
    }

    /// Reads the word.
    ///
    /// # Errors
    /// [`Invalid`], which names the kinds that there are.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.iter().copied().find(|it| it.as_str() == text);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|it| it.as_str()).collect();
            Invalid::new(format!("must be one of the kinds that there are: `{}`", names.join("`, `")))
        })
    }

    /// The number in a row's key; never given anew.
    const fn number(self) -> u32 {
        match self {
            Self::Callbacks => 1,
            Self::Issuer => 2,
            Self::Stripe => 3,
            Self::Github => 4,
            Self::Ssf => 5,
            Self::Export => 8,
            Self::Mail => 9,
            Self::Chat => 10,
            Self::Slack => 6,
            Self::Relay => 7,
            Self::Oidc => 11,
        }
    }
}

/// Who gets what is told over a kind of integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Everybody whom it concerns, one message each.
    Each,
    /// One room, one message.
    Room,
}

/// An integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    /// Where it is found.
    pub slot: IntegrationSlot,
    /// Its id.
    pub id: IntegrationId,
    /// Its secrets, the newest first: the one in force, and while it rotates the one before.
    pub secrets: Vec<SealedSecret>,
    /// What its kind needs besides.
    #[serde(default, skip_serializing_if = "IntegrationConfig::is_nothing")]
    pub config: IntegrationConfig,
    /// Whether it is used.
    pub enabled: bool,
    /// When something last happened over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_at: Option<Timestamp>,
    /// What went wrong last, until something goes well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Box<str>>,
    /// Whether something was given up since anything last went well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failing: bool,
    /// What the ledger's digests of the other system's names for people are keyed with, once there was one to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names_key: Option<NamesKey>,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom; absent where the operator's shell made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<PrincipalId>,
}

/// What digests of names are keyed with. A name is short and often known: whoever has a digest without a key finds it by trying. It
/// goes with its integration, and then nothing is found by a digest any more.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamesKey(#[serde(with = "crate::state::gate::salt_serde")] [u8; 16]);

impl NamesKey {
    /// The key of these bytes, which are random.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// What the ledger has of these names: the same of the same names in one integration, and nothing that tells across two.
    #[must_use]
    pub fn digest<'a>(&self, names: impl Iterator<Item = &'a str>) -> String {
        let names = names.map(|it| Json::Text(it.to_owned())).collect();
        // A key of any length is one, so that there always is a digest.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(canonical(&Json::List(names)).as_bytes());
        Digest::from_bytes(mac.finalize().into_bytes().into()).named()
    }
}

impl fmt::Debug for NamesKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("NamesKey(…)")
    }
}

/// A secret as it is kept: sealed by the shell, which alone can open it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedSecret {
    /// The sealed text.
    pub sealed: Box<str>,
    /// Its last four characters, which people may see.
    pub hint: Box<str>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends, once another has taken its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

impl Linked for Integration {
    fn links(&self) -> Vec<Link> {
        let ends = self.secrets.iter().filter_map(|it| it.ends_at).min();
        ends.map(|at| Link::wake(self.slot.workspace, at)).into_iter().collect()
    }
}

impl Integration {
    /// What its secrets are sealed for, and nothing else opens.
    #[must_use]
    pub fn purpose(slot: IntegrationSlot) -> String {
        format!("integration/{}/{}", slot.workspace, slot.kind.as_str())
    }

    /// What the token is sealed for that messages are sent with, and nothing else opens.
    #[must_use]
    pub fn bot_purpose(slot: IntegrationSlot) -> String {
        format!("{}/bot", Self::purpose(slot))
    }

    /// What the buttons of this integration are sealed for: whoever takes its place opens none of them.
    #[must_use]
    pub fn button_purpose(&self) -> String {
        format!("{}/button/{}", Self::purpose(self.slot), self.id)
    }

    /// The secrets in force at `now`, the newest first; none while it is not used.
    #[must_use]
    pub fn in_force(&self, now: Timestamp) -> Vec<SealedSecret> {
        let live = self.secrets.iter().filter(|it| self.enabled && it.ends_at.is_none_or(|end| now < end));
        live.cloned().collect()
    }

    /// The same with `next` in force and the secret before it good for `overlap` more. One that was ending already ends now:
    /// two are good at once, never three.
    #[must_use]
    pub fn rotated(mut self, next: SealedSecret, overlap: Span, now: Timestamp) -> Self {
        let before = self.secrets.into_iter().find(|it| it.ends_at.is_none());
        let before = before.map(|it| SealedSecret { ends_at: Some(now.plus(overlap)), ..it });
        self.secrets = vec![next];
        self.secrets.extend(before.filter(|it| it.ends_at.is_some_and(|end| now < end)));
        self
    }

    /// The same without the secrets that have ended.
    #[must_use]
    pub fn swept(mut self, now: Timestamp) -> Self {
        self.secrets.retain(|it| it.ends_at.is_none_or(|end| now < end));
        self
    }

    /// Whether people are told over it of what waits for them.
    #[must_use]
    pub const fn tells(&self) -> bool {
        self.enabled
            && match &self.config {
                IntegrationConfig::Mail(_) => true,
                IntegrationConfig::Chat(it) => it.url.is_some(),
                IntegrationConfig::Deciders(it) => it.bot_token.is_some() && !it.members.is_empty(),
                IntegrationConfig::Nothing
                | IntegrationConfig::Code(_)
                | IntegrationConfig::Export(_)
                | IntegrationConfig::Oidc(_)
                | IntegrationConfig::Signals(_) => false,
            }
    }

    /// Whether its configuration lacks what nothing can come of it without: where to, from where, whom to believe or who decides, where
    /// `ended` of those who are linked decide nothing any more.
    const fn is_incomplete(&self, ended: usize) -> bool {
        match &self.config {
            IntegrationConfig::Chat(it) => it.url.is_none(),
            IntegrationConfig::Export(it) => it.url.is_none(),
            IntegrationConfig::Code(it) => it.repositories.is_empty() || it.branches.is_empty(),
            IntegrationConfig::Deciders(it) => it.members.len() <= ended,
            IntegrationConfig::Oidc(it) => it.issuer.is_none() || it.client_id.is_none(),
            IntegrationConfig::Signals(it) => it.issuer.is_none() || it.audience.is_none() || it.keys.is_none(),
            IntegrationConfig::Nothing | IntegrationConfig::Mail(_) => false,
        }
    }

    /// How it stands: one that nothing can come of is as good as off.
    #[must_use]
    pub const fn state(&self) -> IntegrationState {
        self.state_without(0)
    }

    /// The same where so many of the links to members are over, which their own rows tell.
    #[must_use]
    pub const fn state_without(&self, ended: usize) -> IntegrationState {
        match (self.enabled && !self.is_incomplete(ended), self.failing) {
            (false, _) => IntegrationState::Off,
            (true, true) => IntegrationState::Failing,
            (true, false) => IntegrationState::Ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{
        ChatConfig, CodeConfig, DeciderConfig, MailConfig, OidcConfig, SignalConfig, SignalKeys,
    };
    use super::super::export::ExportConfig;
    use super::*;
    use crate::value::text::UrlText;

    fn secret(hint: &str, at: i64) -> SealedSecret {
        let created_at = Timestamp::from_millis(at);
        SealedSecret { sealed: hint.into(), hint: hint.into(), created_at, ends_at: None }
    }

    fn hints(secrets: &[SealedSecret]) -> Vec<&str> {
        secrets.iter().map(|it| &*it.hint).collect()
    }

    fn integration() -> Integration {
        let slot = IntegrationSlot { workspace: WorkspaceId::from_bits(1), kind: IntegrationKind::Callbacks };
        Integration {
            slot,
            id: IntegrationId::from_bits(2),
            secrets: vec![secret("one", 0)],
            config: IntegrationConfig::default(),
            enabled: true,
            last_event_at: None,
            last_error: None,
            failing: false,
            names_key: None,
            created_at: Timestamp::default(),
            created_by: None,
        }
    }

    /// While a secret rotates two are good, the newer first; then one; a rotation meanwhile ends the oldest at once, and
    /// without an overlap there is never a second.
    #[test]
    fn two_secrets_are_good_while_one_takes_the_place_of_the_other() {
        let at = Timestamp::from_millis;
        let rotated = integration().rotated(secret("two", 10), Span::millis(100), at(10));
        assert_eq!(hints(&rotated.in_force(at(109))), ["two", "one"]);
        assert_eq!(hints(&rotated.in_force(at(110))), ["two"]);
        let ends = rotated.links().first().map(|it| it.order);
        assert_eq!(ends, Some(crate::value::link::Order::At(110)));
        let swept = rotated.clone().swept(at(110));
        assert_eq!((hints(&swept.secrets), swept.links()), (vec!["two"], vec![]));
        let again = rotated.rotated(secret("three", 20), Span::millis(100), at(20));
        assert_eq!(hints(&again.in_force(at(20))), ["three", "two"]);
        let hard = again.rotated(secret("four", 30), Span::millis(0), at(30));
        assert_eq!(hints(&hard.secrets), ["four"]);
    }

    /// What is not used signs nothing.
    #[test]
    fn an_integration_that_is_off_has_no_secret_in_force() {
        let off = Integration { enabled: false, ..integration() };
        assert_eq!((off.in_force(Timestamp::default()), off.state()), (vec![], IntegrationState::Off));
    }

    /// One that lacks a part which nothing can come of it without is off until it has it; who is mailed need not be named.
    #[test]
    fn an_integration_that_nothing_can_come_of_is_off() {
        let of = |config: IntegrationConfig| Integration { config, ..integration() }.state();
        let url = || UrlText::parse("https://hooks.example.com/in").ok();
        let code = |repositories: &[&str], branches: &[&str]| {
            let all = |names: &[&str]| names.iter().map(|it| Box::from(*it)).collect();
            IntegrationConfig::Code(CodeConfig { repositories: all(repositories), branches: all(branches) })
        };
        let signals = |has_keys: bool| {
            let (issuer, audience) = (Some("https://idp.example.com".into()), Some("svc".into()));
            IntegrationConfig::Signals(SignalConfig {
                issuer,
                audience,
                keys: url().filter(|_| has_keys).map(SignalKeys::Url),
            })
        };
        let cases = [
            (IntegrationConfig::Nothing, "ok"),
            (IntegrationConfig::Mail(MailConfig::default()), "ok"),
            (IntegrationConfig::Chat(ChatConfig::default()), "off"),
            (IntegrationConfig::Chat(ChatConfig { url: url(), ..ChatConfig::default() }), "ok"),
            (IntegrationConfig::Export(ExportConfig::default()), "off"),
            (code(&[], &["main"]), "off"),
            (code(&["a/b"], &[]), "off"),
            (code(&["a/b"], &["main"]), "ok"),
            (IntegrationConfig::Deciders(DeciderConfig::default()), "off"),
            (IntegrationConfig::Oidc(OidcConfig::default()), "off"),
            (IntegrationConfig::Signals(SignalConfig::default()), "off"),
            (signals(false), "off"),
            (signals(true), "ok"),
        ];
        for (config, state) in cases {
            assert_eq!(of(config.clone()).as_str(), state, "{config:?}");
        }
    }
}
