//! The pages that a person sees on the way: signing in, consent.
//!
//! **Invariant:** no script; a page's policy lets its form go to this server and to where the client is sent back
//! alone. `base` is the path before every route, as a browser that sends a form sees it
//! ([`Site::path`](crate::headers::Site::path)). The page itself names `same-origin` as its referrer policy, or
//! browsers would send its form with the origin `null`.

use http::StatusCode;
use svc_core::refusal::Refusal;
use svc_core::state::connect::{Redirect, Wish};

use crate::answer::Answer;
use crate::docs::escape;
use crate::ops::single_sign_on::encoded;
use crate::pages::Page;
use crate::pages::quoted::quoted;
use crate::pages::refused::{leading_on, saying, sentence};

/// What each form carries: `base`, the token under which it counts, and the question that it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<'a> {
    pub(super) base: &'a str,
    pub(super) request: &'a str,
    pub(super) next: &'a str,
}

impl Form<'_> {
    /// Its begin, sent to `path`.
    fn begin(self, path: &str) -> String {
        format!(
            "<form method=\"post\" action=\"{}{path}\">\n<input type=\"hidden\" name=\"request\" value=\"{}\">\n<input type=\"hidden\" name=\"next\" value=\"{}\">\n",
            escape(self.base),
            escape(self.request),
            escape(self.next)
        )
    }
}

/// An agent that may be chosen.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) workspace: String,
    /// How many of its mandates are in force.
    pub(super) mandates: usize,
}

/// The agents that a person may connect.
#[derive(Debug, Default)]
pub(super) struct Choices {
    pub(super) agents: Vec<Choice>,
    /// Whether there may be more of them.
    pub(super) is_cut: bool,
    /// Whether others were passed over as they are stopped.
    pub(super) has_stopped: bool,
}

impl Choices {
    /// What is said where none may be chosen.
    fn none(&self) -> &'static str {
        if self.has_stopped && !self.is_cut {
            return "Each of your agents is stopped: it is frozen, or a hold stops it. Whoever may can start it again; then open this page anew.";
        }
        "There is no agent that you may connect. Make one first, or ask an admin."
    }
}

/// The question to a person: may this client act as one of these agents?
pub(super) fn consent(form: Form<'_>, wish: &Wish, email: &str, choices: &Choices) -> Answer {
    let agents = &choices.agents;
    let name = quoted(wish.name.as_str());
    let host = escape(wish.redirect.host());
    let known = match wish.client.strip_prefix("https://").and_then(|it| it.split('/').next()) {
        Some(place) => format!(" Its description comes from <strong>{}</strong>.", escape(place)),
        None => String::new(),
    };
    let mut main = format!(
        "<h1>Connect {name}</h1>\n<p><strong>{name}</strong> wants to act as one of your agents. The application chose that name itself; nobody has checked it. Afterwards you are sent to <strong>{host}</strong>.{known}</p>\n<p>It may ask for actions, use models and call tools as the agent you choose. It cannot approve anything. You can end it at any time.</p>\n{}",
        form.begin("/oauth/authorize")
    );
    if choices.is_cut {
        main.push_str("<p>Not all of your agents are shown: only the newest that are running. To act as another one, give the application that agent's key instead.</p>\n");
    }
    if agents.is_empty() {
        main.push_str(&format!("<p>{}</p>\n", choices.none()));
    } else {
        main.push_str("<fieldset>\n<legend>Act as</legend>\n");
        // Of several none is chosen before somebody has: an Allow in a hurry would be for whichever stands first.
        let checked = if agents.len() == 1 { " checked" } else { "" };
        for agent in agents {
            let mandates = match agent.mandates {
                0 => "no mandate in force".to_owned(),
                1 => "1 mandate in force".to_owned(),
                many => format!("{many} mandates in force"),
            };
            main.push_str(&format!(
                "<label><input type=\"radio\" name=\"agentId\" value=\"{}\" required{checked}> {} <small>{} · {mandates} · <code>{}</code></small></label>\n",
                escape(&agent.id),
                quoted(&agent.name),
                quoted(&agent.workspace),
                escape(&agent.id)
            ));
        }
        main.push_str("</fieldset>\n<button name=\"choice\" value=\"allow\">Allow</button>\n");
    }
    main.push_str("<button name=\"choice\" value=\"deny\" formnovalidate>Deny</button>\n</form>\n");
    main.push_str(&format!("<p><small>Signed in as {}</small></p>\n", quoted(email)));
    page(StatusCode::OK, "Connect an agent", &main, &form_action(&wish.redirect))
}

