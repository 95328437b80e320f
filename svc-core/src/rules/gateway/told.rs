//! What the ledger tells of what a workspace routes by: the members of the interface, under their names there. A record is
//! hashed for ever and read by strangers, so no name or encoding of a row stands in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::state::gateway::{
    Capability, Constraints, Dialect, Figures, Mode, Model, ModelTimeouts, Objective, Percent, PriceTier, Prices,
    Profile, Quality, Retention, Routing, ServicePrices, TaskClass, TokenPrices, ToolRule, Upstream,
};
use crate::state::people::Maker;
use crate::value::id::{ProfileId, UpstreamId};
use crate::value::text::{ClassId, ModelName, UpstreamName, UrlText};
use crate::value::{MicroUsd, Timestamp};

/// Who made something, and when.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldMaking {
    created_at: String,
    created_by: Option<String>,
}

impl ToldMaking {
    fn of(by: Option<&Maker>, at: Timestamp) -> Self {
        Self { created_at: at.to_string(), created_by: by.map(ToString::to_string) }
    }
}

/// A provider, its headers by their names alone.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToldUpstream<'a> {
    id: UpstreamId,
    name: &'a UpstreamName,
    kind: Dialect,
    base_url: &'a UrlText,
    pub(super) key_hint: &'a str,
    pub(super) headers: BTreeMap<&'a str, &'static str>,
    jurisdiction: Option<&'a str>,
    region: Option<&'a str>,
    timeouts: ModelTimeouts,
    enabled: bool,
    #[serde(flatten)]
    making: ToldMaking,
}

impl<'a> ToldUpstream<'a> {
    pub(super) fn of(it: &'a Upstream) -> Self {
        Self {
            id: it.id,
            name: &it.name,
            kind: it.dialect,
            base_url: &it.base_url,
            key_hint: &it.key_hint,
            headers: it.headers.keys().chain(it.header_hints.keys()).map(|it| (&**it, "")).collect(),
            jurisdiction: it.jurisdiction.as_deref(),
            region: it.region.as_deref(),
            timeouts: it.timeouts,
            enabled: it.enabled,
            making: ToldMaking::of(it.created_by.as_ref(), it.created_at),
        }
    }
}

/// A model of a provider.
#[derive(PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToldModel<'a> {
    id: &'a ModelName,
    upstream_id: UpstreamId,
    aliases: &'a BTreeSet<ModelName>,
    jurisdiction: &'a str,
    context_window: u64,
    max_output: u64,
    capabilities: &'a BTreeSet<Capability>,
    retention: &'static str,
    retention_days: Option<u32>,
    quality: ToldQuality<'a>,
    prices: Option<ToldPrices<'a>>,
    figures: Figures,
    enabled: bool,
    #[serde(flatten)]
    making: ToldMaking,
}

impl<'a> ToldModel<'a> {
    pub(super) fn of(it: &'a Model) -> Self {
        let retention_days = if let Retention::Days(days) = it.retention { days } else { None };
        Self {
            id: &it.name,
            upstream_id: it.upstream,
            aliases: &it.aliases,
            jurisdiction: &it.jurisdiction,
            context_window: it.context_window,
            max_output: it.max_output,
            capabilities: &it.capabilities,
            retention: it.retention.as_str(),
            retention_days,
            quality: ToldQuality::of(&it.quality),
            prices: it.prices.as_ref().map(ToldPrices::of),
            figures: it.figures,
            enabled: it.enabled,
            making: ToldMaking::of(it.created_by.as_ref(), it.created_at),
        }
    }
}

/// One number, or one for each class.
#[derive(PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum ToldQuality<'a> {
    General(u8),
    ByClass(&'a BTreeMap<ClassId, u8>),
}

impl<'a> ToldQuality<'a> {
    fn of(it: &'a Quality) -> Self {
        if it.by_class.is_empty() { Self::General(it.general) } else { Self::ByClass(&it.by_class) }
    }
}

