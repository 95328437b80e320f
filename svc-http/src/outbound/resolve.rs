//! From a host's name to its addresses.
//!
//! **Invariant:** whoever names hosts whose servers never answer, be it a workspace or a stranger, leaves others places to have theirs
//! looked up.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use svc_core::value::id::WorkspaceId;
use tokio::sync::watch;

use crate::address::RateAddress;
use crate::turns::{Turn, Turns};

/// Addresses that are looked for.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Who has a host called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Asker {
    /// The server itself, or whoever runs it.
    Server,
    /// A workspace, whose members, agents or integrations have named the host.
    Workspace(WorkspaceId),
    /// Somebody who has shown no credential, by the address that they came from.
    Stranger(IpAddr),
}

/// Looks up names. Whoever is asked may lie or change their mind: what is answered is checked, and only what was checked is
/// connected to.
pub trait Resolve: Send + Sync + std::fmt::Debug + 'static {
    /// The addresses of `host`, which `asker` has called.
    fn resolve<'a>(&'a self, host: &'a str, asker: Asker) -> Resolving<'a>;
}

/// The system's own resolver.
///
/// It is asked on threads that block, of which there are only so many for everybody, and may take half a minute to say that nobody
/// answers. So it is asked about so many names at once and no more, of one asker about a share of them, and about one name once for all
/// who ask meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, asker: Asker) -> Resolving<'a> {
        static LOOKS: LazyLock<Looks> = LazyLock::new(|| Looks::new(LOOKS_MAX, LOOKS_OF_ONE));
        Box::pin(LOOKS.look(host, asker, asked))
    }
}

/// The same for names that anybody may give who has shown no credential: these have places of their own, so that whoever names
/// servers that never answer keeps no call to a provider waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StrangersResolver;

impl Resolve for StrangersResolver {
    fn resolve<'a>(&'a self, host: &'a str, asker: Asker) -> Resolving<'a> {
        static LOOKS: LazyLock<Looks> = LazyLock::new(|| Looks::new(STRANGERS_LOOKS_MAX, STRANGERS_LOOKS_OF_ONE));
        Box::pin(LOOKS.look(host, asker, asked))
    }
}

/// What the system answers.
fn asked(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|it| it.ip()).collect())
}

/// Names that are looked up at once; with those of strangers a quarter of the threads that a runtime has for what blocks.
const LOOKS_MAX: usize = 104;
/// Of these, of names that one workspace gives.
const LOOKS_OF_ONE: usize = LOOKS_MAX / 4;
/// The same of names that strangers give.
const STRANGERS_LOOKS_MAX: usize = 24;
/// Of these, of names that one of them gives.
const STRANGERS_LOOKS_OF_ONE: usize = STRANGERS_LOOKS_MAX / 4;

/// Names that are being looked up.
#[derive(Debug)]
struct Looks {
    places: Turns<Whose>,
    under_way: UnderWay,
}

/// Each name that is being looked up, with where it is told what it has come to.
type UnderWay = Arc<Mutex<HashMap<Box<str>, watch::Receiver<Option<Found>>>>>;

/// What a name has come to, for all who have asked meanwhile.
type Found = Result<Vec<IpAddr>, (io::ErrorKind, Arc<str>)>;

/// Who counts as one: strangers of one network do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Whose {
    Server,
    Workspace(WorkspaceId),
    Stranger(RateAddress),
}

impl From<Asker> for Whose {
    fn from(asker: Asker) -> Self {
        match asker {
            Asker::Server => Self::Server,
            Asker::Workspace(id) => Self::Workspace(id),
            Asker::Stranger(address) => Self::Stranger(address.into()),
        }
    }
}

impl Looks {
    fn new(most: usize, of_one: usize) -> Self {
        Self { places: Turns::new(most, of_one), under_way: Arc::default() }
    }

    /// The addresses that `look` finds, or has been asked for already. It goes on where nobody waits for it any more: nothing ends it.
    async fn look(
        &self,
        host: &str,
        asker: Asker,
        look: impl FnOnce(&str) -> io::Result<Vec<IpAddr>> + Send + 'static,
    ) -> io::Result<Vec<IpAddr>> {
        let lost = |_| io::Error::other("the look-up was given up");
        let known = held(&self.under_way).get(host).cloned();
        let mut found = match known {
            Some(found) => found,
            None => {
                let place = self.places.take(asker.into()).await.map_err(io::Error::other)?;
                self.begin(host, look, place)
            }
        };
        let found = found.wait_for(Option::is_some).await.map_err(lost)?.clone();
        found.unwrap_or(Ok(Vec::new())).map_err(|(kind, told)| io::Error::new(kind, &*told))
    }

