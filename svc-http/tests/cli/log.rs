//! The log of a process that serves, and whoever reads it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::server::{Server, text};

/// Enough lines to fill any pipe.
const REQUESTS: usize = 1_500;

/// Whoever reads the log and has stopped doing so stops no request, nor the server's end.
#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&server.line()).unwrap();
    let host = text(&home, "baseUrl").trim_start_matches("http://").to_owned();
    for _ in 0..REQUESTS {
        let mut stream = TcpStream::connect(&host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(stream, "GET /v1/nowhere HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    }
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    assert!(log.contains("listening"), "what came before it stalled was written");
}
