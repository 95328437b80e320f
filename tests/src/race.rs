//! Many clients at once on what may happen once.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Barrier;

use crate::client::{Client, Got};

/// How many ask at once.
pub const CLIENTS: usize = 64;

/// Has clients ask at once, each over a connection of its own to these servers in turn, and gives what each heard.
///
/// # Panics
/// Where no server is named, or a client panics.
pub async fn at_once<F, Fut>(servers: &[SocketAddr], what: F) -> Vec<Got>
where
    F: Fn(Client, usize) -> Fut,
    Fut: Future<Output = Got> + Send + 'static,
{
    let start = Arc::new(Barrier::new(CLIENTS));
    let mut running = Vec::new();
    for (place, server) in (0..CLIENTS).zip(servers.iter().cycle()) {
        let (start, asking) = (Arc::clone(&start), what(Client::connect(*server).await, place));
        running.push(tokio::spawn(async move {
            start.wait().await;
            asking.await
        }));
    }
    assert_eq!(running.len(), CLIENTS, "a server for each client");
    let mut heard = Vec::new();
    for one in running {
        heard.push(one.await.expect("a client answers"));
    }
    heard
}
