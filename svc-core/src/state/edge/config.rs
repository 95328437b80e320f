//! What an integration needs besides its secrets: from whom it takes what.
//!
//! **Invariant:** what is not named is empty, and an empty member lets nothing in.

use serde::{Deserialize, Serialize};

use super::export::{EventClass, ExportConfig};
use super::integration::{IntegrationKind, SealedSecret};
use crate::state::people::{Member, Principal};
use crate::value::id::PrincipalId;
use crate::value::text::UrlText;
use crate::value::{Invalid, Timestamp};

/// The most repositories or branches that an integration names.
pub const CODE_PLACES_MAX: usize = 100;
/// The most people that an integration names to be mailed alone.
pub const MAILED_MAX: usize = 100;
/// The most people of another system that an integration links to members.
pub const LINKED_MAX: usize = 500;
/// The most bytes of the name that another system has for somebody.
pub const LINKED_NAME_MAX: usize = 200;

/// What the kind of an integration needs besides its secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntegrationConfig {
    /// Nothing.
    #[default]
    Nothing,
    /// Where pull requests count.
    Code(CodeConfig),
    /// To whom the ledger goes.
    Export(ExportConfig),
    /// Whose signals count.
    Signals(SignalConfig),
    /// Who signs people in.
    Oidc(OidcConfig),
    /// Who is mailed.
    Mail(MailConfig),
    /// Which room is told.
    Chat(ChatConfig),
    /// Whose buttons decide.
    Deciders(DeciderConfig),
}

/// Who is mailed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailConfig {
    /// Nobody but these, of those whom it concerns; where nobody is named, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<PrincipalId>,
}

/// Which room is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatConfig {
    /// Where its messages are posted to: an address that the outbound guard has let pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlText>,
    /// In which form.
    #[serde(default, skip_serializing_if = "ChatFormat::is_own")]
    pub format: ChatFormat,
}

/// In which form a room's messages are posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatFormat {
    /// That of this server: what it tells by members, beside the text.
    #[default]
    Svc,
    /// The text alone, for chats that refuse members which they do not know, or have meanings of their own for them.
    Text,
}

impl ChatFormat {
    /// Both forms.
    pub const ALL: [Self; 2] = [Self::Svc, Self::Text];

    /// Its word in the interface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Svc => "svc",
            Self::Text => "text",
        }
    }

    /// The form with this word.
    ///
    /// # Errors
    /// [`Invalid`] for any other word.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|it| it.as_str() == word).ok_or_else(|| Invalid::new("must be `svc` or `text`"))
    }

    const fn is_own(&self) -> bool {
        matches!(self, Self::Svc)
    }
}

/// Where pull requests count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeConfig {
    /// Repositories, as `owner/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<Box<str>>,
    /// Branches that are merged into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Box<str>>,
}

/// Whose signals count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalConfig {
    /// Who sends them, as `iss` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Box<str>>,
    /// To whom they are sent, as `aud` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Box<str>>,
    /// What they are verified with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<SignalKeys>,
}

/// The identity provider that signs a workspace's people in, and what it knows this server as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OidcConfig {
    /// Its issuer, as `iss` has it: an https address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Box<str>>,
    /// What it calls this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Box<str>>,
}

/// The keys of whoever sends signals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKeys {
    /// Fetched from this address, which the outbound guard has let pass.
    Url(UrlText),
    /// These: the JSON text of a set of RFC 7517.
    Set(Box<str>),
}

/// Whose buttons decide, and how they are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeciderConfig {
    /// Who is who, in the order of the other system's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<LinkedMember>,
    /// What the other system is asked to send messages with, where it has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bot_token: Option<SealedSecret>,
}

/// Somebody of another system who is a member here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedMember {
    /// What the other system calls them.
    pub name: Box<str>,
    /// Who they are here.
    pub principal: PrincipalId,
    /// Since when: a member who was signed out by an identity provider, left, or became an owner after that has to be linked again.
    pub since: Timestamp,
}

impl LinkedMember {
    /// Whether the link is good still, to this principal.
    #[must_use]
    pub fn holds(&self, principal: &Principal) -> bool {
        let is_over = |it: &Member| it.was_signed_out_since(self.since) || it.became_owner_since(self.since);
        !principal.membership().is_none_or(is_over) && !principal.has_ended_since(self.since)
    }
}

/// What of a configuration changes; what is not said stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigChange {
    /// The repositories.
    pub repositories: Option<Vec<Box<str>>>,
    /// The branches.
    pub branches: Option<Vec<Box<str>>>,
    /// The classes that an export sends; all where none is named.
    pub classes: Option<Vec<EventClass>>,
    /// The issuer, or none.
    pub issuer: Option<Option<Box<str>>>,
    /// The audience, or none.
    pub audience: Option<Option<Box<str>>>,
    /// What a provider calls this server, or nothing.
    pub client_id: Option<Option<Box<str>>>,
    /// The keys that were there; taken away before others are put.
    pub keys_gone: KeysGone,
    /// The keys, in place of whichever there were.
    pub keys: Option<SignalKeys>,
    /// Who is mailed alone.
    pub to: Option<Vec<PrincipalId>>,
    /// Where an export or the messages to a room are posted to, or nowhere.
    pub url: Option<Option<UrlText>>,
    /// In which form messages to a room are posted.
    pub format: Option<ChatFormat>,
    /// Who is linked to whom, in place of all who were; `since` is the rule's to say.
    pub members: Option<Vec<LinkedMember>>,
    /// What messages are sent with, or nothing.
    pub bot_token: Option<Option<SealedSecret>>,
    /// The secret, in place of all there were: part of no configuration, but of what another issuer needs.
    pub secret: Option<SealedSecret>,
}

