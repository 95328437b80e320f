//! Prices as JSON has them: whole micros per million tokens, every fault with its dotted path.

use super::{Percent, PriceTier, Prices, ServicePrices, TokenPrices};
use crate::refusal::FieldError;
use crate::value::MicroUsd;
use crate::value::json::Json;

impl TokenPrices {
    /// The kinds of tokens, as members are called.
    pub const MEMBERS: [&'static str; 6] =
        ["input", "cachedInput", "cacheWrite", "cacheWriteLong", "output", "reasoning"];
}

impl Prices {
    /// What a whole price list has beside the kinds of tokens, as members are called.
    pub const FEES: [&'static str; 10] = [
        "perImage",
        "perRequest",
        "perAudioSecond",
        "audioOutput",
        "imageOutput",
        "tools",
        "tiers",
        "serviceTiers",
        "inferenceGeos",
        "cachesUnasked",
    ];

    /// Reads prices that stand at `path`, and notes every fault: a number that is none, negative or has a fraction, a
    /// member that is not known, tiers that do not ascend.
    pub fn read(json: &Json, path: &str, faults: &mut Vec<FieldError>) -> Option<Self> {
        let before = faults.len();
        let mut at = At { json, path, faults };
        at.only(&[&TokenPrices::MEMBERS[..], &Self::FEES].concat());
        let prices = Self {
            tokens: at.tokens(),
            per_image: at.micros("perImage"),
            per_request: at.micros("perRequest"),
            per_audio_second: at.micros("perAudioSecond"),
            audio_output: at.micros("audioOutput"),
            image_output: at.micros("imageOutput"),
            tools: at.each("tools", |it, name| Some((name.into(), it.micros(name)?))),
            tiers: at.tiers(),
            service_tiers: at.each("serviceTiers", |it, name| {
                it.within(name, |it| {
                    it.only(&[&TokenPrices::MEMBERS[..], &["tiers"]].concat());
                    ServicePrices { tokens: it.tokens(), tiers: it.tiers() }
                })
                .map(|prices| (name.into(), prices))
            }),
            inference_geos: at.each("inferenceGeos", |it, name| Some((name.into(), it.percent(name)?))),
            caches_unasked: at.truth("cachesUnasked"),
        };
        if faults.len() > before {
            return None;
        }
        faults.extend(prices.faults().into_iter().map(|it| it.within(path)));
        (faults.len() == before).then_some(prices)
    }
}

/// A place in what is read.
struct At<'a> {
    json: &'a Json,
    path: &'a str,
    faults: &'a mut Vec<FieldError>,
}

impl<'a> At<'a> {
    fn name(&self, member: &str) -> String {
        format!("{}.{member}", self.path)
    }

    fn only(&mut self, known: &[&str]) {
        let Some(members) = self.json.as_object() else {
            self.faults.push(FieldError::new(self.path, "must be an object"));
            return;
        };
        for (name, _) in members.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
            let fault = FieldError::new(self.name(name), "is not known here");
            self.faults.push(fault);
        }
    }

    fn raw(&self, member: &str) -> Option<&'a Json> {
        self.json.get(member).filter(|it| !it.is_null())
    }

    fn truth(&mut self, member: &str) -> bool {
        let read = self.raw(member).map(Json::as_bool);
        if read == Some(None) {
            let fault = FieldError::new(self.name(member), "must be true or false");
            self.faults.push(fault);
        }
        read.flatten().unwrap_or_default()
    }

    fn whole(&mut self, member: &str) -> Option<u64> {
        let read = self.raw(member)?.as_int().and_then(|it| u64::try_from(it).ok());
        if read.is_none() {
            let fault = FieldError::new(self.name(member), "must be a whole number from 0 to 9007199254740991");
            self.faults.push(fault);
        }
        read
    }

    fn micros(&mut self, member: &str) -> Option<MicroUsd> {
        self.whole(member).map(MicroUsd::new)
    }

    fn percent(&mut self, member: &str) -> Option<Percent> {
        let read = Percent::new(self.whole(member)?);
        read.map_err(|why| self.faults.push(FieldError::invalid(self.name(member), why))).ok()
    }

    fn required(&mut self, member: &str) -> MicroUsd {
        if self.raw(member).is_none() {
            let fault = FieldError::missing(self.name(member));
            self.faults.push(fault);
        }
        self.micros(member).unwrap_or_default()
    }

    fn tokens(&mut self) -> TokenPrices {
        TokenPrices {
            input: self.required("input"),
            cached_input: self.micros("cachedInput"),
            cache_write: self.micros("cacheWrite"),
            cache_write_long: self.micros("cacheWriteLong"),
            output: self.required("output"),
            reasoning: self.micros("reasoning"),
        }
    }

    /// Reads an object within this one.
    fn within<T>(&mut self, member: &str, read: impl FnOnce(&mut At<'_>) -> T) -> Option<T> {
        let path = self.name(member);
        let json = self.json.get(member)?;
        Some(read(&mut At { json, path: &path, faults: self.faults }))
    }

    /// Reads the members of an object by their names.
    fn each<T, C: FromIterator<T> + Default>(
        &mut self,
        member: &str,
        mut read: impl FnMut(&mut At<'_>, &str) -> Option<T>,
    ) -> C {
        if self.raw(member).is_none() {
            return C::default();
        }
        let read = self.within(member, |it| {
            let Some(members) = it.json.as_object() else {
                it.faults.push(FieldError::new(it.path, "must be an object"));
                return C::default();
            };
            members.iter().filter_map(|(name, _)| read(it, name)).collect()
        });
        read.unwrap_or_default()
    }

    fn tiers(&mut self) -> Vec<PriceTier> {
        let Some(list) = self.raw("tiers") else { return Vec::new() };
        let path = self.name("tiers");
        let Some(list) = list.as_list() else {
            self.faults.push(FieldError::new(path, "must be a list"));
            return Vec::new();
        };
        let mut tiers = Vec::new();
        for (place, json) in list.iter().enumerate() {
            let path = format!("{path}.{place}");
            let mut at = At { json, path: &path, faults: self.faults };
            at.only(&["aboveInputTokens", "prices"]);
            let above = at.whole("aboveInputTokens");
            let prices = at.within("prices", |it| {
                it.only(&TokenPrices::MEMBERS);
                it.tokens()
            });
            if let (Some(above_input_tokens), Some(prices)) = (above, prices) {
                tiers.push(PriceTier { above_input_tokens, prices });
            } else {
                for member in ["aboveInputTokens", "prices"] {
                    if at.raw(member).is_none() {
                        let fault = FieldError::missing(at.name(member));
                        at.faults.push(fault);
                    }
                }
            }
        }
        tiers
    }
}
