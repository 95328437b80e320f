//! The two shapes of model traffic, each into the other: requests, answers, streams, errors.
//!
//! A [`Body`] is a client's request; [`Body::demand`] says what deciding on it takes, [`Body::to_upstream`] writes what
//! goes to the provider. An [`Answer`] or a [`Stream`] reads what comes back, tells the
//! [`Usage`](crate::state::gateway::Usage), and writes it in the client's shape. Where client and provider speak the
//! same, bytes go on as they came, but for a mark before signatures that no other provider knows.
//!
//! **Invariant:** every function here is pure, and takes time and memory linear in what it reads.
//! **Invariant:** no text of a request or an answer stands in a refusal, an error or a `Debug` output of these types.

mod answer;
mod check;
mod doc;
mod error;
mod files;
mod finish;
mod marks;
mod names;
mod own;
mod request;
pub mod sse;
mod stream;
mod survey;
mod texts;
mod usage;
mod write;

pub use answer::{Answer, Unreadable};
pub use error::{ProviderError, Said, is_too_long, said};
pub use finish::Finish;
pub use names::ClientNames;
pub use request::{Body, Target, takes};
pub use sse::{Broken, EVENT_MAX};
pub use stream::{CALLS_MAX, Ending, HELD_MAX, NAME_MAX, Received, SERVER_TOOLS_MAX, Stream, StreamOptions};