/// Prices, flat, with the members that are set.
#[derive(PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToldPrices<'a> {
    #[serde(flatten)]
    tokens: TokenPrices,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_image: Option<MicroUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_request: Option<MicroUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_audio_second: Option<MicroUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_output: Option<MicroUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_output: Option<MicroUsd>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tools: &'a BTreeMap<Box<str>, MicroUsd>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tiers: &'a [PriceTier],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    service_tiers: BTreeMap<&'a str, ToldService<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inference_geos: &'a BTreeMap<Box<str>, Percent>,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    caches_unasked: bool,
}

impl<'a> ToldPrices<'a> {
    pub(super) fn of(it: &'a Prices) -> Self {
        Self {
            tokens: it.tokens,
            per_image: it.per_image,
            per_request: it.per_request,
            per_audio_second: it.per_audio_second,
            audio_output: it.audio_output,
            image_output: it.image_output,
            tools: &it.tools,
            tiers: &it.tiers,
            service_tiers: it.service_tiers.iter().map(|(name, it)| (&**name, ToldService::of(it))).collect(),
            inference_geos: &it.inference_geos,
            caches_unasked: it.caches_unasked,
        }
    }
}

#[derive(PartialEq, Eq, Serialize)]
struct ToldService<'a> {
    #[serde(flatten)]
    tokens: TokenPrices,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tiers: &'a [PriceTier],
}

impl<'a> ToldService<'a> {
    fn of(it: &'a ServicePrices) -> Self {
        Self { tokens: it.tokens, tiers: &it.tiers }
    }
}

/// What a class or a profile asks of models.
#[derive(PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldLimits<'a> {
    models: &'a [Box<str>],
    providers: &'a BTreeSet<Box<str>>,
    jurisdictions: &'a BTreeSet<Box<str>>,
    retention: Option<&'static str>,
    capabilities: &'a BTreeSet<Capability>,
    min_quality: Option<u8>,
    max_cost_micros: Option<MicroUsd>,
    max_latency_ms: Option<u64>,
    human_oversight: bool,
    objective: Option<Objective>,
}

impl<'a> ToldLimits<'a> {
    fn of(it: &'a Constraints) -> Self {
        Self {
            models: &it.models,
            providers: &it.providers,
            jurisdictions: &it.jurisdictions,
            retention: it.no_retention.then_some("none"),
            capabilities: &it.capabilities,
            min_quality: it.min_quality,
            max_cost_micros: it.max_cost,
            max_latency_ms: it.max_latency_ms,
            human_oversight: it.human_oversight,
            objective: it.objective,
        }
    }
}

/// A class of tasks; what people call it is a commitment.
#[derive(PartialEq, Eq, Serialize)]
pub(super) struct ToldClass<'a> {
    id: &'a ClassId,
    #[serde(flatten)]
    limits: ToldLimits<'a>,
    #[serde(flatten)]
    making: ToldMaking,
}

impl<'a> ToldClass<'a> {
    pub(super) fn of(it: &'a TaskClass) -> Self {
        let making = ToldMaking::of(it.created_by.as_ref(), it.created_at);
        Self { id: &it.id, limits: ToldLimits::of(&it.constraints), making }
    }
}

/// A profile; what people call it is a commitment.
#[derive(PartialEq, Eq, Serialize)]
pub(super) struct ToldProfile<'a> {
    id: ProfileId,
    mode: Option<Mode>,
    #[serde(flatten)]
    limits: ToldLimits<'a>,
    #[serde(flatten)]
    making: ToldMaking,
}

impl<'a> ToldProfile<'a> {
    pub(super) fn of(it: &'a Profile) -> Self {
        let making = ToldMaking::of(it.created_by.as_ref(), it.created_at);
        Self { id: it.id, mode: it.mode, limits: ToldLimits::of(&it.constraints), making }
    }
}

/// Routing itself.
#[derive(PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToldRouting {
    mode: Mode,
    default_objective: Objective,
    default_task_class: Option<ClassId>,
    tool_table: Option<Vec<ToolRule>>,
}

impl ToldRouting {
    pub(super) fn of(routing: &Routing) -> Self {
        Self {
            mode: routing.mode,
            default_objective: routing.objective,
            default_task_class: routing.default_class.clone(),
            tool_table: routing.tools.clone(),
        }
    }
}
