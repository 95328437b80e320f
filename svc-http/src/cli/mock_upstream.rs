//! `svc mock-upstream`: a provider that is none.

use std::net::SocketAddr;
use std::process::ExitCode;

use serde_json::json;
use svc_http::mock::Mock;
use svc_http::serve::runtime;

use super::listen::{Stops, bind};
use super::output::{Problem, print, print_json};

/// Where it listens if nothing else is said.
pub(crate) const LISTEN: &str = "127.0.0.1:8090";

/// Serves until a signal.
///
/// # Errors
/// [`Problem`] where the address is not to be had.
pub(crate) fn run(listen: SocketAddr, json: bool) -> Result<ExitCode, Problem> {
    let bound = bind(listen)?;
    runtime(None).map_err(no_runtime)?.block_on(async {
        let mut stops = Stops::catch().map_err(no_runtime)?;
        let mock = Mock::start(bound.listener).map_err(no_runtime)?;
        let (chat, messages) = (mock.chat_url(), mock.messages_url());
        if json {
            print_json(&json!({ "chatUrl": chat, "messagesUrl": messages }))?;
        } else {
            print(&format!(
                "The stand-in is ready. Base address of an upstream of the kind `chat`: {chat}, of the kind `messages`: {messages}\n"
            ))?;
        }
        stops.next().await;
        Ok(ExitCode::SUCCESS)
    })
}

fn no_runtime(error: std::io::Error) -> Problem {
    Problem::new(format!("the stand-in cannot start: {error}"), "Look at this user's limits of threads and open files.")
}
