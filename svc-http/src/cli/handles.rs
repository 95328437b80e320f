//! File handles: how many this process may have open, and how many of them connections leave to everything else.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use svc_http::config::Config;

/// The part of all handles that connections do not get: the database, its readers and calls to the outside need some too.
const OTHERS: u64 = 4;
/// And no fewer than these: what the server opens before anybody has connected is most of them.
const OTHERS_MIN: u64 = 128;
/// What is asked for first where the system does not take all that it says it allows.
const HANDLES_MAX: u64 = 1 << 20;

/// Lets this process have as many files open as the system allows it, and no more connections than that has room for: one beyond it would
/// neither be answered nor refused.
pub(crate) fn raise(config: &mut Config) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Where the system takes no such limit the one that is in force stays.
    let _ = wished(current, maximum).find(|it| setrlimit(Resource::Nofile, Rlimit { current: *it, maximum }).is_ok());
    let Some(handles) = getrlimit(Resource::Nofile).current else { return };
    let room = connections_of(handles);
    if config.limits.connections > room {
        tracing::warn!(
            "this process may have {handles} files open, so {room} connections are open at once and not the {} of `limits.connections`: give it more (`LimitNOFILE`, `ulimit -n`), or lower the setting",
            config.limits.connections
        );
        config.limits.connections = room;
    }
}

/// What is asked for, one after the other until it is given: all that is allowed, and less where the system has a bound of its own that it
/// does not tell here. macOS takes no limit without an end, and begins with 256.
fn wished(current: Option<u64>, maximum: Option<u64>) -> impl Iterator<Item = Option<u64>> {
    let less = std::iter::successors(Some(HANDLES_MAX), |it| Some(it / 2).filter(|it| *it > 0));
    let allowed = move |it: &u64| maximum.is_none_or(|maximum| *it < maximum);
    let more = move |it: &u64| current.is_some_and(|current| *it > current);
    std::iter::once(maximum).chain(less.filter(allowed).take_while(more).map(Some))
}

/// What is wrong where a process that is started from here may not have as many files open as its connections take.
pub(crate) fn lacking(config: &Config) -> Option<String> {
    let handles = getrlimit(Resource::Nofile).maximum?;
    let room = connections_of(handles);
    let wanted = config.limits.connections;
    (wanted > room).then(|| {
        format!("a process may have {handles} files open here, which is room for {room} connections and not for the {wanted} of `limits.connections`")
    })
}

fn connections_of(handles: u64) -> usize {
    let others = handles.div_ceil(OTHERS).max(OTHERS_MIN);
    usize::try_from(handles.saturating_sub(others)).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first limit that a system takes which has a bound of its own, and nothing below what is in force.
    #[test]
    fn a_system_may_take_less_than_it_allows() {
        let taken = |bound: u64, current, maximum| {
            let takes = |it: &Option<u64>| it.is_some_and(|it| it <= bound);
            wished(current, maximum).find(takes).flatten()
        };
        assert_eq!(taken(61_440, Some(256), None), Some(32_768), "as on macOS");
        assert_eq!(taken(u64::MAX, Some(1_024), Some(524_288)), Some(524_288), "as on Linux");
        assert_eq!(taken(100_000, Some(1_024), Some(524_288)), Some(65_536));
        assert_eq!(taken(300, Some(256), None), None, "256 are in force");
        assert_eq!(taken(61_440, None, None), None, "without an end, it is left so");
    }

    /// A quarter of all handles is left to the rest, and never so few that a connection takes what the database needs.
    #[test]
    fn the_rest_has_enough() {
        for (handles, connections) in [(64, 1), (200, 72), (512, 384), (1_024, 768), (13_334, 10_000)] {
            assert_eq!(connections_of(handles), connections, "{handles}");
        }
    }
}
