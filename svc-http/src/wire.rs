//! Reading JSON into values: every fault of a body at once, each with its dotted path.
//!
//! **Invariant:** a member that is `null` counts as not sent; a member that is there and wrong is never ignored.

pub mod action_request;
pub mod actions;
pub mod agent;
pub mod application;
pub mod approval;
pub mod budget;
pub mod call;
pub mod callback;
pub mod calls;
pub mod connection;
pub mod decision;
pub mod delivery;
pub mod drill;
pub mod evidence;
pub mod integration;
pub mod issuer;
pub mod key;
pub mod mandate;
pub mod mcp;
pub mod mcp_server;
pub mod me;
pub mod member;
pub mod named;
pub mod oauth;
pub mod ocsf;
pub mod outcome;
pub mod page;
pub mod press;
pub mod report;
pub mod routing;
pub mod run;
pub mod settings;
pub mod settlement;
pub mod sign_in;
pub mod slack;
pub mod stop;
pub mod stripe;
pub mod suggestion;
pub mod token;
pub mod verdict;

#[cfg(test)]
mod testing;

use std::fmt::Display;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Serialize, Serializer};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::value::json::Json;
use svc_core::value::{Amount, Invalid, SAFE_MAX};

use crate::headers::single;

/// A value that is written as the text that it displays as, without a `String` between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<T>(pub(crate) T);

impl<T: Display> Serialize for Told<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// A sum of money or a count as it is told: one beyond ±(2^53 − 1) is told as that bound, because beyond it readers of
/// JSON take an integer for its neighbour.
pub(crate) fn bounded(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(SAFE_MAX).clamp(-SAFE_MAX, SAFE_MAX)
}

