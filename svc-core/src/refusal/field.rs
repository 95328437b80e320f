//! What is wrong with one field of a request.

use std::borrow::Cow;

use crate::value::Invalid;

/// One fault of a request: where it is, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// A dotted path into the body such as `provenance.0.source`, a header's name in lower case or a query parameter's
    /// name; `None` for the body as a whole.
    pub field: Option<Box<str>>,
    /// A clause for people that makes sense on its own, so it names the field too.
    pub message: Cow<'static, str>,
}

impl FieldError {
    /// A fault of `field`. `clause` stands behind the field's name: `must be a whole number`. A member whose name is empty leads
    /// nowhere: its fault is the whole body's.
    pub fn new(field: impl Into<Box<str>>, clause: impl AsRef<str>) -> Self {
        let field = field.into();
        if field.is_empty() {
            return Self::whole(format!("the member without a name {}", clause.as_ref()));
        }
        let message = Cow::Owned(format!("`{field}` {}", clause.as_ref()));
        Self { field: Some(field), message }
    }

    /// A fault of the body as a whole: `the body must be an object`.
    pub fn whole(message: impl Into<Cow<'static, str>>) -> Self {
        Self { field: None, message: message.into() }
    }

    /// A fault of `field` that a value's own reader found.
    pub fn invalid(field: impl Into<Box<str>>, why: Invalid) -> Self {
        Self::new(field, why.into_message())
    }

    /// The same fault of an object that stands at `path` in a larger body.
    #[must_use]
    pub fn within(self, path: &str) -> Self {
        let Some(field) = self.field else { return Self { field: Some(path.into()), ..self } };
        let moved = format!("{path}.{field}");
        let message = self.message.replacen(&format!("`{field}`"), &format!("`{moved}`"), 1);
        Self { field: Some(moved.into()), message: message.into() }
    }

    /// A required member that is not there.
    pub fn missing(field: impl Into<Box<str>>) -> Self {
        Self::new(field, "is required")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A message names its field, so that a list of them joined reads on its own.
    #[test]
    fn a_message_names_its_field() {
        assert_eq!(FieldError::missing("payment.amount").message, "`payment.amount` is required");
        assert_eq!(FieldError::invalid("type", Invalid::new("must be text")).message, "`type` must be text");
        let nameless = FieldError::new("", "is not known");
        assert_eq!((nameless.field, &*nameless.message), (None, "the member without a name is not known"));
        let moved = FieldError::new("limits.perAction", "must be above zero").within("mandates.1");
        assert_eq!(moved.message, "`mandates.1.limits.perAction` must be above zero");
        assert_eq!(moved.field.as_deref(), Some("mandates.1.limits.perAction"));
        let whole = FieldError::whole("the body must be an object");
        assert_eq!((whole.field, whole.message.as_ref()), (None, "the body must be an object"));
    }
}
