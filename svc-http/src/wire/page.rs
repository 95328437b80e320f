//! Lists: `limit`, an opaque `cursor`, and `{ "data": [...], "nextCursor": … }` (CONTRACT part 1, "Lists").

use std::borrow::Cow;
use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::store::{Found, Key, Range};
use svc_core::value::Timestamp;
use svc_core::value::period::{Zone, day_of};

/// Items of one page at most.
pub const PAGE_MAX: usize = 500;
/// Items of a page where nothing is said.
pub const PAGE_DEFAULT: usize = 100;
/// Bytes that tell one list's cursors from another's.
const MARK_BYTES: usize = 4;

/// The answer of a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<T> {
    data: Vec<T>,
    next_cursor: Option<String>,
}

/// The members of a query, each at most once.
#[derive(Debug)]
pub struct Query {
    pairs: Vec<(String, String)>,
    faults: Vec<FieldError>,
}

impl Query {
    /// Reads the query of a request.
    #[must_use]
    pub fn of(uri: &http::Uri) -> Self {
        let mut query = Self { pairs: Vec::new(), faults: Vec::new() };
        for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            if query.pairs.iter().any(|(known, _)| *known == *name) {
                query.fault(&name, "was sent more than once");
            } else {
                query.pairs.push((Cow::into_owned(name), Cow::into_owned(value)));
            }
        }
        query
    }

    /// Reads the query of a request whose route has the parameters `names`, and notes every other: a misspelt filter must not be
    /// silently none.
    #[must_use]
    pub fn among(uri: &http::Uri, names: &[&str]) -> Self {
        let mut query = Self::of(uri);
        query.only(names);
        query
    }

    /// A parameter as it was sent; an empty one counts as sent.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter read by `read`; `None` where it is not there or is wrong, which is noted.
    pub fn take<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        match read(self.raw(name)?) {
            Ok(value) => Some(value),
            Err(why) => {
                self.fault(name, &why);
                None
            }
        }
    }

    /// A moment: an instant, or a day, which stands for its first instant in the workspace's zone.
    pub fn moment(&mut self, name: &str, zone: &Zone) -> Option<Timestamp> {
        self.take(name, |text| match day_of(text) {
            Ok(day) => Ok(zone.start(day)),
            Err(_) => Timestamp::parse(text)
                .map_err(|_| "must be a time such as 2026-10-01T09:30:00.000Z or a date such as 2026-10-01".to_owned()),
        })
    }

    /// `from` and `to`, of which the second is the later.
    pub fn span(&mut self, zone: &Zone) -> Span {
        let span = Span { from: self.moment("from", zone), to: self.moment("to", zone) };
        if span.from.zip(span.to).is_some_and(|(from, to)| from >= to) {
            self.fault("to", "must be later than `from`");
        }
        span
    }

    /// Notes every parameter that is none of `names`.
    fn only(&mut self, names: &[&str]) {
        let known = names.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
        let why = match names {
            [] => "is no parameter here: there is none".to_owned(),
            _ => format!("is no parameter here: there are {known}"),
        };
        // What is no parameter is nothing else besides, whatever a reader that several routes share makes of its value.
        let unknown = self.pairs.extract_if(.., |(name, _)| !names.contains(&name.as_str()));
        self.faults.extend(unknown.map(|(name, _)| FieldError::new(name, &why)));
    }

    /// Notes a fault of a parameter.
    pub fn fault(&mut self, name: &str, why: &str) {
        self.faults.push(FieldError::new(name.to_owned(), why));
    }

    /// `limit` and `cursor` of the list called `list` of a workspace, or of whatever else `of` names; its parts depend on the other
    /// parameters that it is asked with.
    pub fn page(&mut self, list: &str, of: impl Display) -> Page {
        let limit = self.take("limit", |text| match text.parse::<usize>() {
            Ok(limit) if (1..=PAGE_MAX).contains(&limit) && !text.starts_with('+') => Ok(limit),
            _ => Err(format!("must be a whole number between 1 and {PAGE_MAX}")),
        });
        let mark = self.mark(&format!("{list}\n{of}"));
        let after =
            self.take("cursor", |text| read_cursor(text, mark).ok_or_else(|| "is no cursor of this list".to_owned()));
        Page { limit: limit.unwrap_or(PAGE_DEFAULT), after, mark }
    }

    /// What was read, if all of it is sound.
    ///
    /// # Errors
    /// `invalid_request` with every fault.
    pub fn finish(self) -> Result<(), Refusal> {
        if self.faults.is_empty() { Ok(()) } else { Err(Refusal::invalid_request(self.faults)) }
    }

    /// Every fault, where there are more to be told of a body beside.
    #[must_use]
    pub fn into_faults(self) -> Vec<FieldError> {
        self.faults
    }

    fn mark(&self, list: &str) -> [u8; MARK_BYTES] {
        let mut others: Vec<&(String, String)> =
            self.pairs.iter().filter(|(name, _)| name != "limit" && name != "cursor").collect();
        others.sort();
        let mut hash = Sha256::new().chain_update(list);
        for (name, value) in others {
            hash.update(format!("\n{}:{name}={value}", name.len()));
        }
        let digest: [u8; 32] = hash.finalize().into();
        digest.first_chunk().copied().unwrap_or_default()
    }
}

