//! Which service tokens and keys end before long, or have ended a while ago: whoever calls with one is not told beforehand.
//!
//! **Invariant:** they are named by their ids and by what people call them, and by nothing that can be called with.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use svc_core::state::people::{Credential, ServiceToken, TokenName};
use svc_core::store::{Found, Key, Range, Row as _, Store};
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Span, Timestamp};
use svc_http::clock;
use svc_http::config::Config;
use svc_store::StoreError;

use super::Finding::{self, Odd, Well};
use super::data::broken;
use crate::cli::database::{Database, is_current};

/// What ends within this is told beforehand.
const SOON_DAYS: i64 = 14;
/// What ended longer ago than this is missed by nobody.
const PAST_DAYS: i64 = 30;
/// How many are named; of more it is told how many.
const NAMED_MAX: usize = 20;
/// Rows that are read together.
const PAGE: usize = 500;
/// How long is looked.
const PATIENCE: Duration = Duration::from_secs(5);

/// What ends, where there is a database of this release that can be read.
pub(super) fn soon(config: &Config) -> Option<Finding> {
    if !is_current(config) {
        return None;
    }
    let mut look = Look { now: clock::now(), began: Instant::now(), ends: BTreeSet::new(), more: 0, is_all: true };
    let read = Database::existing(config).and_then(|it| it.reader());
    Some(match read.and_then(|mut reader| look.over(&mut *reader)) {
        Ok(()) => look.told(),
        Err(error) => broken(error),
    })
}

/// What was found until now.
struct Look {
    now: Timestamp,
    began: Instant,
    /// When what ends: the first of them.
    ends: BTreeSet<(Timestamp, String)>,
    /// How many more there are.
    more: usize,
    is_all: bool,
}

impl Look {
    fn over(&mut self, store: &mut dyn Store<Error = StoreError>) -> Result<(), StoreError> {
        let mut workspaces = Range::all(Index::Workspaces, 0, PAGE);
        loop {
            let page = store.scan(&workspaces)?;
            let id = |it: &Found| if let Key::Workspace(id) = it.row.key { Some(id) } else { None };
            for workspace in page.iter().filter_map(id) {
                self.each(store, Index::TokensOf, workspace)?;
                self.each(store, Index::KeysOf, workspace)?;
            }
            if !self.is_all || !workspaces.turn_page(&page) {
                return Ok(());
            }
        }
    }

    fn each(
        &mut self,
        store: &mut dyn Store<Error = StoreError>,
        index: Index,
        workspace: WorkspaceId,
    ) -> Result<(), StoreError> {
        let mut range = Range { newest_first: true, ..Range::all(index, workspace.bits(), PAGE) };
        loop {
            self.is_all &= self.began.elapsed() < PATIENCE;
            if !self.is_all {
                return Ok(());
            }
            let page = store.scan(&range)?;
            for found in &page {
                let record = found.row.record.as_ref();
                if let Some(token) = record.and_then(ServiceToken::peel) {
                    self.token(store, token)?;
                } else if let Some(key) = record.and_then(Credential::peel) {
                    self.key(key);
                }
            }
            if !range.turn_page(&page) {
                return Ok(());
            }
        }
    }

    /// One that ended and has a successor by its name is not missed.
    fn token(&mut self, store: &mut dyn Store<Error = StoreError>, token: &ServiceToken) -> Result<(), StoreError> {
        if token.revoked_at.is_some() || !self.is_near(token.expires_at) {
            return Ok(());
        }
        if token.expires_at <= self.now {
            let row = store.load(&[TokenName::key(TokenName::id_of(token.workspace, &token.name))])?;
            let newest = row.iter().find_map(|it| it.record.as_ref().and_then(TokenName::peel));
            if newest.is_some_and(|it| it.token != token.id) {
                return Ok(());
            }
        }
        self.note(token.expires_at, format!("service token `{}` ({})", token.name, token.token));
        Ok(())
    }

    fn key(&mut self, key: &Credential) {
        let Some(end) = key.expires_at.filter(|it| key.revoked_at.is_none() && self.is_near(*it)) else { return };
        let label = key.label.as_ref().map(|it| format!(" `{it}`")).unwrap_or_default();
        self.note(end, format!("key{label} ({})", key.binding.key));
    }

    fn is_near(&self, end: Timestamp) -> bool {
        self.now.minus(Span::hours(PAST_DAYS * 24)) < end && end < self.now.plus(Span::hours(SOON_DAYS * 24))
    }

    fn note(&mut self, end: Timestamp, what: String) {
        self.ends.insert((end, what));
        if self.ends.len() > NAMED_MAX {
            self.ends.pop_last();
            self.more = self.more.saturating_add(1);
        }
    }

    fn told(self) -> Finding {
        let rest = if self.is_all { "" } else { "; not all were looked at" };
        if self.ends.is_empty() {
            return Well(format!("none ends within {SOON_DAYS} days{rest}"));
        }
        let one = |(end, what): &(Timestamp, String)| {
            let verb = if *end <= self.now { "ended" } else { "ends" };
            format!("{what} {verb} at {end}")
        };
        let mut told: Vec<String> = self.ends.iter().map(one).collect();
        if self.more > 0 {
            told.push(format!("{} more", self.more));
        }
        Odd(
            format!("{}{rest}", told.join("; ")),
            "Make another with `svc token create` or `svc key create`, give it to whoever calls with this one, and then revoke it."
                .to_owned(),
        )
    }
}