/// Adds a member to an object.
pub(crate) fn put(object: &mut serde_json::Value, name: &str, value: serde_json::Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// Reads a body's JSON. An empty body is no JSON.
///
/// # Errors
/// `invalid_json`.
pub fn parse(body: &[u8]) -> Result<Json, Refusal> {
    Json::parse(body).map_err(|why| Refusal::invalid_json(format!("the body {why}")))
}

/// Reads the JSON of a body whose members are all optional: no body is an empty object (CONTRACT 1).
///
/// # Errors
/// `invalid_json`.
pub fn parse_or_empty(body: &[u8]) -> Result<Json, Refusal> {
    parse(if body.is_empty() { b"{}" } else { body })
}

/// Reads a body that says nothing: an object, or no body at all.
///
/// # Errors
/// `invalid_json`, or `invalid_request` where the body is no object.
pub fn nothing(body: &[u8]) -> Result<(), Refusal> {
    let json = parse_or_empty(body)?;
    Fields::of(&json)?.finish(Some(()))
}

/// The members of one object, and what is wrong with those that were read.
#[derive(Debug)]
pub struct Fields<'a> {
    object: &'a Json,
    path: String,
    faults: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    /// The members of a whole body.
    ///
    /// # Errors
    /// `invalid_request` with one fault that names no field, where the body is no object.
    pub fn of(body: &'a Json) -> Result<Self, Refusal> {
        match body {
            Json::Object(_) => Ok(Self { object: body, path: String::new(), faults: Vec::new() }),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => {
                Err(Refusal::invalid_request(vec![FieldError::whole("the body must be an object")]))
            }
        }
    }

    /// The member `name` as sent, unless it is `null` or not there.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name).filter(|it| !it.is_null())
    }

    /// A member that has to be there; `None` where it is missing or wrong, which is noted.
    pub fn required<T>(&mut self, name: &str, read: impl FnOnce(&'a Json) -> Result<T, Invalid>) -> Option<T> {
        match self.raw(name) {
            None => {
                self.note(FieldError::missing(self.at(name)));
                None
            }
            Some(value) => self.take(name, read(value)),
        }
    }

    /// A member that may be there; `None` where it is not or is wrong, which is noted.
    pub fn optional<T>(&mut self, name: &str, read: impl FnOnce(&'a Json) -> Result<T, Invalid>) -> Option<T> {
        let value = self.raw(name)?;
        self.take(name, read(value))
    }

    /// The members of an object within; `None` where it is not there, or is no object, which is noted.
    pub fn nested<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let value = self.raw(name)?;
        self.within(self.at(name), value, read)
    }

    /// The items of a list of objects; `None` where it is not there or anything in it is wrong, which is noted.
    pub fn each<T>(&mut self, name: &str, max: usize, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let list = self.optional(name, |value| list_of(value, 0, max))?;
        let mut out = Vec::with_capacity(list.len());
        let mut whole = true;
        for (place, item) in list.iter().enumerate() {
            let path = format!("{}.{place}", self.at(name));
            match self.within(path, item, &mut read) {
                Some(item) => out.push(item),
                None => whole = false,
            }
        }
        whole.then_some(out)
    }

    /// The items of a list of `min` to `max` texts; `None` where it is not there or anything in it is wrong, which is noted by its
    /// place.
    pub fn texts<T>(
        &mut self,
        name: &str,
        (min, max): (usize, usize),
        mut read: impl FnMut(&'a str) -> Result<T, Invalid>,
    ) -> Option<Vec<T>> {
        let list = self.optional(name, |value| list_of(value, min, max))?;
        let mut out = Vec::with_capacity(list.len());
        for (place, item) in list.iter().enumerate() {
            match text(item).and_then(&mut read) {
                Ok(item) => out.push(item),
                Err(why) => self.fault(&format!("{name}.{place}"), why),
            }
        }
        (out.len() == list.len()).then_some(out)
    }

    /// Notes that a member is missing which is not there.
    pub fn demand(&mut self, name: &str) {
        if self.raw(name).is_none() {
            self.note(FieldError::missing(self.at(name)));
        }
    }

    /// The one value of a header that counts beside the body. One that was sent more than once is noted, so that it hides
    /// no fault of the body.
    pub fn header<'h>(&mut self, headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
        single(headers, name).unwrap_or_else(|refusal| {
            self.faults.extend_from_slice(refusal.errors());
            None
        })
    }

    /// Notes a fault of `name`.
    pub fn fault(&mut self, name: &str, why: Invalid) {
        let path = self.at(name);
        self.note(FieldError::invalid(path, why));
    }

    /// Notes a fault.
    pub fn note(&mut self, fault: FieldError) {
        self.faults.push(fault);
    }

    /// Whether nothing was wrong so far.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Notes every member that is none of `known`: what carries policy must not be passed over.
    pub fn only(&mut self, known: &[&str]) {
        for (name, _) in self.object.as_object().unwrap_or_default() {
            if !known.contains(&name.as_str()) {
                let path = self.at(name);
                self.note(FieldError::new(path, "is not known here"));
            }
        }
    }

    /// The names of the members, in the order in which they were sent.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.object.as_object().unwrap_or_default().iter().map(|(name, _)| name.as_str())
    }

    /// Whether `name` was sent as `null`.
    #[must_use]
    pub fn is_null(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Json::is_null)
    }

    /// The dotted path of the member `name`.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.at(name)
    }

    /// Its place in the list that it is an item of.
    #[must_use]
    pub fn place(&self) -> Option<usize> {
        self.path.rsplit('.').next()?.parse().ok()
    }

    /// Notes faults of this object that its own reader found, where nothing was said before of the same place. Of those themselves one may
    /// lie within another: an object may lack a member and be wrong as a whole.
    pub fn note_beside(&mut self, faults: Vec<FieldError>) {
        let told: Vec<Box<str>> = self.faults.iter().filter_map(|it| it.field.clone()).collect();
        for fault in faults {
            let fault = if self.path.is_empty() { fault } else { fault.within(&self.path) };
            let place = fault.field.as_deref().unwrap_or_default();
            let is_told = told.iter().any(|it| is_within(it, place) || is_within(place, it));
            let is_again = self.faults.iter().any(|it| it.field.as_deref() == Some(place));
            if !is_told && !is_again {
                self.note(fault);
            }
        }
    }

    /// Every fault of the whole body, for a refusal of a type of its own: those that were found, and numbers beyond
    /// ±(2^53 − 1).
    #[must_use]
    pub fn into_all_faults(self) -> Vec<FieldError> {
        self.finish(Some(())).err().map_or_else(Vec::new, |refusal| refusal.errors().to_vec())
    }

    /// What was read and every fault, for a refusal of a type of its own.
    #[must_use]
    pub fn into_faults(self) -> Vec<FieldError> {
        self.faults
    }

    /// What was read, if all of it is sound. An integer beyond ±(2^53 − 1) is a fault wherever it stands, also in a member
    /// that nobody reads: digests would take it for its neighbour.
    ///
    /// # Errors
    /// `invalid_request` with every fault.
    pub fn finish<T>(mut self, made: Option<T>) -> Result<T, Refusal> {
        let mut places = Places { faults: &self.faults, found: Vec::new(), bytes: 0 };
        for (name, value) in self.object.as_object().unwrap_or_default() {
            places.look(value, &self.path, &name);
        }
        for place in places.found {
            self.note(FieldError::invalid(place, Invalid::new("must be within 2^53 − 1 of zero")));
        }
        match made {
            Some(made) if self.faults.is_empty() => Ok(made),
            _ if self.faults.is_empty() => Err(Refusal::internal()),
            _ => Err(Refusal::invalid_request(self.faults)),
        }
    }

    fn within<T>(&mut self, path: String, value: &'a Json, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if value.as_object().is_none() {
            self.note(FieldError::new(path, "must be an object"));
            return None;
        }
        let mut inner = Fields { object: value, path, faults: std::mem::take(&mut self.faults) };
        let before = inner.faults.len();
        let made = read(&mut inner);
        let sound = inner.faults.len() == before;
        self.faults = inner.faults;
        made.filter(|_| sound)
    }

    fn take<T>(&mut self, name: &str, read: Result<T, Invalid>) -> Option<T> {
        read.map_err(|why| self.fault(name, why)).ok()
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

/// Numbers that are named.
const NUMBERS_NAMED_MAX: usize = 20;

/// Whether a dotted path is `outer` or leads into it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Bytes of paths that are named because of a number.
const NUMBERS_NAMED_BYTES: usize = 8 * 1024;

/// The paths of numbers that are too large, where nothing is said yet of them or of what they stand in. A body has room for a hundred
/// thousand, and for names of any length: a path is made only where it leads to one, and what is told stays small.
struct Places<'a> {
    faults: &'a [FieldError],
    found: Vec<String>,
    bytes: usize,
}