/// From an instant on, up to another; where one is missing, without that bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Span {
    /// The part of `range` that lies in it, where `order` is the first place of an instant.
    #[must_use]
    pub fn of(self, range: Range, order: impl Fn(Timestamp) -> u128) -> Range {
        Range { from: self.from.map_or(range.from, &order), until: self.to.map_or(range.until, &order), ..range }
    }
}

/// Which part of a list is asked for.
#[derive(Clone, Debug)]
pub struct Page {
    /// How many items.
    pub limit: usize,
    /// Behind which row.
    pub after: Option<(u128, Key)>,
    mark: [u8; MARK_BYTES],
}

impl Page {
    /// The part of `range` that is asked for, and one row more to see whether there is more.
    #[must_use]
    pub fn of(&self, range: Range) -> Range {
        Range { after: self.after, limit: self.limit.saturating_add(1), ..range }
    }

    /// The answer, of rows that were scanned with [`Page::of`]. `write` gives the item of a row.
    ///
    /// # Errors
    /// What `write` refuses with.
    pub fn answer(
        &self,
        found: &[Found],
        mut write: impl FnMut(&Found) -> Result<Option<Value>, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        let shown = found.get(..self.limit).unwrap_or(found);
        let mut data = Vec::with_capacity(shown.len());
        for row in shown {
            data.extend(write(row)?);
        }
        let next = shown.last().filter(|_| found.len() > self.limit).map(|last| self.cursor(last.order, last.row.key));
        self.list(data, next)
    }

    /// The answer, of items that were gathered otherwise.
    ///
    /// # Errors
    /// None that a test does not rule out.
    pub fn list<T: Serialize>(&self, data: Vec<T>, next: Option<String>) -> Result<Vec<u8>, Refusal> {
        serde_json::to_vec(&List { data, next_cursor: next }).map_err(|_| Refusal::internal())
    }

    /// The answer, of all there are, the newest first; `place` gives where an item stands, `write` the item.
    ///
    /// # Errors
    /// None that a test does not rule out.
    pub fn of_all<T>(
        &self,
        all: &[T],
        place: impl Fn(&T) -> (u128, Key),
        write: impl Fn(&T) -> Value,
    ) -> Result<Vec<u8>, Refusal> {
        let after = self.after.map(|(order, _)| order);
        let rest: Vec<&T> = all.iter().filter(|it| after.is_none_or(|after| place(it).0 < after)).collect();
        let shown = rest.get(..self.limit).unwrap_or(&rest);
        let last = shown.last().filter(|_| rest.len() > self.limit).map(|it| place(it));
        let next = last.map(|(order, key)| self.cursor(order, key));
        self.list(shown.iter().map(|it| write(it)).collect(), next)
    }

