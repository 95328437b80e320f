//! The pages that a person sees on the way: signing in, consent, and what went wrong.
//!
//! **Invariant:** no script; a page's policy lets its form go to this server and to where the client is sent back
//! alone. `base` is the path before every route, as a browser that sends a form sees it
//! ([`Site::path`](crate::headers::Site::path)). The page itself names `same-origin` as its referrer policy, or
//! browsers would send its form with the origin `null`.

use http::StatusCode;
use svc_core::refusal::{Kind, Refusal};
use svc_core::state::connect::{Redirect, Wish};

use crate::answer::Answer;
use crate::docs::escape;
use crate::pages::Page;

/// An agent that may be chosen.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) workspace: String,
}

/// The question to a person: may this client act as one of these agents? `is_cut` where there may be more of them.
pub(super) fn consent(base: &str, wish: &Wish, email: &str, token: &str, agents: &[Choice], is_cut: bool) -> Answer {
    // What a stranger wrote stands by itself: signs of direction in it do not turn what is around it.
    let name = format!("<bdi>{}</bdi>", escape(wish.name.as_str()));
    let host = escape(wish.redirect.host());
    let known = match wish.client.strip_prefix("https://").and_then(|it| it.split('/').next()) {
        Some(place) => format!(" Its description comes from <strong>{}</strong>.", escape(place)),
        None => String::new(),
    };
    let mut main = format!(
        "<h1>Connect {name}</h1>\n<p><strong>{name}</strong> wants to act as one of your agents. The application chose that name itself; nobody has checked it. Afterwards you are sent to <strong>{host}</strong>.{known}</p>\n<p>It may ask for actions, use models and call tools as the agent you choose. It cannot approve anything. You can end it at any time.</p>\n<form method=\"post\" action=\"{}/oauth/authorize\">\n<input type=\"hidden\" name=\"request\" value=\"{}\">\n",
        escape(base),
        escape(token)
    );
    if is_cut {
        main.push_str("<p>Not all of your agents are shown: only the newest that are running. To act as another one, give the application that agent's key instead.</p>\n");
    }
    if agents.is_empty() {
        main.push_str("<p>There is no agent that you may connect. Make one first, or ask an admin.</p>\n");
    } else {
        main.push_str("<fieldset>\n<legend>Act as</legend>\n");
        for (place, agent) in agents.iter().enumerate() {
            let checked = if place == 0 { " checked" } else { "" };
            main.push_str(&format!(
                "<label><input type=\"radio\" name=\"agentId\" value=\"{}\" required{checked}> <bdi>{}</bdi> <small><bdi>{}</bdi> · <code>{}</code></small></label>\n",
                escape(&agent.id),
                escape(&agent.name),
                escape(&agent.workspace),
                escape(&agent.id)
            ));
        }
        main.push_str("</fieldset>\n<button name=\"choice\" value=\"allow\">Allow</button>\n");
    }
    main.push_str("<button name=\"choice\" value=\"deny\" formnovalidate>Deny</button>\n</form>\n");
    main.push_str(&format!("<p><small>Signed in as {}</small></p>\n", escape(email)));
    page(StatusCode::OK, "Connect an agent", &main, &form_action(&wish.redirect))
}

/// Signing in, on the way to the question. `said` is what went wrong the last time.
pub(super) fn sign_in(base: &str, token: &str, next: &str, said: Option<&str>) -> Answer {
    let fields = "<label>E-mail <input type=\"email\" name=\"email\" autocomplete=\"username\" required></label>\n<label>Password <input type=\"password\" name=\"password\" autocomplete=\"current-password\" required></label>\n<p><small>No password yet? Open your sign-in link in this browser first, then come back and load this page again.</small></p>\n";
    sign_in_page(base, token, next, said, fields)
}

/// The second factor.
pub(super) fn second_factor(base: &str, token: &str, next: &str, pending: &str, said: Option<&str>) -> Answer {
    let fields = format!(
        "<input type=\"hidden\" name=\"pending\" value=\"{}\">\n<label>Code <input type=\"text\" name=\"code\" inputmode=\"numeric\" autocomplete=\"one-time-code\" required></label>\n",
        escape(pending)
    );
    sign_in_page(base, token, next, said, &fields)
}

fn sign_in_page(base: &str, token: &str, next: &str, said: Option<&str>, fields: &str) -> Answer {
    let said = said.map(|it| format!("<p role=\"alert\">{}</p>\n", escape(it))).unwrap_or_default();
    let main = format!(
        "<h1>Sign in</h1>\n{said}<form method=\"post\" action=\"{}/sign-in\">\n<input type=\"hidden\" name=\"request\" value=\"{}\">\n<input type=\"hidden\" name=\"next\" value=\"{}\">\n{fields}<button>Sign in</button>\n</form>\n",
        escape(base),
        escape(token),
        escape(next)
    );
    page(StatusCode::OK, "Sign in", &main, "'self'")
}

/// What went wrong, where nobody can be sent back.
pub(super) fn error(refusal: &Refusal) -> Answer {
    let status = match refusal.kind() {
        // A page has no scheme of credentials to name.
        Kind::InvalidClient => 400,
        Kind::Unauthenticated => 403,
        _ => refusal.status(),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let fix = refusal.fix().map(|it| format!("<p>{}</p>\n", escape(it))).unwrap_or_default();
    let main = format!("<h1>This did not work</h1>\n<p role=\"alert\">{}</p>\n{fix}", escape(refusal.message()));
    page(status, "This did not work", &main, "'none'")
}

/// What is wrong with what a client asks. The client is told where the person goes on: nobody is sent on by a link alone.
pub(super) fn unasked(refusal: &Refusal, redirect: &Redirect, to: &str) -> Answer {
    let main = format!(
        "<h1>This did not work</h1>\n<p role=\"alert\">{}</p>\n<p>The application sent a request that this server does not accept. <a href=\"{}\" rel=\"noreferrer\">Go back to {}</a></p>\n",
        escape(refusal.message()),
        escape(to),
        escape(redirect.host())
    );
    page(StatusCode::BAD_REQUEST, "This did not work", &main, "'none'")
}

/// Where the form may lead: here, and on to the client.
fn form_action(redirect: &Redirect) -> String {
    let onward = match redirect.origin() {
        // A content policy has no way to name an IPv6 address.
        Some(origin) if origin.contains('[') => "http:".to_owned(),
        Some(origin) => origin,
        None => redirect.as_str().split(':').next().map(|it| format!("{it}:")).unwrap_or_default(),
    };
    format!("'self' {onward}")
}

fn page(status: StatusCode, title: &str, main: &str, form_action: &str) -> Answer {
    Page { status, title, main, style: "", form_action, script: None }.answer()
}