impl Places<'_> {
    fn look(&mut self, value: &Json, outer: &str, name: &dyn Display) {
        if self.found.len() == NUMBERS_NAMED_MAX || self.bytes >= NUMBERS_NAMED_BYTES || !value.has_out_of_range() {
            return;
        }
        let path = if outer.is_empty() { name.to_string() } else { format!("{outer}.{name}") };
        if self.faults.iter().filter_map(|it| it.field.as_deref()).any(|told| is_within(&path, told)) {
            return;
        }
        match value {
            Json::Number(_) => {
                self.bytes = self.bytes.saturating_add(path.len());
                self.found.push(path);
            }
            Json::List(items) => items.iter().enumerate().for_each(|(place, it)| self.look(it, &path, &place)),
            Json::Object(members) => members.iter().for_each(|(name, it)| self.look(it, &path, name)),
            Json::Null | Json::Bool(_) | Json::Text(_) => {}
        }
    }
}

/// A text.
///
/// # Errors
/// [`Invalid`] for anything else.
pub fn text(value: &Json) -> Result<&str, Invalid> {
    value.as_str().ok_or_else(|| Invalid::new("must be a string"))
}

/// A whole number within ±(2^53 − 1), without fraction or exponent.
///
/// # Errors
/// [`Invalid`] for anything else.
pub fn integer(value: &Json) -> Result<i64, Invalid> {
    value.as_int().ok_or_else(|| Invalid::new("must be a whole number"))
}

/// An amount of money, in minor units.
///
/// # Errors
/// [`Invalid`] for anything else, also for a number with a fraction, of which nobody knows whether it was meant in whole units.
pub fn amount(value: &Json) -> Result<Amount, Invalid> {
    Amount::new(value.as_int().unwrap_or_default())
}

/// Yes or no.
///
/// # Errors
/// [`Invalid`] for anything else.
pub fn truth(value: &Json) -> Result<bool, Invalid> {
    value.as_bool().ok_or_else(|| Invalid::new("must be true or false"))
}