/// Signing in, on the way to the question. `said` is what went wrong the last time.
pub(super) fn sign_in(form: Form<'_>, said: Option<&str>) -> Answer {
    let fields = format!(
        "<label>E-mail <input type=\"text\" inputmode=\"email\" name=\"email\" autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\" required></label>\n<label>Password <input type=\"password\" name=\"password\" autocomplete=\"current-password\" required></label>\n<p><small>No password yet? Open your sign-in link in this browser first, then go <a href=\"{}{}\">back to the question</a>. So do those whose workspace signs them in by single sign-on: at the address that it has given them (<code>/sign-in?workspace=…</code>).</small></p>\n",
        escape(form.base),
        escape(form.next)
    );
    sign_in_page(form, said, &fields)
}

/// Where to sign in of those who do so by their workspaces' own providers, each with its id and name; it leads back to the
/// question.
pub(super) fn single_sign_on<'a>(base: &str, next: &str, places: impl Iterator<Item = (String, &'a str)>) -> Answer {
    let mut main = "<h1>Sign in</h1>\n<p>Your workspace signs people in by single sign-on.</p>\n".to_owned();
    for (id, name) in places {
        let place = format!("{base}/api/sign-in/sso/{id}?next={}", encoded(next));
        main.push_str(&format!("<p><a href=\"{}\">Sign in to {}</a></p>\n", escape(&place), quoted(name)));
    }
    page(StatusCode::OK, "Sign in", &main, "'none'")
}

/// The second factor.
pub(super) fn second_factor(form: Form<'_>, pending: &str, said: Option<&str>) -> Answer {
    let fields = format!(
        "<input type=\"hidden\" name=\"pending\" value=\"{}\">\n<label>Code of your second factor, or a recovery code <input type=\"text\" name=\"code\" autocomplete=\"one-time-code\" autocapitalize=\"none\" spellcheck=\"false\" required></label>\n",
        escape(pending)
    );
    sign_in_page(form, said, &fields)
}

fn sign_in_page(form: Form<'_>, said: Option<&str>, fields: &str) -> Answer {
    let said = said.map(|it| format!("<p role=\"alert\">{}</p>\n", escape(it))).unwrap_or_default();
    let begin = form.begin("/sign-in");
    let main = format!("<h1>Sign in</h1>\n{said}{begin}{fields}<button>Sign in</button>\n</form>\n");
    page(StatusCode::OK, "Sign in", &main, "'self'")
}

/// Where a second factor has to be set up before anything else.
pub(super) fn unready(base: &str) -> Answer {
    let way = format!(
        "<p>First <a href=\"{}/sign-in\">set it up</a>, then go back to the application and connect again.</p>\n",
        escape(base)
    );
    let kind = Refusal::must_enroll().kind();
    saying(kind, StatusCode::FORBIDDEN, "Your workspace asks for a second factor before anything else.", &way)
}

/// An answer that could not be taken: the question can be put again.
pub(super) fn undecided(base: &str, question: &str, refusal: &Refusal) -> Answer {
    let way = format!("<p><a href=\"{}{}\">Back to the question</a></p>\n", escape(base), escape(question));
    leading_on(refusal, &way)
}

/// What is wrong with what a client asks. The client is told where the person goes on: nobody is sent on by a link alone.
pub(super) fn unasked(refusal: &Refusal, redirect: &Redirect, to: &str) -> Answer {
    let way = format!(
        "<p>The application sent a request that this server does not accept. <a href=\"{}\" rel=\"noreferrer\">Go back to {}</a></p>\n",
        escape(to),
        escape(redirect.host())
    );
    saying(refusal.kind(), StatusCode::BAD_REQUEST, &sentence(refusal.message()), &way)
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
