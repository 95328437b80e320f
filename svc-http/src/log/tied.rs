//! Lines that say which request left them.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use crate::at_hand::AtHand;

/// Writes lines as `inner` does, each with what is known of the request at hand.
pub(super) struct Tied<F> {
    pub(super) inner: F,
    pub(super) json: bool,
}

impl<S, N, F> FormatEvent<S, N> for Tied<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some(at_hand) = AtHand::now() else { return self.inner.format_event(context, to, event) };
        let mut line = String::new();
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        at_hand.tie(&mut line, self.json);
        to.write_str(&line)
    }
}