    /// Begins to look, unless somebody has done so while a place was waited for. The place is held for as long as the thread is.
    fn begin(
        &self,
        host: &str,
        look: impl FnOnce(&str) -> io::Result<Vec<IpAddr>> + Send + 'static,
        place: Turn,
    ) -> watch::Receiver<Option<Found>> {
        let mut under_way = held(&self.under_way);
        if let Some(found) = under_way.get(host) {
            return found.clone();
        }
        let (tell, found) = watch::channel(None);
        under_way.insert(host.into(), found.clone());
        // A runtime that ends drops what it is given here, and its end with it, which takes the lock itself.
        drop(under_way);
        let ends = Ends { host: host.into(), under_way: Arc::clone(&self.under_way) };
        tokio::task::spawn_blocking(move || {
            let told = look(&ends.host).map_err(|error| (error.kind(), error.to_string().into()));
            // Whoever asks from now on has it looked up anew.
            drop(ends);
            tell.send_replace(Some(told));
            drop(place);
        });
        found
    }
}

/// A name that is looked up, until that is over, be it by a panic.
struct Ends {
    host: Box<str>,
    under_way: UnderWay,
}

impl Drop for Ends {
    fn drop(&mut self) {
        held(&self.under_way).remove(&self.host);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use svc_core::value::Id as _;
    use tokio::task::yield_now;

    use super::*;

    /// No more names are looked up at once than may be, also where nobody waits for them any more; whoever asks for one that is being
    /// looked up hears what is found.
    #[tokio::test]
    async fn so_many_names_are_looked_up_at_once() {
        let (looks, began) = (Arc::new(Looks::new(2, 2)), Arc::new(AtomicUsize::new(0)));
        let mut answers = Vec::new();
        let mut ask = |host: &'static str| {
            let (answer, answered) = mpsc::sync_channel::<()>(1);
            answers.push(answer);
            let (looks, began) = (Arc::clone(&looks), Arc::clone(&began));
            tokio::spawn(async move {
                let look = move |_: &str| {
                    began.fetch_add(1, Ordering::SeqCst);
                    let _ = answered.recv();
                    Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
                };
                looks.look(host, Asker::Server, look).await
            })
        };
        let (first, again, given_up, waits) = (ask("a.example"), ask("a.example"), ask("b.example"), ask("c.example"));
        while began.load(Ordering::SeqCst) < 2 {
            yield_now().await;
        }
        // There is no place left, and none is waited for by whoever asks for what is being looked up.
        let late = ask("a.example");
        given_up.abort();
        assert!(given_up.await.is_err());
        // A place is held by the thread, not by whoever asked for it.
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!((began.load(Ordering::SeqCst), looks.places.left()), (2, 0));
        assert!(!waits.is_finished());
        answers.clear();
        for asked in [first, again, late, waits] {
            assert_eq!(asked.await.unwrap().unwrap(), [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        }
        assert_eq!(began.load(Ordering::SeqCst), 3);
        while looks.places.left() < 2 {
            yield_now().await;
        }
        assert!(held(&looks.under_way).is_empty());
    }
    /// Whoever names hosts whose servers never answer holds a share of the places, also where they wait no longer, and keeps nobody else's
    /// from being looked up; strangers of one network are one.
    #[tokio::test]
    async fn nobody_holds_more_than_a_share_of_the_places() {
        let looks = Arc::new(Looks::new(4, 2));
        let (began, mut answers) = (Arc::new(Mutex::new(Vec::new())), Vec::new());
        let mut ask = |asker: Asker, host: &'static str| {
            let (answer, answered) = mpsc::sync_channel::<()>(1);
            answers.push(answer);
            let (looks, began) = (Arc::clone(&looks), Arc::clone(&began));
            tokio::spawn(async move {
                let look = move |host: &str| {
                    held(&began).push(host.to_owned());
                    let _ = answered.recv();
                    Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
                };
                looks.look(host, asker, look).await
            })
        };
        let stranger = |text: &str| Asker::Stranger(text.parse().unwrap());
        let one = Asker::Workspace(WorkspaceId::from_bits(1));
        for host in ["a.example", "b.example", "c.example", "d.example"] {
            ask(one, host);
        }
        let until = async |count| {
            while held(&began).len() < count {
                yield_now().await;
            }
        };
        until(2).await;
        ask(stranger("2001:db8::1"), "e.example");
        until(3).await;
        ask(Asker::Workspace(WorkspaceId::from_bits(2)), "f.example");
        until(4).await;
        let mut found = held(&began).clone();
        found.sort();
        assert_eq!(found, ["a.example", "b.example", "e.example", "f.example"]);
        assert_eq!(Whose::from(stranger("2001:db8::1")), Whose::from(stranger("2001:db8::2:1")));
        answers.clear();
        until(6).await;
    }
}
