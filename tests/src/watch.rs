//! Somebody who watches the live events of a workspace, over a connection of their own.

use std::net::SocketAddr;

use serde_json::Value;
use svc_core::testing::world::BASE_URL;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::PATIENCE;
use crate::site::Site;

/// One event as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The place that it names, where it names one.
    pub id: Option<u64>,
    /// What kind it is.
    pub name: String,
    /// Its data.
    pub data: Value,
}

/// A stream of events.
#[derive(Debug)]
pub struct Watch {
    stream: TcpStream,
    /// What has come and is not part of the stream's text yet.
    raw: Vec<u8>,
    text: String,
    /// The last place that was named.
    pub last: Option<u64>,
}

impl Watch {
    /// Watches with the session of this cookie, from behind `last` where one is named.
    ///
    /// # Panics
    /// Where that is refused.
    pub async fn open(site: &Site, sid: &str, last: Option<u64>) -> Self {
        Self::at(site.address, &site.workspace().to_string(), sid, last).await
    }

    /// The same at any server.
    ///
    /// # Panics
    /// Where that is refused.
    pub async fn at(address: SocketAddr, workspace: &str, sid: &str, last: Option<u64>) -> Self {
        let mut watch = Self::ask(address, workspace, sid, last).await;
        let head = watch.head().await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
        watch
    }

    async fn ask(address: SocketAddr, workspace: &str, sid: &str, last: Option<u64>) -> Self {
        let mut stream = TcpStream::connect(address).await.expect("the server accepts");
        let host = BASE_URL.trim_start_matches("https://");
        let mut head = format!("GET /api/w/{workspace}/events HTTP/1.1\r\nhost: {host}\r\n");
        head.push_str(&format!("cookie: __Host-sid={sid}\r\n"));
        if let Some(last) = last {
            head.push_str(&format!("last-event-id: {last}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.expect("the server listens");
        Self { stream, raw: Vec::new(), text: String::new(), last }
    }

    async fn head(&mut self) -> String {
        loop {
            if let Some(end) = self.raw.windows(4).position(|it| it == b"\r\n\r\n") {
                let rest = self.raw.split_off(end + 4);
                let head = std::mem::replace(&mut self.raw, rest);
                return String::from_utf8(head).expect("a head is text");
            }
            assert!(self.more().await, "it ended within its head");
        }
    }

    /// The next event, pings left out; `None` once the stream has ended.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            let told = self.next_of_any().await?;
            if told.name != "ping" {
                return Some(told);
            }
        }
    }

    /// The next event, whatever it is; `None` once the stream has ended.
    ///
    /// # Panics
    /// Where what comes is no event.
    pub async fn next_of_any(&mut self) -> Option<Told> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let told = read(&block);
                if let Some(told) = told {
                    self.last = told.id.or(self.last);
                    return Some(told);
                }
            }
            if !self.chunk().await {
                return None;
            }
        }
    }

    /// Takes one more chunk into the text; whether there was one.
    async fn chunk(&mut self) -> bool {
        loop {
            if let Some(end) = self.raw.windows(2).position(|it| it == b"\r\n") {
                let size = std::str::from_utf8(&self.raw[..end]).expect("a size is text");
                let size = usize::from_str_radix(size, 16).expect("a size");
                if self.raw.len() >= end + 2 + size + 2 {
                    let chunk: Vec<u8> = self.raw.drain(..end + 2 + size + 2).collect();
                    self.text.push_str(std::str::from_utf8(&chunk[end + 2..end + 2 + size]).expect("events are text"));
                    return size > 0;
                }
            }
            if !self.more().await {
                return false;
            }
        }
    }

    async fn more(&mut self) -> bool {
        let mut piece = [0; 8192];
        let read = timeout(PATIENCE, self.stream.read(&mut piece)).await.expect("something comes in time");
        let read = read.unwrap_or(0);
        self.raw.extend_from_slice(&piece[..read]);
        read > 0
    }
}

fn read(block: &str) -> Option<Told> {
    let member = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let data = serde_json::from_str(member("data")?).expect("data is JSON");
    Some(Told { id: member("id").and_then(|it| it.parse().ok()), name: member("event")?.to_owned(), data })
}
