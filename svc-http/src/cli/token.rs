//! `svc token create`: a service token, shown once.

use std::process::ExitCode;

use serde_json::{Value, json};
use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::people::by::By;
use svc_core::rules::people::tokens::CreateToken;
use svc_http::config::Config;
use svc_http::secrets::{TOKEN_PREFIX, draw};
use svc_http::wire::token;

use super::output::{Problem, note, print_made, visible};
use super::store::{Missing, Use, open};
use super::{NewToken, setup};

/// Makes the token that was asked for and prints it.
///
/// # Errors
/// [`Problem`] where there is no workspace, or a token in force has the name.
pub(crate) fn create(config: &Config, wish: &NewToken) -> Result<ExitCode, Problem> {
    visible()?;
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let workspace = setup::made(config, &gate)?;
    let token = draw(TOKEN_PREFIX)?;
    let made = gate.execute(CreateToken {
        workspace: workspace.id,
        by: By::Program,
        name: wish.name.clone(),
        scopes: wish.scopes.clone(),
        days: wish.days,
        ip_allow: wish.ip.clone(),
        digest: token.digest,
    });
    let made = made.map_err(|failure| match failure {
        Failure::Refused(refusal) if refusal.kind() != Kind::NotReady => Problem::new(
            refusal.message().to_owned(),
            "Choose another name, or revoke that token (`DELETE /api/w/{wid}/service-tokens/{stk}`).",
        ),
        other => other.into(),
    })?;
    let lost = format!(
        "Nobody saw {}: revoke it (`DELETE /api/w/{{wid}}/service-tokens/{{stk}}`), and make another.",
        made.token
    );
    if wish.json {
        let mut shown = token::write(&made, gate.now(), false, None);
        shown.insert("token".to_owned(), json!(token.text.expose()));
        print_made(&format!("{}\n", Value::Object(shown)), &lost)?;
    } else {
        print_made(&format!("{}\n", token.text.expose()), &lost)?;
        note(&format!("{} is shown this once: keep it now. It ends at {}.\n", made.token, made.expires_at));
    }
    Ok(ExitCode::SUCCESS)
}
