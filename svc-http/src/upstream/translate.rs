//! The translator of a stream, as a relay drives it.

use svc_core::dialect::{Ending, ProviderError, Stream};
use svc_core::state::gateway::Usage;

use super::failed::Reason;
use super::guard::How;
use super::relay::Translate;
use super::switch::Stop;

impl Translate for Stream {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
        Self::push(self, bytes, out).map_err(|_| Reason::Unreadable)
    }

    fn is_done(&self) -> bool {
        self.ended()
    }

    fn has_begun(&self) -> bool {
        Self::has_begun(self)
    }

    fn has_token(&self) -> bool {
        Self::has_token(self)
    }

    fn error(&self) -> Option<&ProviderError> {
        Self::error(self)
    }

    fn reported(&self) -> Option<Usage> {
        self.received().reported
    }

    fn pieces(&self) -> u64 {
        Self::pieces(self)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> How {
        match Self::end(self, out) {
            Ending::Clean => How::Done,
            Ending::Cut => How::Cut(Reason::Closed),
            Ending::Failed(_) => How::Cut(Reason::Told),
        }
    }

    fn cut(&mut self, how: How, out: &mut Vec<u8>) {
        let (kind, message) = error(how);
        Self::cut(self, out, kind, message);
    }

    fn write_error(&self, how: How, out: &mut Vec<u8>) {
        let (kind, message) = error(how);
        Self::write_error(self, out, kind, message);
    }

    fn last_bytes(&self) -> usize {
        Self::last_bytes(self)
    }
}

/// The type and the message of the error event that a client gets in place of an answer's end.
const fn error(how: How) -> (&'static str, &'static str) {
    match how {
        How::Stopped(Stop::Agent) => ("agent_stopped", "the agent was stopped while its answer was under way"),
        How::Stopped(Stop::Key) => ("invalid_api_key", "the key was revoked or ended while its answer was under way"),
        How::Stopped(Stop::Server) => ("not_ready", "this server stopped while the answer was under way"),
        How::Cut(reason) => ("upstream_failure", reason.as_str()),
        How::Done | How::HungUp => ("upstream_failure", "the answer broke off"),
    }
}
