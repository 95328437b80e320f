//! What `svc doctor` looks at of mail: whether the server that takes it answers, and takes the login and the sender.

use std::num::NonZero;

use svc_core::state::edge::Trouble;
use svc_http::config::Config;
use svc_http::mail::Mailer;
use svc_http::outbound::Trust;
use svc_http::serve::runtime;

use super::Finding::{self, Broken, Well};

/// Whether the mail server of the settings would take mail; `None` where they name none.
pub(super) fn answers(config: &Config) -> Option<Finding> {
    // What is wrong with the file of root certificates is told of that.
    let trust = Trust::with(config.outbound.ca_file.as_deref()).unwrap_or_default();
    let mailer = Mailer::of(config, config.base_url(config.listen).authority(), &trust)?;
    let host = mailer.host();
    let checked = match runtime(NonZero::new(1)) {
        Ok(runtime) => runtime.block_on(mailer.check()),
        Err(error) => return Some(Broken(format!("mail cannot be tried: {error}"), String::new())),
    };
    Some(match checked {
        Ok(()) => Well(format!("{host} answers")),
        Err(trouble) => Broken(format!("{host} takes no mail: {}", why(trouble)), advice(trouble).to_owned()),
    })
}

/// What is wrong, in words of mail.
const fn why(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Answer => "it refuses the login, or this machine",
        Trouble::Tls => "it offers no TLS, or its certificate is not trusted or names another host",
        Trouble::Sender => "it takes no letters beyond ASCII before the `@` of `mail.from`",
        Trouble::Protocol => "what answers is no mail server, or knows no login by password",
        other => other.as_str(),
    }
}

const fn advice(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Answer => {
            "Correct the user and the password in `mail.url`; where it wants none, its own log says why it turns this machine away."
        }
        Trouble::Tls => {
            "Correct `mail.url`, or name the root that the server's certificate comes from in `outbound.caFile`."
        }
        Trouble::Sender => "Name an address in `mail.from` that has none, or a server that offers SMTPUTF8.",
        _ => "Correct the host and the port in `mail.url`, or this machine's way to it.",
    }
}
