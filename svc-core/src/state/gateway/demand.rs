//! What admission and routing have to know of a request; never its text.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::catalogue::Capability;
use super::particular::Particular;
use crate::value::digest::Digest;
use crate::value::words::words;

/// The two shapes of model traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// The chat-completions API.
    Chat,
    /// The messages API.
    Messages,
}

words! {
    Dialect;
    Chat "chat";
    Messages "messages";
}

/// A request for a model's work, as far as deciding on it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The shape in which it came.
    pub dialect: Dialect,
    /// The model as the client named it: `provider/model`, a bare id, or an alias.
    pub model: Box<str>,
    /// Whether the answer is to come as a stream.
    pub stream: bool,
    /// UTF-8 bytes of all text that goes in, names and schemas of tools included: an upper bound of its tokens.
    pub text_bytes: u64,
    /// Images that go in.
    pub images: u32,
    /// Pages of documents that go in; where they cannot be counted, the most that a provider takes.
    pub pages: u32,
    /// Pages that these are likely to be: what an estimate goes by, and whether they find room.
    pub pages_likely: u32,
    /// Seconds of audio that go in, rounded up.
    pub audio_seconds: u32,
    /// The bound that the request sets on its output.
    pub output: OutputBound,
    /// UTF-8 bytes of what the request foretells of the answer to a provider of its shape: what of it does not come is charged as
    /// output beside what does.
    pub predicted_bytes: u64,
    /// How many answers: `n`, from 1.
    pub answers: u32,
    /// What it writes to a provider's cache.
    pub cache: CacheWrites,
    /// Whether the answer is to be spoken.
    pub spoken: bool,
    /// Whether the answer is to have pictures, or is to be of another kind that is neither text nor speech.
    pub drawn: bool,
    /// Tools that the provider runs itself, by the name under which they are priced, and how often one may at most be
    /// used, where the request says so.
    pub server_tools: BTreeMap<Box<str>, Option<u32>>,
    /// Whether it has the provider sum up the conversation on the way, which is paid beside the answer.
    pub sums_up: bool,
    /// The tier of service it asks for, in the provider's words; `auto` leaves it to the provider.
    pub service_tier: Option<Box<str>>,
    /// How fast it asks a provider of its shape to be, in the provider's word; it is priced as a tier of service.
    pub speed: Option<Box<str>>,
    /// The member by which the request lets a provider of its shape answer with another model than the one it is sent to.
    pub other_models: Option<&'static str>,
    /// The members by which the request has a provider of its shape keep what it is sent.
    pub kept_by: Vec<&'static str>,
    /// The member by which the request says to a provider of its shape behind which of others it is run.
    pub names_providers: Option<&'static str>,
    /// Where the request has a provider of its shape run it, in small letters; without it the provider's own setting holds.
    pub inference_geo: Option<Box<str>>,
    /// What a model must be able to do to serve it.
    pub needs: BTreeSet<Capability>,
    /// The shape that has no place for what it asks for: no provider of that shape is sent it.
    pub no_form_in: Option<Dialect>,
    /// What it has that single models refuse, of either shape that it has a form in.
    pub particulars: BTreeSet<Particular>,
    /// What tools of the client brought into the context, in the order of the messages.
    pub tool_results: Vec<ToolResult>,
    /// A digest of all that decides the answer: equal for identical calls.
    pub digest: Digest,
}

/// Members of the messages shape that have a provider keep what it is sent, and that go to it from a client of the chat shape too.
const OF_MESSAGES: [&str; 2] = ["container", "mcp_servers"];

/// How much output a request admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputBound {
    /// `max_completion_tokens`, else `max_tokens`; without either the model's own limit holds.
    pub tokens: Option<u64>,
    /// Where that limit would hold: what the answer is taken to have at most, if the model lets it have as many. A preview sends
    /// nothing, and says what a usual answer costs.
    pub likely: Option<u64>,
}

/// What a request writes to a provider's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheWrites {
    /// For five minutes.
    pub short: bool,
    /// For an hour.
    pub long: bool,
}

