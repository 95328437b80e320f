//! Meeting a server for a session, one at a time: calls that come at once find one session, not one each, of which the server would
//! have to keep all or end some under the calls in them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::trouble::Trouble;

/// Whose turn it is, and why the last one to have had it met nobody.
type Turn = tokio::sync::Mutex<Option<(Instant, Trouble)>>;

/// The meetings with one server that are under way, by session.
#[derive(Debug, Default)]
pub(super) struct Meetings(Mutex<HashMap<Box<str>, Arc<Turn>>>);

/// Somebody who meets the server or waits for whoever does.
struct Waiting<'a> {
    meetings: &'a Meetings,
    session: &'a str,
    turn: Arc<Turn>,
}

impl Meetings {
    /// What `met` gives once there is something; until then who come at once `meet` one after the other. That there is nobody to be
    /// met is found out for all who wait for it: each would else wait for the server's time-out behind the others.
    ///
    /// # Errors
    /// Those of `meet`.
    pub(super) async fn share<T>(
        &self,
        session: &str,
        met: impl Fn() -> Option<T>,
        meet: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let came = Instant::now();
        let waiting = self.wait(session);
        let mut failed = waiting.turn.lock().await;
        if let Some(met) = met() {
            return Ok(met);
        }
        if let Some((_, why)) = failed.as_ref().filter(|(at, _)| *at >= came) {
            return Err(why.clone());
        }
        let met = meet.await;
        *failed = met.as_ref().err().map(|why| (Instant::now(), why.clone()));
        met
    }

    fn wait<'a>(&'a self, session: &'a str) -> Waiting<'a> {
        let turn = Arc::clone(self.held().entry(session.into()).or_default());
        Waiting { meetings: self, session, turn }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Turn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut held = self.meetings.held();
        // The map's own and this one: nobody else waits, and nobody can begin to before this is over.
        if Arc::strong_count(&self.turn) == 2 {
            held.remove(self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::yield_now;

    use super::*;

    /// Who come at once share one meeting, or why there is none; who come later, or for another session, have one of their own;
    /// where whoever meets goes away, the next one does. Nothing is kept of it.
    #[tokio::test]
    async fn who_come_at_once_share_a_meeting() {
        let meetings = Meetings::default();
        let (met, count) = (Cell::new(None::<u32>), Cell::new(0));
        let meet = async |fails: bool| {
            count.set(count.get() + 1);
            yield_now().await;
            if fails {
                return Err(Trouble::NoSession);
            }
            met.set(Some(count.get()));
            Ok(count.get())
        };
        let share = async |session, fails| meetings.share(session, || met.get(), meet(fails)).await;
        let all = tokio::join!(share("a", true), share("a", true), share("a", true));
        assert_eq!(all, (Err(Trouble::NoSession), Err(Trouble::NoSession), Err(Trouble::NoSession)));
        assert_eq!(count.get(), 1);
        assert_eq!(share("a", true).await, Err(Trouble::NoSession));
        assert_eq!(count.get(), 2, "who comes later tries again");
        let gone = tokio::select! {
            biased;
            _ = share("a", false) => false,
            () = async {} => true,
        };
        assert!(gone && met.get().is_none());
        assert_eq!(tokio::join!(share("a", false), share("a", false)), (Ok(4), Ok(4)));
        met.set(None);
        assert_eq!(
            tokio::join!(share("a", true), share("b", true)),
            (Err(Trouble::NoSession), Err(Trouble::NoSession))
        );
        assert_eq!(count.get(), 6, "another session is another meeting");
        assert!(meetings.held().is_empty());
    }
}
