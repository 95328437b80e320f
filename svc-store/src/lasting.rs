//! A trouble that lasts, as a database that is away does: it is logged when it begins, for each cause that it has, and when it is
//! over, but not at every try.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An error with all that lies behind it, in one text: what writes lines as JSON writes of an error the outermost alone.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes: Vec<String> = std::iter::successors(Some(error), |&it| it.source()).map(ToString::to_string).collect();
    causes.join(": ")
}

/// Causes of one trouble that are told: one that changes with every try is told no more often than that.
const CAUSES_MAX: usize = 4;

/// What the log was told of one kind of try since it began to fail.
#[derive(Debug, Default)]
pub struct Lasting {
    causes: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Trouble(String),
    Over,
}

impl Lasting {
    /// Takes in how a try ended, and logs it where it is news. `trouble` says what cannot be done while tries fail.
    pub fn see(&mut self, trouble: &'static str, failure: Option<&(dyn Error + 'static)>) {
        match self.news(failure) {
            Some(News::Trouble(cause)) => tracing::warn!(error = %cause, "{trouble}"),
            Some(News::Over) => tracing::info!(trouble, "a trouble is over"),
            None => {}
        }
    }

    /// The same for what keeps callers from an answer: an error, not a warning.
    pub(crate) fn see_grave(&mut self, trouble: &'static str, failure: Option<&(dyn Error + 'static)>) {
        match self.news(failure) {
            Some(News::Trouble(cause)) => tracing::error!(error = %cause, "{trouble}"),
            Some(News::Over) => tracing::info!(trouble, "a trouble is over"),
            None => {}
        }
    }

    /// How many causes of what goes on were told.
    #[cfg(test)]
    pub(crate) fn told(&self) -> usize {
        self.causes.len()
    }

    fn news(&mut self, failure: Option<&(dyn Error + 'static)>) -> Option<News> {
        let Some(failure) = failure else {
            let was_told = !self.causes.is_empty();
            self.causes.clear();
            return was_told.then_some(News::Over);
        };
        let cause = with_causes(failure);
        if self.causes.len() >= CAUSES_MAX || self.causes.contains(&cause) {
            return None;
        }
        self.causes.push(cause.clone());
        Some(News::Trouble(cause))
    }
}

/// What fails for many callers at once, as everything does on a full disk: each cause is logged once a minute, with how often it
/// came since, and nobody has to say when it is over.
#[derive(Debug, Default)]
pub struct Repeated(Mutex<Vec<Told>>);

#[derive(Debug)]
struct Told {
    cause: String,
    at: Instant,
    since: u64,
}

/// How long a cause that was told is only counted.
const REST: Duration = Duration::from_secs(60);

impl Repeated {
    /// Nothing was told yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Takes in a failure, and logs it where it is news. `what` says what became of it.
    pub fn tell(&self, what: &'static str, failure: &(dyn Error + 'static)) {
        let cause = with_causes(failure);
        match self.news(&cause, Instant::now()) {
            Some(0) => tracing::error!(error = %cause, "{what}"),
            Some(repeated) => tracing::error!(error = %cause, repeated, "{what}"),
            None => {}
        }
    }

    /// How often the cause came since it was told last, where it is to be told now.
    fn news(&self, cause: &str, now: Instant) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = all.iter_mut().find(|it| it.cause == cause) {
            if now.saturating_duration_since(told.at) < REST {
                told.since = told.since.saturating_add(1);
                return None;
            }
            told.at = now;
            return Some(std::mem::take(&mut told.since));
        }
        if all.len() >= CAUSES_MAX {
            // In the order in which they were first told; one that is forgotten is told again.
            all.remove(0);
        }
        all.push(Told { cause: cause.to_owned(), at: now, since: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreError;

    fn told(tries: &[Option<StoreError>]) -> Vec<Option<&'static str>> {
        let mut it = Lasting::default();
        let news = tries.iter().map(|failure| it.news(failure.as_ref().map(|error| error as &dyn Error)));
        news.map(|it| it.map(|news| if news == News::Over { "over" } else { "trouble" })).collect()
    }

    /// What lies behind an error is told with it.
    #[test]
    fn an_error_is_told_with_its_causes() {
        let disk = std::io::Error::other("quota exceeded");
        let full = StoreError::Full(std::sync::Arc::new(disk));
        let failure = svc_core::engine::Failure::Load(full);
        let told = with_causes(&failure);
        assert!(told.contains("the disk is full") && told.ends_with(": quota exceeded"), "{told}");
    }

    /// Each cause of a trouble is told once, whatever comes between, and its end once.
    #[test]
    fn what_lasts_is_told_once() {
        let (panicked, closed) = (|| Some(StoreError::Panicked), || Some(StoreError::Closed));
        let tries = [None, panicked(), panicked(), closed(), panicked(), closed(), None, None, closed()];
        let (trouble, over) = (Some("trouble"), Some("over"));
        assert_eq!(told(&tries), [None, trouble, None, trouble, None, None, over, None, trouble]);
    }

    /// A cause that is another at every try is told a few times.
    #[test]
    fn what_changes_is_told_a_few_times() {
        let other = |it: usize| Some(StoreError::NoData { path: it.to_string().into() });
        let tries: Vec<Option<StoreError>> = (0..100).map(other).chain([None]).collect();
        let told = told(&tries);
        assert_eq!(told.iter().filter(|it| **it == Some("trouble")).count(), CAUSES_MAX);
        assert_eq!(told.last(), Some(&Some("over")));
    }

    /// What fails for each of many is told once a minute, with how often it came; another cause is told beside it, and few are kept.
    #[test]
    fn what_many_meet_is_told_once_a_minute() {
        let (it, begun) = (Repeated::new(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(it.news("full", at(0)), Some(0));
        assert!((1..60).all(|second| it.news("full", at(second)).is_none()));
        assert_eq!(it.news("gone", at(30)), Some(0));
        assert_eq!(it.news("full", at(60)), Some(59));
        assert_eq!(it.news("full", at(61)), None);
        for other in 0..100 {
            assert_eq!(it.news(&other.to_string(), at(62)), Some(0));
        }
        assert_eq!(it.0.lock().unwrap_or_else(PoisonError::into_inner).len(), CAUSES_MAX);
    }
}
