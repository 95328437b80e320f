//! Providers and their models, as a workspace has them (CONTRACT part 2, "Upstreams, models, routing").

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::demand::Dialect;
use super::price::Prices;
use crate::state::people::Maker;
use crate::value::Timestamp;
use crate::value::id::UpstreamId;
use crate::value::text::{ClassId, ModelName, UpstreamName, UrlText};
use crate::value::words::words;

/// A provider of models. Its key is not here: it lies sealed in a row of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    /// Its id.
    pub id: UpstreamId,
    /// Its name: what stands before the slash in `provider/model`.
    pub name: UpstreamName,
    /// The shape that it speaks.
    pub dialect: Dialect,
    /// Its base address: for the chat shape with `/v1`, for the messages shape the host.
    pub base_url: UrlText,
    /// Further headers that go with every call, by name in lower case; of those that carry a credential only what was stored
    /// before these were sealed stands here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<Box<str>, Box<str>>,
    /// The last four characters of those whose values are sealed beside its key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub header_hints: BTreeMap<Box<str>, Box<str>>,
    /// Under whose law it runs: ISO 3166, lower case, or `eu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<Box<str>>,
    /// Where it runs, in the provider's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Box<str>>,
    /// Its own times, where they differ from the server's.
    #[serde(default)]
    pub timeouts: ModelTimeouts,
    /// Whether calls may go to it.
    pub enabled: bool,
    /// The last four characters of its key.
    pub key_hint: Box<str>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Whose models a provider serves, as far as its address tells: it decides what is refused of a shape there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// All of its models are those of its shape's own maker.
    Maker,
    /// Mistral's, in the chat shape: ids of calls are nine letters and digits there.
    Mistral,
    /// Google's, in the chat shape: calls come signed there, and go back so.
    Google,
    /// Those of many makers, its shape's own among them.
    Mixed,
    /// Anybody's.
    Other,
}

/// Domains by which hosts are known. Of a shape's maker these are its own, and those of the clouds that resell its models, where a
/// deployment may have any name.
const HOSTS: [(Dialect, &str, Host); 9] = [
    (Dialect::Chat, "openai.com", Host::Maker),
    (Dialect::Chat, "openai.azure.com", Host::Maker),
    (Dialect::Chat, "cognitiveservices.azure.com", Host::Maker),
    (Dialect::Chat, "ai.azure.com", Host::Mixed),
    (Dialect::Messages, "anthropic.com", Host::Maker),
    (Dialect::Messages, "api.aws", Host::Maker),
    (Dialect::Messages, "ai.azure.com", Host::Maker),
    (Dialect::Chat, "mistral.ai", Host::Mistral),
    (Dialect::Chat, "googleapis.com", Host::Google),
];

/// Where a host of many makers' models has the API of the chat shape's own.
const MAKERS_PATH: &str = "openai/";

impl Upstream {
    /// Whose models it serves, as far as is known by where it is.
    #[must_use]
    pub fn host(&self) -> Host {
        let (_, rest) = self.base_url.as_str().split_once("://").unwrap_or_default();
        let path = rest.split_once('/').map_or("", |(_, path)| path);
        let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let is_under = |domain: &str| host.strip_suffix(domain).is_some_and(|it| it.is_empty() || it.ends_with('.'));
        let known = HOSTS.into_iter().find(|(shape, domain, _)| *shape == self.dialect && is_under(domain));
        match known {
            // Beside the maker's own API there is another for all models, which knows no more than all do.
            Some((.., Host::Mixed)) if !path.starts_with(MAKERS_PATH) => Host::Other,
            Some((.., host)) => host,
            None => Host::Other,
        }
    }
}

/// How long a call may take, in milliseconds; without a member the server's configuration holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelTimeouts {
    /// Until the first token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Between tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// For all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<u64>,
}

/// What a model can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Calls tools.
    Tools,
    /// Looks at images.
    Vision,
    /// Answers as a stream.
    Streaming,
    /// Answers in JSON of a given shape.
    Json,
    /// Thinks before it answers.
    Reasoning,
    /// Listens or speaks.
    Audio,
}

words! { Capability;
    Tools "tools";
    Vision "vision";
    Streaming "streaming";
    Json "json";
    Reasoning "reasoning";
    Audio "audio";
}

/// How long a provider keeps what it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// Not at all.
    None,
    /// For some days; how many where it is known.
    Days(Option<u32>),
}

words! {
    /// The word for it.
    Retention::as_str;
    None "none";
    Days "days";
}

/// How good a model is at its work, 0 to 100.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quality {
    /// At whatever is not named below.
    pub general: u8,
    /// At single classes of tasks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<ClassId, u8>,
}

/// How many tokens at most a model makes of what is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Figures {
    /// Of an image.
    pub image: u32,
    /// Of a page of a document, its text and its image together.
    pub page: u32,
    /// Of a second of audio.
    pub audio_second: u32,
}

/// What holds for models of which nobody knows better: above what nearly all of them make.
impl Default for Figures {
    fn default() -> Self {
        Self { image: 10_000, page: 10_000, audio_second: 50 }
    }
}

/// A model of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its id as the provider has it.
    pub name: ModelName,
    /// Its provider.
    pub upstream: UpstreamId,
    /// Further names that clients may use.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub aliases: BTreeSet<ModelName>,
    /// Under whose law it runs: ISO 3166, lower case, `eu`, or `unknown`.
    pub jurisdiction: Box<str>,
    /// How many tokens it takes in, its own output included.
    pub context_window: u64,
    /// How many tokens it answers at most.
    pub max_output: u64,
    /// What it can do.
    pub capabilities: BTreeSet<Capability>,
    /// How long what it was sent is kept.
    pub retention: Retention,
    /// How good it is.
    pub quality: Quality,
    /// What it costs; without it a call is unpriced, never free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// How many tokens it makes of what is not text.
    #[serde(default)]
    pub figures: Figures,
    /// Whether calls may go to it.
    pub enabled: bool,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When it was made.
    pub created_at: Timestamp,
}
