//! Why a text is not a value.

use std::borrow::Cow;
use std::fmt;

/// Why a value was refused: one clause for people, lower case and without a full stop, to stand behind a field's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(Cow<'static, str>);

impl Invalid {
    /// A reason such as `must be a whole number`.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self(message.into())
    }

    /// The clause, owned.
    #[must_use]
    pub fn into_message(self) -> Cow<'static, str> {
        self.0
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}