/// A list of `min` to `max` items.
///
/// # Errors
/// [`Invalid`] for anything else.
pub fn list_of(value: &Json, min: usize, max: usize) -> Result<&[Json], Invalid> {
    let list = value.as_list().ok_or_else(|| Invalid::new("must be an array"))?;
    if (min..=max).contains(&list.len()) {
        Ok(list)
    } else {
        Err(Invalid::new(format!("must hold {min} to {max} items")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn faults(refusal: &Refusal) -> Vec<(Option<&str>, &str)> {
        refusal.errors().iter().map(|it| (it.field.as_deref(), &*it.message)).collect()
    }

    /// Every fault of a body is named, at any depth, by its dotted path.
    #[test]
    fn all_faults_are_named_by_path() {
        let body = parse(br#"{"a":1,"c":{"d":[]},"e":[{"f":"x"},{"f":2},3]}"#).unwrap();
        let mut fields = Fields::of(&body).unwrap();
        let a = fields.required("a", |it| text(it).map(str::to_owned));
        let b = fields.required("b", integer);
        let d = fields.nested("c", |inner| inner.required("d", integer));
        let e = fields.each("e", 5, |item| item.required("f", text));
        assert_eq!((a, b, d, e), (None, None, None, None));
        let refusal = fields.finish(Some(())).unwrap_err();
        let paths: Vec<_> = faults(&refusal).iter().map(|it| it.0.unwrap()).collect();
        assert_eq!(paths, ["a", "b", "c.d", "e.1.f", "e.2"]);
    }

    /// Faults that the whole brings to light are told beside those of its members, each place once, unless a member was wrong already.
    #[test]
    fn faults_of_the_whole_stand_beside_those_of_its_members() {
        let json = parse(br#"{"limits":{}}"#).unwrap();
        let whole = || ["limits.currency", "limits", "limits"].map(|it| FieldError::new(it, "is wrong")).to_vec();
        let mut fields = Fields::of(&json).unwrap();
        fields.note_beside(whole());
        let told = fields.into_faults();
        assert_eq!(
            told.iter().map(|it| it.field.as_deref().unwrap()).collect::<Vec<_>>(),
            ["limits.currency", "limits"]
        );
        let mut fields = Fields::of(&json).unwrap();
        fields.fault("limits.currency", Invalid::new("must be a text"));
        fields.note_beside(whole());
        assert_eq!(fields.into_faults().len(), 1);
    }

    /// Every wrong text of a list is named by its place, and too many of them as one fault.
    #[test]
    fn texts_are_named_by_their_places() {
        let body = parse(br#"{"a":["x","","y",1],"b":["x","x"],"c":["x"]}"#).unwrap();
        let mut fields = Fields::of(&body).unwrap();
        let read = |it: &str| if it.is_empty() { Err(Invalid::new("is empty")) } else { Ok(it.to_owned()) };
        let (a, b) = (fields.texts("a", (0, 4), read), fields.texts("b", (0, 1), read));
        assert_eq!((a, b, fields.texts("c", (1, 1), read)), (None, None, Some(vec!["x".to_owned()])));
        fields.demand("d");
        let refusal = fields.finish(Some(())).unwrap_err();
        let paths: Vec<_> = faults(&refusal).iter().map(|it| it.0.unwrap()).collect();
        assert_eq!(paths, ["a.1", "a.3", "b", "d"]);
    }

    /// A body that carries no policy may have members that nobody knows, as newer clients send them.
    #[test]
    fn unknown_members_are_ignored_where_there_is_no_policy() {
        assert!(key::read_of_agent(br#"{"label":"laptop","more":1}"#).is_ok());
        assert!(drill::read(br#"{"reason":"try","more":1}"#).is_ok());
        assert!(stop::read_lift(br#"{"reason":"over","more":1}"#).is_ok());
        assert!(member::read(br#"{"email":"ann@example.com","role":"member","more":1}"#).is_ok());
        assert!(member::read_change(br#"{"role":"admin","more":1}"#).is_ok());
        assert!(member::read_team(br#"{"name":"Desk","more":1}"#, true).is_ok());
        let bill = br#"{"upstreamId":"ups_00000000000000000000000001","from":"2026-10-01","to":"2026-10-02","more":1,
            "lines":[{"model":"a","day":"2026-10-01","micros":1,"more":1}]}"#;
        assert!(report::read_bill(bill).is_ok(), "{:?}", report::read_bill(bill));
        let known = application::Known {
            asker: svc_core::value::Id::from_bits(1),
            now: svc_core::value::Timestamp::from_millis(0),
            mandate: &|_| None,
        };
        let role = |change: &str| {
            let body = format!(r#"{{"kind":"role","reason":"I lead","more":1,"change":{change}}}"#);
            application::read(body.as_bytes(), &known)
        };
        assert!(role(r#"{"role":"admin","more":1}"#).is_ok());
    }

    /// However many members hold a number that is too large, a few of them are named.
    #[test]
    fn the_numbers_that_are_named_are_few() {
        let members: Vec<String> = (0..80_000).map(|it| format!("\"m{it}\":[9007199254740992]")).collect();
        let body = parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
        let refusal = Fields::of(&body).unwrap().finish(Some(())).unwrap_err();
        assert_eq!(refusal.errors().len(), NUMBERS_NAMED_MAX);
        // Nor does a long name make much of them, however much stands beside.
        let ones = ",1".repeat(100_000);
        let body = format!(r#"{{"{}":[9007199254740992{ones},9007199254740992]}}"#, "n".repeat(200_000));
        let refusal = Fields::of(&parse(body.as_bytes()).unwrap()).unwrap().finish(Some(())).unwrap_err();
        assert_eq!(refusal.errors().len(), 1);
    }

    /// What is no object is one fault of the whole body; `null` members count as not sent.
    #[test]
    fn bodies_are_objects_and_null_is_nothing() {
        for body in ["[]", "1", "null", "\"x\"", "true"] {
            let json = parse(body.as_bytes()).unwrap();
            assert_eq!(Fields::of(&json).unwrap_err().errors()[0].field, None, "{body}");
        }
        let body = parse(br#"{"a":null}"#).unwrap();
        let mut fields = Fields::of(&body).unwrap();
        assert_eq!(fields.optional("a", integer), None);
        assert!(fields.is_sound());
        assert!(parse(b"").is_err());
    }
}