    /// The cursor of what follows the row with this order and key.
    #[must_use]
    pub fn cursor(&self, order: u128, key: Key) -> String {
        let mut bytes = self.mark.to_vec();
        bytes.extend_from_slice(&order.to_be_bytes());
        let place = svc_core::store::Table::ALL.iter().position(|it| *it == key.table()).unwrap_or(0);
        bytes.push(u8::try_from(place).unwrap_or(u8::MAX));
        bytes.extend_from_slice(key.encode().as_ref());
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

fn read_cursor(text: &str, mark: [u8; MARK_BYTES]) -> Option<(u128, Key)> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (own, rest) = bytes.split_first_chunk::<MARK_BYTES>()?;
    let (order, rest) = rest.split_first_chunk::<16>()?;
    let (place, key) = rest.split_first()?;
    let table = svc_core::store::Table::ALL.get(usize::from(*place))?;
    let key = Key::decode(*table, key)?;
    (*own == mark).then_some((u128::from_be_bytes(*order), key))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::state::gate::Agent;
    use svc_core::store::Row as _;
    use svc_core::value::Id as _;
    use svc_core::value::id::AgentId;

    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/x?{text}").parse().unwrap())
    }

    /// A cursor leads on in its own list alone, of its own workspace and asked with the same filters.
    #[test]
    fn a_cursor_is_good_for_its_own_list() {
        let key = Agent::key(AgentId::from_bits(7));
        let cursor = query("state=waiting").page("approvals", "wsp_1").cursor(9, key);
        let of = |list: &str, of: &str, text: String| {
            let mut query = query(&text);
            let page = query.page(list, of);
            (query.finish().is_ok(), page.after)
        };
        let read = |list: &str, text: String| of(list, "wsp_1", text);
        assert_eq!(of("approvals", "wsp_2", format!("state=waiting&cursor={cursor}")), (false, None));
        assert_eq!(read("approvals", format!("state=waiting&limit=3&cursor={cursor}")), (true, Some((9, key))));
        assert_eq!(read("approvals", format!("state=denied&cursor={cursor}")), (false, None));
        assert_eq!(read("agents", format!("state=waiting&cursor={cursor}")), (false, None));
        for bad in ["", "x", "AAAA", &cursor[1..], &format!("{cursor}A")] {
            assert_eq!(read("approvals", format!("state=waiting&cursor={bad}")), (false, None), "{bad}");
        }
    }

    /// The number of items has bounds, and a parameter that comes twice is a fault.
    #[test]
    fn limits_have_bounds() {
        for (text, limit) in [("", 100), ("limit=1", 1), ("limit=500", 500)] {
            let mut query = query(text);
            assert_eq!((query.page("x", "wsp_1").limit, query.finish().is_ok()), (limit, true), "{text}");
        }
        for text in ["limit=0", "limit=501", "limit=-1", "limit=+5", "limit=", "limit=1e2", "limit=5&limit=5"] {
            let mut query = query(text);
            query.page("x", "wsp_1");
            let refusal = query.finish().unwrap_err();
            assert_eq!(refusal.errors().first().unwrap().field.as_deref(), Some("limit"), "{text}");
        }
    }

    /// A day stands for its first instant where the workspace is; what is neither a day nor an instant is none.
    #[test]
    fn a_day_is_a_moment() {
        let zone = Zone::parse("Europe/Vienna").unwrap();
        for (text, at) in [
            ("2026-10-02", Some("2026-10-01T22:00:00.000Z")),
            ("2026-10-02T09:30:00Z", Some("2026-10-02T09:30:00.000Z")),
            ("2026-13-02", None),
            ("", None),
        ] {
            let mut query = query(&format!("from={text}"));
            assert_eq!(query.moment("from", &zone).map(|it| it.to_string()).as_deref(), at, "{text}");
            assert_eq!(query.finish().is_ok(), at.is_some(), "{text}");
        }
    }

    /// What is not among a route's parameters is named with those that are.
    #[test]
    fn a_parameter_that_there_is_not_is_named() {
        let uri = "/x?agentID=1&limit=2".parse().unwrap();
        let refused = Query::among(&uri, &["limit", "agentId"]).finish().unwrap_err();
        assert_eq!(refused.message(), "`agentID` is no parameter here: there are `limit`, `agentId`");
        assert!(Query::among(&uri, &["limit", "agentID"]).finish().is_ok());
        let mut query = Query::among(&uri, &["limit"]);
        assert_eq!(query.take("agentID", |_| Err::<(), _>("is wrong".to_owned())), None);
        assert_eq!(query.finish().unwrap_err().errors().len(), 1, "what is no parameter is told once");
    }
}
