//! Signing in, and what a person changes about it.

use serde_json::{Value, json};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::people::sessions::Next;
use svc_core::value::Invalid;
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use svc_core::value::text::Email;

use super::{Fields, parse, parse_or_empty, text};

/// Characters of a password.
const PASSWORD_MIN: usize = 12;
const PASSWORD_MAX: usize = 256;
/// Digits of a code.
const CODE_DIGITS: usize = 6;

fn secret(value: &Json) -> Result<Secret<String>, Invalid> {
    text(value).map(|it| Secret::new(it.to_owned()))
}

/// `{ email, password }`.
///
/// # Errors
/// `invalid_json`, `invalid_request`.
pub fn credentials(body: &[u8]) -> Result<(Email, Secret<String>), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let email = fields.required("email", |it| Email::parse(text(it)?));
    let password = fields.required("password", secret);
    fields.finish(email.zip(password))
}

/// `{ token }`.
///
/// # Errors
/// As [`credentials`].
pub fn link(body: &[u8]) -> Result<Secret<String>, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let token = fields.required("token", secret);
    fields.finish(token)
}

/// `{ pending? }`.
///
/// # Errors
/// As [`credentials`].
pub fn own_proof(body: &[u8]) -> Result<Option<Secret<String>>, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let pending = fields.optional("pending", secret);
    fields.finish(Some(pending))
}

/// A second factor as typed.
#[derive(Debug)]
pub enum Factor {
    /// Six digits.
    Code(Secret<String>),
    /// A recovery code.
    Recovery(Secret<String>),
}

impl Factor {
    /// What a person typed where a page has one field for both. Spaces and hyphens, with which people and apps part long
    /// codes, count for nothing.
    #[must_use]
    pub fn typed(text: &str) -> Self {
        let text: String = text.chars().filter(|it| !it.is_whitespace() && *it != '-').collect();
        let is_code = text.len() == CODE_DIGITS && text.bytes().all(|it| it.is_ascii_digit());
        if is_code { Self::Code(Secret::new(text)) } else { Self::Recovery(Secret::new(text)) }
    }
}

/// `{ pending, code | recoveryCode }`.
///
/// # Errors
/// As [`credentials`].
pub fn second_factor(body: &[u8]) -> Result<(Secret<String>, Factor), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let pending = fields.required("pending", secret);
    let factor = factor(&mut fields);
    fields.finish(pending.zip(factor))
}

/// `{ code | recoveryCode, pending? }`.
///
/// # Errors
/// As [`credentials`].
pub fn factor_beside(body: &[u8]) -> Result<(Factor, Option<Secret<String>>), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let factor = factor(&mut fields);
    let pending = fields.optional("pending", secret);
    fields.finish(factor.map(|it| (it, pending)))
}

fn factor(fields: &mut Fields<'_>) -> Option<Factor> {
    match factor_if_shown(fields) {
        None if fields.raw("code").or_else(|| fields.raw("recoveryCode")).is_none() => {
            fields.required("code", secret).map(Factor::Code)
        }
        shown => shown,
    }
}

/// `code` or `recoveryCode`, or neither.
pub(super) fn factor_if_shown(fields: &mut Fields<'_>) -> Option<Factor> {
    let code = fields.optional("code", secret).map(Factor::Code);
    let recovery = fields.optional("recoveryCode", secret).map(Factor::Recovery);
    if code.is_some() && recovery.is_some() {
        fields.note(FieldError::new("recoveryCode", "goes instead of `code`, not with it"));
        return None;
    }
    code.or(recovery)
}

/// `{ code, pending? }`.
///
/// # Errors
/// As [`credentials`].
pub fn code_beside(body: &[u8]) -> Result<(Secret<String>, Option<Secret<String>>), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let code = fields.required("code", secret);
    let pending = fields.optional("pending", secret);
    fields.finish(code.map(|it| (it, pending)))
}

/// `{ current?, password }`.
///
/// # Errors
/// As [`credentials`].
pub fn new_password(body: &[u8]) -> Result<(Option<Secret<String>>, Secret<String>), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let current = fields.optional("current", secret);
    let password = fields.required("password", |it| {
        let password = text(it)?;
        if !(PASSWORD_MIN..=PASSWORD_MAX).contains(&password.chars().count()) {
            return Err(Invalid::new(format!("must be {PASSWORD_MIN} to {PASSWORD_MAX} characters")));
        }
        // Length is all that is asked of it (CONTRACT part 5), but that there is one.
        if password.chars().all(char::is_whitespace) {
            return Err(Invalid::new("must hold more than blanks"));
        }
        secret(it)
    });
    fields.finish(password.map(|it| (current, it)))
}

/// What whoever signs in does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Whatever they came for.
    Done,
    /// Shows a second factor.
    Totp,
    /// Sets up a second factor.
    EnrollTotp,
    /// Sets a password, if they like.
    SetPassword,
    /// Signs in by single sign-on.
    Sso,
}

impl NextStep {
    /// Every step.
    pub const ALL: [Self; 5] = [Self::Done, Self::Totp, Self::EnrollTotp, Self::SetPassword, Self::Sso];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Totp => "totp",
            Self::EnrollTotp => "enroll_totp",
            Self::SetPassword => "set_password",
            Self::Sso => "sso",
        }
    }
}

impl From<Next> for NextStep {
    fn from(next: Next) -> Self {
        match next {
            Next::Done => Self::Done,
            Next::EnrollTotp => Self::EnrollTotp,
            Next::SetPassword => Self::SetPassword,
        }
    }
}

/// Where a sign-in stands.
///
/// # Errors
/// None that a test does not rule out.
pub fn write(next: NextStep, pending: Option<&str>, workspaces: Option<&[Value]>) -> Result<Vec<u8>, Refusal> {
    let mut body = json!({ "next": next.as_str() });
    if let Some(members) = body.as_object_mut() {
        if let Some(pending) = pending {
            members.insert("pending".to_owned(), json!(pending));
        }
        if let Some(workspaces) = workspaces {
            let first = workspaces.first().and_then(|it| it.get("principalId")).cloned();
            members.extend(first.map(|it| ("principalId".to_owned(), it)));
            members.insert("workspaces".to_owned(), json!(workspaces));
        }
    }
    serde_json::to_vec(&body).map_err(|_| Refusal::internal())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A new password is counted in characters, whichever these are, and is more than blanks.
    #[test]
    fn a_new_password_is_long_and_not_blank() {
        let read = |password: &str| new_password(json!({ "password": password }).to_string().as_bytes());
        for good in ["correct horse", &"x".repeat(12), &"ab".repeat(128), "ééééééèèèèàà"] {
            assert_eq!(read(good).unwrap().1.expose(), good);
        }
        for (bad, told) in [
            ("short enough"[..11].to_owned(), "12 to 256"),
            ("abc".repeat(86), "12 to 256"),
            (" ".repeat(12), "blanks"),
            ("\u{3000}\t".repeat(6), "blanks"),
        ] {
            let refusal = read(&bad).unwrap_err();
            let clause = refusal.errors().iter().map(|it| format!("{it:?}")).collect::<String>();
            assert!(clause.contains("password") && clause.contains(told), "{bad}: {clause}");
        }
    }
}
