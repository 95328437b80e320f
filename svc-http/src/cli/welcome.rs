//! What `svc dev` and `svc init` print: what there is now, and what to try.

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use svc_core::value::id::{AgentId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_core::value::text::Email;
use svc_http::config::Config;
use svc_http::secrets::sign_in_link;

use super::occupancy::{Turn, Unseen};
use super::output::{Problem, is_closed, named_data, note, print_made, quoted as word};

/// What a first start makes, as it is afterwards.
pub(crate) struct Home {
    /// The workspace.
    pub(crate) workspace: WorkspaceId,
    /// The agent; absent where somebody removed it.
    pub(crate) agent: Option<AgentId>,
    /// The keys, where they were made just now: nobody can read them again.
    pub(crate) keys: Option<Keys>,
    /// The secret that callbacks are signed with, where it was made just now.
    pub(crate) callback_secret: Option<Secret<String>>,
    /// The token of the owner's one-time link, where it was made just now.
    pub(crate) sign_in_token: Option<Secret<String>>,
    /// That nobody has seen the keys yet, where they were made just now.
    pub(crate) unseen: Cell<Option<Unseen>>,
    /// How more of it is made.
    pub(crate) again: Again,
}

/// The commands by which what was lost is made anew, as they are typed for these data.
#[derive(Debug)]
pub(crate) struct Again {
    /// Makes the first owner another link.
    link: String,
    /// Makes keys in place of those of the first start: on one machine alone.
    keys: Option<String>,
    /// Make one key each, wherever.
    others: String,
}

impl Again {
    /// Those for the data of `config`, whose first owner is `owner`.
    pub(crate) fn of(config: &Config, owner: &Email) -> Self {
        let named = named_data(config);
        Self {
            link: format!("`svc sign-in-link {}{named}`", word(owner.as_str().to_owned())),
            others: format!("`svc key create{named}` and `svc token create{named}`"),
            keys: config.postgres.is_none().then(|| format!("`svc dev --new-keys{named}`")),
        }
    }

    /// What to do about keys that nobody has.
    fn keys(&self) -> String {
        match &self.keys {
            Some(command) => format!("{command} makes new ones and revokes these"),
            None => format!("{} make others", self.others),
        }
    }

    /// What to do about secrets that were made for nobody to see.
    fn closed(&self) -> String {
        match &self.keys {
            Some(command) => format!(
                "What was made stays: {command} makes other keys and another sign-in link, prints them, and revokes these."
            ),
            None => format!(
                "What was made stays: {} makes another sign-in link. Sign in, revoke the keys, and make others there or by {}.",
                self.link, self.others
            ),
        }
    }
}

/// Keys in the clear.
pub(crate) struct Keys {
    /// The agent's own.
    pub(crate) agent: Secret<String>,
    /// For model traffic.
    pub(crate) inference: Secret<String>,
    /// For administration.
    pub(crate) admin: Secret<String>,
    /// For machines: a service token with all scopes.
    pub(crate) token: Secret<String>,
}

/// The body of the printed request: a payment that the template `saas-subscriptions` allows.
const REQUEST: &str = concat!(
    r#"{"type":"payment","summary":"Renew the design tool for a year","#,
    r#""payment":{"amount":4900,"currency":"EUR","merchant":{"name":"Example Tools","domain":"tools.example.com"}},"#,
    r#""provenance":[{"source":"user"}]}"#
);
/// How a printed request names the agent's key where it is not known.
const KEY_VARIABLE: &str = "$SVC_AGENT_KEY";

impl Home {
    /// One JSON object; secrets are in it only where they were made just now.
    pub(crate) fn as_json(&self, base_url: &str) -> Value {
        let mut out = Map::new();
        let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
        put("baseUrl", json!(base_url));
        put("workspaceId", json!(self.workspace));
        if let Some(token) = &self.sign_in_token {
            put("signInLink", json!(sign_in_link(base_url, token.expose())));
        }
        if let Some(agent) = &self.agent {
            put("agentId", json!(agent));
        }
        if let Some(keys) = &self.keys {
            put("agentKey", json!(keys.agent.expose()));
            put("inferenceKey", json!(keys.inference.expose()));
            put("adminKey", json!(keys.admin.expose()));
            put("serviceToken", json!(keys.token.expose()));
        }
        if let Some(secret) = &self.callback_secret {
            put("callbackSecret", json!(secret.expose()));
        }
        Value::Object(out)
    }

    /// The same for people.
    pub(crate) fn as_text(&self, base_url: &str) -> String {
        let mut out = String::new();
        let _ = match &self.sign_in_token {
            Some(token) => writeln!(out, "  sign in        {}", sign_in_link(base_url, token.expose())),
            None => {
                writeln!(out, "  sign in        {base_url}/sign-in, or by a link: {} makes one", self.again.link)
            }
        };
        let _ = writeln!(out, "  workspace      {}", self.workspace);
        let _ = match &self.agent {
            Some(agent) => writeln!(out, "  agent          {agent}"),
            None => match &self.again.keys {
                Some(command) => writeln!(out, "  agent          removed; {command} makes another"),
                None => writeln!(out, "  agent          removed; the console makes another"),
            },
        };
        match &self.keys {
            Some(keys) => {
                let _ = writeln!(out, "  agent key      {}", keys.agent.expose());
                let _ = writeln!(out, "  inference key  {}", keys.inference.expose());
                let _ = writeln!(out, "  admin key      {}", keys.admin.expose());
                let _ = writeln!(out, "  service token  {}", keys.token.expose());
            }
            None => {
                let _ = writeln!(out, "  keys           as they were; {}", self.again.keys());
            }
        }
        if let Some(secret) = &self.callback_secret {
            let _ = writeln!(out, "  callbacks      signed with {}", secret.expose());
        }
        if self.keys.is_some() {
            out.push_str("\nKeep the keys now: they are shown this once and stored as digests only.\n");
        }
        out
    }

    /// Prints `text`, which holds what was made: from then on it counts as seen.
    ///
    /// # Errors
    /// [`Problem`] where it cannot be written: the next start makes other keys.
    pub(crate) fn print(&self, text: &str) -> Result<(), Problem> {
        print_made(text, &self.lost())?;
        if let Some(unseen) = self.unseen.take() {
            unseen.seen();
        }
        Ok(())
    }

    /// The turn in which one process makes what is missing; none where this start has it already, until the keys are shown: whoever
    /// waited for it here would wait for itself.
    pub(crate) fn turn(&self, directory: &Path) -> Option<Turn> {
        let unseen = self.unseen.take();
        let is_ours = unseen.is_some();
        self.unseen.set(unseen);
        (!is_ours).then(|| Turn::wait(directory))
    }

    /// What to do where it could not be printed.
    pub(crate) fn lost(&self) -> String {
        if self.keys.is_some() {
            "Start it again with its output open: it makes other keys and another sign-in link, prints them, and revokes these."
                .to_owned()
        } else if self.is_secret() {
            self.again.closed()
        } else {
            "Run the command again with its output open.".to_owned()
        }
    }

    /// What went wrong before it could be printed, and that what was made was not shown.
    pub(crate) fn unseen(&self, problem: Problem) -> Problem {
        if self.is_secret() { problem.advising("what was made before was not shown", &self.lost()) } else { problem }
    }

    /// Whether it holds what is shown once.
    pub(crate) const fn is_secret(&self) -> bool {
        self.keys.is_some() || self.callback_secret.is_some() || self.sign_in_token.is_some()
    }

    /// A request that works when it is pasted into a shell, on one line.
    pub(crate) fn request(&self, base_url: &str) -> String {
        let key = self.keys.as_ref().map_or(KEY_VARIABLE, |keys| keys.agent.expose());
        let url = quoted(format!("{base_url}/v1/actions/authorize"));
        format!("curl -sS {url} -H \"authorization: Bearer {key}\" -d '{REQUEST}'")
    }

    /// A line that gives a shell what further requests need, where the key is known.
    pub(crate) fn variables(&self, base_url: &str) -> Option<String> {
        let key = self.keys.as_ref()?.agent.expose();
        Some(format!("export SVC_URL={} SVC_AGENT_KEY={key}", quoted(base_url.to_owned())))
    }
}

/// Tells on standard error where secrets were made that nobody can see. It is no failure: whoever starts a service without
/// an output may want the rest of what was made.
pub(crate) fn tell_unseen(home: &Home) {
    if home.is_secret() && is_closed() {
        let what = "svc: standard output is closed, so nobody sees the keys that were made";
        note(&format!("{what}\n     {}\n", home.again.closed()));
    }
}

/// A URL as a word of a shell: shells read brackets and more in a way of their own.
fn quoted(url: String) -> String {
    let is_plain = url.chars().all(|it| it.is_ascii_alphanumeric() || "/:.-_".contains(it));
    if is_plain { url } else { format!("'{}'", url.replace('\'', "%27")) }
}

#[cfg(test)]
mod tests {
    use svc_core::value::Id as _;

    use super::*;

    /// The request names the key where it is known and the variable where not, and quotes an address that needs it.
    #[test]
    fn the_request_fits_a_shell() {
        let (workspace, agent) = (WorkspaceId::from_bits(1), AgentId::from_bits(2));
        let again = || Again { link: String::new(), keys: None, others: String::new() };
        let home = Home {
            workspace,
            agent: Some(agent),
            keys: None,
            callback_secret: None,
            sign_in_token: None,
            unseen: Cell::new(None),
            again: again(),
        };
        let line = home.request("http://127.0.0.1:8080");
        assert!(
            line.starts_with(
                "curl -sS http://127.0.0.1:8080/v1/actions/authorize -H \"authorization: Bearer $SVC_AGENT_KEY\" -d '{"
            ),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
        assert!(home.request("http://[::1]:8080").starts_with("curl -sS 'http://[::1]:8080/v1/actions/authorize' "));
        assert!(serde_json::from_str::<Value>(REQUEST).is_ok_and(|it| it["type"] == "payment"));
        let secret = |text: &str| Secret::new(text.to_owned());
        let keys = Some(Keys {
            agent: secret("ask_a"),
            inference: secret("ask_i"),
            admin: secret("ask_d"),
            token: secret("ims_t"),
        });
        assert_eq!(home.variables("http://localhost"), None);
        let home = Home {
            workspace,
            agent: Some(agent),
            keys,
            callback_secret: None,
            sign_in_token: None,
            unseen: Cell::new(None),
            again: again(),
        };
        assert!(home.request("http://localhost").contains("Bearer ask_a\""));
        assert_eq!(
            home.variables("http://[::1]:1").unwrap_or_default(),
            "export SVC_URL='http://[::1]:1' SVC_AGENT_KEY=ask_a"
        );
    }
}
