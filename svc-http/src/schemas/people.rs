//! The schemas of signing in and of a person's own account.

use serde_json::{Value, json};
use svc_core::state::people::Plan;

use super::{id, reference, time, words};
use crate::wire::sign_in::NextStep;

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("SignIn", object(&["email", "password"], json!({ "email": string(), "password": string() }))),
        (
            "SignInByLink",
            object(
                &["token"],
                json!({ "token": { "type": "string", "description": "What follows `token=` in the link." } }),
            ),
        ),
        ("SignInTotp", factor(&["pending"], json!({ "pending": string(), "code": code(), "recoveryCode": string() }))),
        (
            "SsoLink",
            object(
                &[],
                json!({
                    "pending": { "type": "string", "description": "That of a sign-in that led to `sso`; without it the session's cookie proves whose the account is." },
                }),
            ),
        ),
        ("SignInStep", step()),
        ("SignedOut", object(&[], json!({}))),
        (
            "PasswordChange",
            object(
                &["password"],
                json!({
                    "current": { "type": "string", "description": "The present password, where there is one." },
                    "password": { "type": "string", "minLength": 12, "maxLength": 256 },
                }),
            ),
        ),
        (
            "NewSecondFactor",
            object(
                &["secret", "otpauthUrl", "qrSvg"],
                json!({
                    "secret": { "type": "string", "description": "Base32, to be typed." },
                    "otpauthUrl": string(),
                    "qrSvg": { "type": "string", "description": "The same for a phone's camera." },
                }),
            ),
        ),
        ("OwnProof", object(&[], json!({ "pending": own_proof() }))),
        ("NewSecondFactorCode", object(&["code"], json!({ "code": code(), "pending": own_proof() }))),
        ("SecondFactorCode", factor(&[], json!({ "code": code(), "recoveryCode": string(), "pending": own_proof() }))),
        (
            "RecoveryCodes",
            object(
                &["recoveryCodes"],
                json!({
                    "recoveryCodes": { "type": "array", "items": string(), "description": "Each stands in for the second factor once." },
                }),
            ),
        ),
        ("AccountSession", session()),
        ("OwnWorkspace", own_workspace()),
        (
            "SessionPage",
            object(
                &["data", "nextCursor"],
                json!({
                    "data": { "type": "array", "items": reference("AccountSession") },
                    "nextCursor": { "type": ["string", "null"] },
                }),
            ),
        ),
    ]
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// A body with a code, or with what stands in for one.
fn factor(required: &[&str], properties: Value) -> Value {
    let mut schema = object(required, properties);
    let either = json!([{ "required": ["code"] }, { "required": ["recoveryCode"] }]);
    crate::wire::put(&mut schema, "anyOf", either);
    schema
}

fn string() -> Value {
    json!({ "type": "string" })
}

fn code() -> Value {
    json!({ "type": "string", "description": "Six digits; each counts once." })
}

fn own_proof() -> Value {
    json!({ "type": "string", "description": "In a session of single sign-on: that of a sign-in of the same account that led to `sso`, which proves that it is the account's holder who asks." })
}

fn step() -> Value {
    object(
        &["next"],
        json!({
            "next": words(&NextStep::ALL, NextStep::as_str),
            "pending": { "type": "string", "description": "With `totp`: what the second factor is shown with, for five minutes. With `sso`: what single sign-on is linked to the account with, as long." },
            "principalId": id("prp_"),
            "workspaces": { "type": "array", "items": reference("OwnWorkspace") },
        }),
    )
}

/// How somebody signed in.
pub(super) fn proof() -> Value {
    json!({ "type": "string", "pattern": "^(password|link|sso:wsp_.+)$" })
}

/// A workspace as its member sees it.
fn own_workspace() -> Value {
    object(
        &["id", "name", "role", "principalId", "plan", "signIn"],
        json!({
            "id": id("wsp_"),
            "name": string(),
            "role": super::members::role(),
            "principalId": id("prp_"),
            "plan": words(&Plan::ALL, Plan::as_str),
            "signIn": super::settings::sign_in(),
        }),
    )
}

fn session() -> Value {
    object(
        &["id", "createdAt", "createdBy", "lastSeenAt", "expiresAt", "proof", "current"],
        json!({
            "id": id("ses_"),
            "createdAt": time(),
            "createdBy": id("usr_"),
            "lastSeenAt": time(),
            "expiresAt": time(),
            "proof": proof(),
            "current": { "type": "boolean" },
        }),
    )
}
