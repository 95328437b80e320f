//! A call whose server answers in a stream: what it tells on the way goes on as it comes, its result once it is noted.

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use svc_core::refusal::Refusal;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::run::Run;
use crate::answer::{Answer, message_body};
use crate::metrics::ToolEnd;
use crate::pieces;
use crate::tool_server::{Events, Heard, Trouble};

/// Events that wait for a slow client.
const AHEAD: usize = 16;
/// Bytes of the longest notification that is passed on, of which as many wait as events do.
const NOTE_BYTES_MAX: usize = 256 * 1024;
/// How long the last word of a call that was cut waits for a slow client.
const LAST_TIME: Duration = Duration::from_secs(1);
/// How often a client hears that the call still runs.
const PULSE: Duration = Duration::from_secs(15);

/// The last word of a stream; nothing for what comes before it.
pub(super) fn last(heard: Result<Heard, Trouble>) -> Option<Result<Box<RawValue>, Trouble>> {
    match heard {
        Ok(Heard::Note(_)) => None,
        Ok(Heard::Result(result)) => Some(Ok(result)),
        Ok(Heard::Error(error)) => Some(Err(Trouble::Rpc(error))),
        Err(trouble) => Some(Err(trouble)),
    }
}

/// Hands a stream on.
pub(super) fn answer(run: Run, events: Events) -> Answer {
    let (to, from) = mpsc::channel(AHEAD);
    let upstreams = run.upstreams.clone();
    tokio::spawn(upstreams.outlive(carry(run, events, to)));
    Answer::stream("text/event-stream", pieces::body(from)).told_at_once()
}

/// Carries a stream to its end, or to that of its client.
async fn carry(run: Run, mut events: Events, to: mpsc::Sender<Bytes>) {
    let (switch, until) = (run.seat.switch(), Instant::now() + run.upstreams.times().total);
    // A client that does not read holds nothing up: not a cut, and not beyond the time of a call.
    let tell = async |piece: Bytes| {
        tokio::select! {
            biased;
            _ = switch.cut_off() => true,
            sent = timeout_at(until, to.send(piece)) => matches!(sent, Ok(Ok(()))),
        }
    };
    let mut is_noted = false;
    loop {
        let heard = tokio::select! {
            biased;
            stop = switch.cut_off() => {
                let last = run.cut(stop).await.unwrap_or_else(|refusal| refused(&run, &refusal));
                drop(events);
                let _ = timeout(LAST_TIME, to.send(event(&last))).await;
                return;
            }
            // The client calls it off, and waits for no answer: with the stream the server hears of it.
            () = run.named.called_off() => return run.ended(ToolEnd::HungUp),
            // It is gone, and nobody else can have the answer.
            () = to.closed() => return run.ended(ToolEnd::HungUp),
            heard = timeout(PULSE, events.next()) => heard,
        };
        let piece = match heard {
            Err(_) => Bytes::from_static(b": still running\n\n"),
            Ok(Ok(Heard::Note(note))) if note.get().len() > NOTE_BYTES_MAX => continue,
            Ok(Ok(Heard::Note(note))) => {
                // What the server tells on the way is its content as much as the result.
                if !is_noted && let Err(refusal) = run.note(note.get()).await {
                    run.ended(ToolEnd::Cut);
                    tell(event(&refused(&run, &refusal))).await;
                    return;
                }
                is_noted = true;
                event(note.get().as_bytes())
            }
            Ok(heard) => {
                let Some(last) = last(heard) else { continue };
                let text = run.over(last).await.unwrap_or_else(|refusal| refused(&run, &refusal));
                tell(event(&text)).await;
                return;
            }
        };
        if !tell(piece).await {
            run.ended(ToolEnd::HungUp);
            return;
        }
    }
}

/// A refusal as the answer to the client's message.
fn refused(run: &Run, refusal: &Refusal) -> Vec<u8> {
    message_body(refusal, run.id.clone(), run.request_id.to_str().unwrap_or_default(), &run.docs)
}

/// A message as an event: each of its lines is one of data.
fn event(text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 32);
    out.extend_from_slice(b"event: message\n");
    for line in text.split(|it| matches!(it, b'\n' | b'\r')).filter(|it| !it.is_empty()) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of several lines is one event.
    #[test]
    fn a_message_is_one_event() {
        assert_eq!(event(b"{\r\n \"a\": 1\n}"), "event: message\ndata: {\ndata:  \"a\": 1\ndata: }\n\n");
    }
}
