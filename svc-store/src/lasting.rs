//! A trouble that lasts, as a database that is away does: it is logged when it begins, for each cause that it has, and when it is
//! over, but not at every try.

use std::error::Error;

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
}