/// Which keys are taken away, where they are of that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeysGone {
    /// Those of an address.
    pub url: bool,
    /// Those of a set.
    pub set: bool,
}

impl IntegrationConfig {
    /// What an integration of this kind begins with: every member empty.
    #[must_use]
    pub fn empty(kind: IntegrationKind) -> Self {
        match kind {
            IntegrationKind::Callbacks | IntegrationKind::Issuer | IntegrationKind::Stripe => Self::Nothing,
            IntegrationKind::Export => Self::Export(ExportConfig::default()),
            IntegrationKind::Github => Self::Code(CodeConfig::default()),
            IntegrationKind::Oidc => Self::Oidc(OidcConfig::default()),
            IntegrationKind::Ssf => Self::Signals(SignalConfig::default()),
            IntegrationKind::Mail => Self::Mail(MailConfig::default()),
            IntegrationKind::Chat => Self::Chat(ChatConfig::default()),
            IntegrationKind::Relay | IntegrationKind::Slack => Self::Deciders(DeciderConfig::default()),
        }
    }

    /// Who of another system is whom here; nobody, where that is not what is configured.
    #[must_use]
    pub fn members(&self) -> &[LinkedMember] {
        match self {
            Self::Deciders(it) => &it.members,
            Self::Nothing
            | Self::Code(_)
            | Self::Export(_)
            | Self::Signals(_)
            | Self::Oidc(_)
            | Self::Mail(_)
            | Self::Chat(_) => &[],
        }
    }

    /// The link of this name to this member, where there is one, be it over or not.
    #[must_use]
    pub fn links(&self, name: &str, principal: PrincipalId) -> Option<&LinkedMember> {
        self.members().iter().find(|it| *it.name == *name && it.principal == principal)
    }

    /// The address of an export.
    #[must_use]
    pub const fn export_url(&self) -> Option<&UrlText> {
        match self {
            Self::Export(export) => export.url.as_ref(),
            Self::Nothing
            | Self::Code(_)
            | Self::Signals(_)
            | Self::Oidc(_)
            | Self::Mail(_)
            | Self::Chat(_)
            | Self::Deciders(_) => None,
        }
    }

    /// Whether there is nothing to configure.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// The same with `change` made; what another kind has is passed over.
    #[must_use]
    pub fn changed(&self, change: &ConfigChange) -> Self {
        match self.clone() {
            Self::Nothing => Self::Nothing,
            Self::Mail(mail) => Self::Mail(MailConfig { to: change.to.clone().unwrap_or(mail.to) }),
            Self::Chat(chat) => Self::Chat(ChatConfig {
                url: change.url.clone().unwrap_or(chat.url),
                format: change.format.unwrap_or(chat.format),
            }),
            Self::Code(code) => Self::Code(CodeConfig {
                repositories: change.repositories.clone().unwrap_or(code.repositories),
                branches: change.branches.clone().unwrap_or(code.branches),
            }),
            Self::Oidc(oidc) => Self::Oidc(OidcConfig {
                issuer: change.issuer.clone().unwrap_or(oidc.issuer),
                client_id: change.client_id.clone().unwrap_or(oidc.client_id),
            }),
            Self::Export(export) => Self::Export(ExportConfig {
                url: change.url.clone().unwrap_or(export.url),
                classes: change.classes.clone().unwrap_or(export.classes),
            }),
            Self::Signals(signals) => {
                let gone = |keys: &SignalKeys| match keys {
                    SignalKeys::Url(_) => change.keys_gone.url,
                    SignalKeys::Set(_) => change.keys_gone.set,
                };
                Self::Signals(SignalConfig {
                    issuer: change.issuer.clone().unwrap_or(signals.issuer),
                    audience: change.audience.clone().unwrap_or(signals.audience),
                    keys: change.keys.clone().or_else(|| signals.keys.filter(|keys| !gone(keys))),
                })
            }
            Self::Deciders(deciders) => Self::Deciders(DeciderConfig {
                members: change.members.clone().unwrap_or(deciders.members),
                bot_token: change.bot_token.clone().unwrap_or(deciders.bot_token),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is named changes, what is not stays; other keys take the place of those that were there, and keys that are taken
    /// away are those that were named.
    #[test]
    fn a_change_changes_what_it_names() {
        let set = |text: &str| Some(SignalKeys::Set(text.into()));
        let empty = IntegrationConfig::empty(IntegrationKind::Ssf);
        let made = empty.changed(&ConfigChange {
            issuer: Some(Some("https://idp.example".into())),
            keys: set("one"),
            ..ConfigChange::default()
        });
        let other = made.changed(&ConfigChange { audience: Some(Some("svc".into())), ..ConfigChange::default() });
        let IntegrationConfig::Signals(signals) = &other else { unreachable!() };
        assert_eq!(signals.issuer.as_deref(), Some("https://idp.example"));
        assert_eq!((signals.audience.as_deref(), &signals.keys), (Some("svc"), &set("one")));
        let gone = |url, set| ConfigChange { keys_gone: KeysGone { url, set }, ..ConfigChange::default() };
        assert_eq!(other.changed(&gone(true, false)), other);
        let IntegrationConfig::Signals(without) = other.changed(&gone(false, true)) else { unreachable!() };
        assert_eq!(without.keys, None);
        let back = ConfigChange { issuer: Some(None), repositories: Some(vec!["a/b".into()]), ..gone(false, false) };
        let IntegrationConfig::Signals(without) = other.changed(&back) else { unreachable!() };
        assert_eq!((without.issuer, without.keys), (None, set("one")));
        assert_eq!(IntegrationConfig::Nothing.changed(&back), IntegrationConfig::Nothing);
    }
}