/// What one tool's result brought in: never its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The tool's name as the call before it has it; empty where no call has its id.
    pub tool: Box<str>,
    /// The digest of the content.
    pub digest: Digest,
}

impl Demand {
    /// Tools that the provider runs itself and that count as used once an answer began: the chat shape tells of a search only
    /// where its text cites it.
    pub fn untold_tools(&self) -> impl Iterator<Item = &str> {
        let untold = self.dialect == Dialect::Chat;
        self.server_tools.keys().filter(move |_| untold).map(|it| &**it)
    }

    /// The same without an answer, where only its tokens are counted: nothing is made, and no tool runs.
    #[must_use]
    pub fn unanswered(&self) -> Self {
        let output = OutputBound { tokens: Some(0), likely: None };
        Self { output, predicted_bytes: 0, server_tools: BTreeMap::new(), sums_up: false, ..self.clone() }
    }

    /// Whether a provider of this shape is told to sum up the conversation: only the messages shape has a member for it, which
    /// goes on from a client of the chat shape.
    pub(crate) fn sums_up_at(&self, shape: Dialect) -> bool {
        self.sums_up && (self.dialect == shape || shape == Dialect::Messages)
    }

    /// Whether a provider of this shape can be sent it, as far as its shape tells.
    #[must_use]
    pub fn has_form_in(&self, shape: Dialect) -> bool {
        self.no_form_in != Some(shape)
    }

    /// Whether a provider of this shape is told to keep what it is sent: in translation that is left out, but for what the
    /// messages shape alone has.
    #[must_use]
    pub fn is_kept_at(&self, shape: Dialect) -> bool {
        let goes_on =
            |member: &&str| self.dialect == shape || shape == Dialect::Messages && OF_MESSAGES.contains(member);
        self.kept_by.iter().any(goes_on)
    }

    /// Whether a provider of this shape is told behind which of others to run it: in translation that is left out.
    #[must_use]
    pub fn names_providers_at(&self, shape: Dialect) -> bool {
        self.names_providers.is_some() && self.dialect == shape
    }

    /// How fast a provider of this shape is asked to be: in translation that is left out.
    pub(crate) fn speed_at(&self, shape: Dialect) -> Option<&str> {
        self.speed.as_deref().filter(|_| self.dialect == shape)
    }

    /// Where a provider of this shape is asked to run it: in translation that is left out.
    #[must_use]
    pub fn geo_at(&self, shape: Dialect) -> Option<&str> {
        self.inference_geo.as_deref().filter(|_| self.dialect == shape)
    }

    /// Whether a provider of this shape may answer with another model than the one it is sent to.
    #[must_use]
    pub fn leaves_model_to(&self, shape: Dialect) -> bool {
        self.other_models.is_some() && self.dialect == shape
    }

    /// Whether what a provider of this shape charges for it may be at other prices than those of the model it is sent to: those of
    /// another model, or of a provider behind it. Nobody here knows them.
    #[must_use]
    pub fn is_priced_elsewhere_at(&self, shape: Dialect) -> bool {
        self.leaves_model_to(shape) || self.names_providers_at(shape)
    }

    /// A plain question of so many bytes, in the chat shape, whose answer is bounded by `output`: it needs, names and keeps nothing, and has a
    /// form everywhere. Where there is no request to read, what it is about is changed in it.
    #[must_use]
    pub fn plain(model: &str, text_bytes: u64, output: OutputBound) -> Self {
        Self {
            dialect: Dialect::Chat,
            model: model.into(),
            stream: false,
            text_bytes,
            images: 0,
            pages: 0,
            pages_likely: 0,
            audio_seconds: 0,
            output,
            predicted_bytes: 0,
            answers: 1,
            cache: CacheWrites::default(),
            spoken: false,
            drawn: false,
            server_tools: BTreeMap::new(),
            sums_up: false,
            service_tier: None,
            speed: None,
            other_models: None,
            kept_by: Vec::new(),
            names_providers: None,
            inference_geo: None,
            needs: BTreeSet::new(),
            no_form_in: None,
            particulars: BTreeSet::new(),
            tool_results: Vec::new(),
            digest: Digest::of(model),
        }
    }
}
