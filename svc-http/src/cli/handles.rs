//! File handles: how many this process may have open, and how many of them connections leave to everything else.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use svc_http::config::Config;

/// The part of all handles that connections do not get: the database, its readers and calls to the outside need some too.
const OTHERS: u64 = 4;
/// And no fewer than these: what the server opens before anybody has connected is most of them.
const OTHERS_MIN: u64 = 128;

/// Lets this process have as many files open as the system allows it, and no more connections than that has room for: one beyond it would
/// neither be answered nor refused.
pub(crate) fn raise(config: &mut Config) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where the system takes no such limit the one that is in force stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
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

    /// A quarter of all handles is left to the rest, and never so few that a connection takes what the database needs.
    #[test]
    fn the_rest_has_enough() {
        for (handles, connections) in [(64, 1), (200, 72), (512, 384), (1_024, 768), (13_334, 10_000)] {
            assert_eq!(connections_of(handles), connections, "{handles}");
        }
    }
}
