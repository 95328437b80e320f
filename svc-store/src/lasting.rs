//! A trouble that lasts, as a database that is away does: it is logged when it begins, when its cause becomes another, and when it is
//! over, but not at every try.

use std::error::Error;

/// What the log was last told of one kind of try.
#[derive(Debug, Default)]
pub struct Lasting {
    cause: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Trouble,
    Over,
}

impl Lasting {
    /// Takes in how a try ended, and logs it where it is news. `trouble` says what cannot be done while tries fail.
    pub fn see(&mut self, trouble: &'static str, failure: Option<&(dyn Error + 'static)>) {
        match (self.news(failure), failure) {
            (Some(News::Trouble), Some(error)) => tracing::warn!(error, "{trouble}"),
            (Some(News::Over), _) => tracing::info!(trouble, "a trouble is over"),
            _ => {}
        }
    }

    fn news(&mut self, failure: Option<&(dyn Error + 'static)>) -> Option<News> {
        let cause = failure.map(|error| {
            let causes: Vec<String> =
                std::iter::successors(Some(error), |&it| it.source()).map(ToString::to_string).collect();
            causes.join(": ")
        });
        if cause == self.cause {
            return None;
        }
        self.cause = cause;
        Some(if self.cause.is_some() { News::Trouble } else { News::Over })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreError;

    /// A trouble is told once, another one again, and its end once.
    #[test]
    fn what_lasts_is_told_once() {
        let (mut it, full, closed) = (Lasting::default(), StoreError::Panicked, StoreError::Closed);
        let told = [None, Some(&full), Some(&full), Some(&closed), Some(&closed), None, None, Some(&full)]
            .map(|failure| it.news(failure.map(|error| error as &dyn Error)));
        let [trouble, over] = [|| Some(News::Trouble), || Some(News::Over)];
        assert_eq!(told, [None, trouble(), None, trouble(), None, over(), None, trouble()]);
    }
}
