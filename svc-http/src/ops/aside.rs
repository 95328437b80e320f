//! What reads very many rows: on threads of its own, a few at a time, so that no other request waits for it. Whoever asks for it
//! without end is refused, so that others of its kind do not wait for long either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use svc_core::refusal::Refusal;
use svc_core::rules::people::by::By;
use svc_core::value::Id;
use svc_core::value::id::WorkspaceId;

use crate::shares::Shares;
use crate::turns::Turns;

/// How many of it run at once; others wait for their turn.
const ASIDE_MAX: usize = 3;
/// And of one workspace.
const OF_WORKSPACE_MAX: usize = 2;
/// How many of one asker run or wait.
const OF_ONE_MAX: usize = 8;

/// Places for it.
#[derive(Debug)]
pub(crate) struct Aside {
    turns: Turns<u128>,
    asked: Shares<u128>,
}

/// Whose turn it is, and who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// The bits of a workspace, or of an account that is in none.
    turn: u128,
    /// Those of a person, a token, a key or an agent.
    own: u128,
}

/// Whether anybody still waits for what is being done.
#[derive(Clone, Debug)]
pub(crate) struct Awaited(Arc<AtomicBool>);

impl Awaited {
    /// Goes on where somebody does.
    ///
    /// # Errors
    /// `not_ready`, which nobody hears.
    pub(crate) fn go_on(&self) -> Result<(), Refusal> {
        if self.0.load(Ordering::Relaxed) { Ok(()) } else { Err(Refusal::not_ready()) }
    }
}

/// Says that nobody waits any more, once it is dropped.
struct Waiting(Awaited);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

impl Default for Aside {
    fn default() -> Self {
        Self { turns: Turns::new(ASIDE_MAX, OF_WORKSPACE_MAX), asked: Shares::new(usize::MAX, OF_ONE_MAX) }
    }
}

impl Aside {
    /// Has `work` done for the asker. Whoever goes away meanwhile gives no place free before it is done.
    ///
    /// # Errors
    /// Those of `work`; `not_ready` where the asker has asked for too much already; `internal` where it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        asker: Asker,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.run_awaited(asker, |_| work()).await
    }

    /// The same for what takes long: it is told whether anybody still waits for it, and is to end where nobody does.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub(crate) async fn run_awaited<T: Send + 'static>(
        &self,
        asker: Asker,
        work: impl FnOnce(&Awaited) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let asked = self.asked.take(asker.own).ok_or_else(Refusal::not_ready)?;
        let turn = self.turns.take(asker.turn).await?;
        let awaited = Awaited(Arc::new(AtomicBool::new(true)));
        let _waiting = Waiting(awaited.clone());
        let done = crate::at_hand::spawn_blocking(move || {
            let done = work(&awaited);
            drop((turn, asked));
            done
        });
        done.await.map_err(|_| Refusal::internal())?
    }
}

impl Asker {
    /// Who asks on their own behalf, in no workspace or in this one.
    pub(super) fn own(own: impl Id, workspace: Option<WorkspaceId>) -> Self {
        let own = own.bits();
        Self { turn: workspace.map_or(own, |it| it.bits()), own }
    }

    /// Who asks for this.
    pub(super) fn of(by: &By, workspace: WorkspaceId) -> Self {
        let own = match by {
            By::Program => 0,
            By::Person(person) => person.principal.bits(),
            By::Token(token) => token.token.bits(),
            By::Key(key) => key.key.bits(),
        };
        Self { turn: workspace.bits(), own }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use svc_core::refusal::Kind;
    use svc_core::value::id::AgentId;

    use super::*;

    fn agent(workspace: u128, own: u128) -> Asker {
        Asker::own(AgentId::from_bits(own), Some(WorkspaceId::from_bits(workspace)))
    }

    /// As many run at once as there are places and no more, also where those who asked are gone; what panics gives its place free.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_few_run_at_once() {
        let (aside, running, most) =
            (Arc::new(Aside::default()), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let together = Arc::new(Barrier::new(ASIDE_MAX));
        let mut asked = Vec::new();
        for number in 0..8 * ASIDE_MAX {
            let (aside, running) = (Arc::clone(&aside), Arc::clone(&running));
            let (most, together) = (Arc::clone(&most), Arc::clone(&together));
            asked.push(tokio::spawn(async move {
                let work = move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    together.wait();
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(number)
                };
                aside.run(agent(number as u128, number as u128), work).await
            }));
        }
        for (number, it) in asked.into_iter().enumerate() {
            assert_eq!(it.await.unwrap().ok(), Some(number));
        }
        assert_eq!(most.load(Ordering::SeqCst), ASIDE_MAX);
        for _ in 0..2 * ASIDE_MAX {
            assert!(aside.run::<()>(agent(1, 1), || panic!("as it may")).await.is_err());
        }
        assert!(aside.run(agent(1, 1), || Ok(())).await.is_ok());
        let all: Vec<_> = (0..OF_ONE_MAX).map(|_| aside.asked.take(1).unwrap()).collect();
        assert_eq!(aside.run(agent(1, 1), || Ok(())).await.map_err(|it| it.kind()), Err(Kind::NotReady));
        assert!(aside.run(agent(1, 2), || Ok(())).await.is_ok(), "another is not kept waiting for it");
        drop(all);
        assert!(aside.run(agent(1, 1), || Ok(())).await.is_ok());
    }

    /// Of one workspace's, whoever asks for them, fewer run at once than there are places.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_workspace_leaves_a_place() {
        let aside = Arc::new(Aside::default());
        let (go, gone) = std::sync::mpsc::sync_channel::<()>(0);
        let gone = Arc::new(std::sync::Mutex::new(gone));
        let mut asked = Vec::new();
        for own in 0..2 * ASIDE_MAX {
            let (aside, gone) = (Arc::clone(&aside), Arc::clone(&gone));
            let work = move || {
                let _ = gone.lock().unwrap().recv();
                Ok(())
            };
            asked.push(tokio::spawn(async move { aside.run(agent(1, own as u128), work).await }));
        }
        tokio::task::yield_now().await;
        assert!(aside.run(agent(2, 100), || Ok(())).await.is_ok());
        drop(go);
        for it in asked {
            assert!(it.await.unwrap().is_ok());
        }
    }

    /// What nobody waits for any more is told so, and gives its place free.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_nobody_awaits_ends() {
        let aside = Arc::new(Aside::default());
        let (begun, began) = tokio::sync::oneshot::channel();
        let (told, ended) = tokio::sync::oneshot::channel();
        let work = move |awaited: &Awaited| {
            begun.send(()).unwrap();
            while awaited.go_on().is_ok() {
                std::thread::yield_now();
            }
            told.send(()).unwrap();
            awaited.go_on()
        };
        let (own, asker) = (Arc::clone(&aside), agent(1, 1));
        let asked = tokio::spawn(async move { own.run_awaited(asker, work).await });
        began.await.unwrap();
        asked.abort();
        ended.await.unwrap();
        assert!(aside.run(asker, || Ok(())).await.is_ok());
    }
}
