//! The one list of settings.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use svc_core::state::people::Plan;
use svc_core::value::secret::Secret;
use url::Url;

use super::given::Given;
use super::mail::{self, MailServer};
use super::{Allowed, BaseUrl, Config, DATABASE, within};
use crate::address::networks;
use crate::callback_secret;

/// One setting: what it is called, what it is for, and how its value is taken in.
pub struct Key {
    /// Its name in the file: dotted, such as `limits.gatePerMinute`.
    pub name: &'static str,
    /// Its default as documentation shows it.
    pub default: &'static str,
    /// What it means, without a full stop.
    pub help: &'static str,
    /// Whether its value may be shown in no message.
    pub is_secret: bool,
    /// Whether it is a list: in the environment commas separate its values, and nothing at all is an empty one.
    pub is_list: bool,
    /// Whether it is a table: a list of names with values.
    pub is_table: bool,
    /// The least and the most that it may be, where it is a whole number.
    pub range: Option<(u64, u64)>,
    /// Takes a value into the settings, or says in a clause what it must be.
    set: fn(&mut Config, &Given<'_>) -> Result<(), String>,
}

/// How much of something a plan allows.
macro_rules! plan {
    ($name:literal, $plan:ident, $member:ident, $default:literal) => {
        number(
            concat!("plans.", $name, ".", stringify!($member)),
            $default,
            (0, 1_000_000_000),
            concat!(plan!(@ $member), " on the plan `", $name, "`; 0 is no limit"),
            |config, given| {
                config.plans.$plan.$member = given.number()?;
                Ok(())
            },
        )
    };
    (@ people) => { "people in a calendar month of model traffic" };
    (@ agents) => { "agents that were not removed" };
    (@ mandates) => { "mandates that were not revoked" };
    (@ requests) => { "model requests in a calendar month" };
}

/// What a rate, or how much is open at once, may be.
const TO_A_MILLION: (u64, u64) = (1, 1_000_000);
/// What a time may be: from a tenth of a second to an hour.
const MILLISECONDS: (u64, u64) = (100, 3_600_000);

/// Every setting, in the order of the documentation.
pub const KEYS: &[Key] = &[
    key("listen", "127.0.0.1:8080", "address and port to listen on; port 0 takes any free one", |config, given| {
        config.listen = given.one::<SocketAddr>(
            "must be an IP address with a port, such as `127.0.0.1:8080`: names are not looked up",
        )?;
        Ok(())
    }),
    key(
        "baseUrl",
        "http://127.0.0.1:<port>",
        "address at which others reach this server; https unless it is loopback. Receipts and links carry it; it is never taken from a request",
        |config, given| {
            config.base_url = Some(BaseUrl::parse(given.text()?).map_err(|why| why.to_string())?);
            Ok(())
        },
    ),
    key("data", "./svc-data", "data directory", |config, given| {
        config.data = given.path()?;
        Ok(())
    }),
    // An address of a database may hold a password.
    Key {
        is_secret: true,
        ..key(
            "store.url",
            "sqlite:<data>/svc.db",
            "database: `sqlite:` and a file called `svc.db`, or `postgres://user:password@host:port/database` for any number of servers; over a network the way is encrypted and the server's certificate checked, against `sslrootcert=<file>` where that is given, unless the address says `sslmode=disable`",
            |config, given| {
                match place(given)? {
                    Place::File(path) => (config.database, config.postgres) = (Some(path), None),
                    #[cfg(feature = "postgres")]
                    Place::Server(address) => (config.database, config.postgres) = (None, Some(address)),
                }
                Ok(())
            },
        )
    },
    key(
        "store.mayLose",
        "false",
        "`true` takes a database server that may lose what it has confirmed: with `fsync`, `full_page_writes` or `synchronous_commit` off",
        |config, given| {
            config.may_lose = given.one("must be `true` or `false`")?;
            Ok(())
        },
    ),
    Key {
        is_secret: true,
        ..key(
            "masterKey",
            "file `<data>/master.key`",
            "what seals secrets at rest: 32 bytes in base64url (43 characters) or hexadecimal (64)",
            |config, given| {
                config.master_key = Some(Secret::new(master_key(given.text()?)?));
                Ok(())
            },
        )
    },
    list("trustedProxies", "networks (CIDR) of proxies whose `x-forwarded-for` is believed", |config, given| {
        config.trusted_proxies = networks(given.texts)?;
        Ok(())
    }),
    list(
        "outbound.allow",
        "hosts on private addresses that upstreams may have, by plain http too, and with `--allow-private-callbacks` identity providers and clients' documents; `svc dev` allows loopback where this names nothing, and 127.0.0.1 while its demonstration upstream answers there",
        |config, given| {
            let hosts = Allowed::parse(given.texts.iter().map(String::as_str));
            config.outbound.allow =
                hosts.map_err(|it| format!("must be a list of hosts such as `models.internal`, and `{it}` is none"))?;
            Ok(())
        },
    ),
    key(
        "outbound.caFile",
        "none",
        "file (PEM) of root certificates that are trusted beside the system's, for calls to the outside",
        |config, given| {
            config.outbound.ca_file = Some(given.path()?);
            Ok(())
        },
    ),
    number(
        "limits.gatePerMinute",
        "600",
        TO_A_MILLION,
        "requests a minute of one agent on `/v1/actions/*`, `/mcp` and `/mcp/proxy/*` together",
        |config, given| {
            config.limits.gate_per_minute = given.number()?;
            Ok(())
        },
    ),
    number(
        "limits.verifyPerMinute",
        "300",
        TO_A_MILLION,
        "requests a minute of one address on `/v1/verify`",
        |config, given| {
            config.limits.verify_per_minute = given.number()?;
            Ok(())
        },
    ),
    number(
        "limits.gatewayPerMinute",
        "1200",
        TO_A_MILLION,
        "requests a minute of one workspace key on the routes that take one, of one integration on its `/hooks/*`, and of one address whose keys, cookies or signatures are none",
        |config, given| {
            config.limits.gateway_per_minute = given.number()?;
            Ok(())
        },
    ),
    number("limits.tokenPerMinute", "600", TO_A_MILLION, "requests a minute of one service token", |config, given| {
        config.limits.token_per_minute = given.number()?;
        Ok(())
    }),
    number(
        "limits.signInPerMinute",
        "30",
        TO_A_MILLION,
        "requests a minute of one address for signing in: on `/api/sign-in`, `/api/sign-in/*`, `POST /sign-in`, `/oauth/register`, `/api/me/password`, `/api/me/totp/confirm` and `DELETE /api/me/totp` together; and as many clients' documents are fetched for it",
        |config, given| {
            config.limits.sign_in_per_minute = given.number()?;
            Ok(())
        },
    ),
    number(
        "limits.oauthPerMinute",
        "300",
        TO_A_MILLION,
        "requests a minute of one address on `/oauth/authorize`, `/oauth/token`, `/oauth/revoke` and `GET /sign-in` together; one client may send a fifth of it for tokens from one address",
        |config, given| {
            config.limits.oauth_per_minute = given.number()?;
            Ok(())
        },
    ),
    list(
        "oauth.allowRedirects",
        "redirect URIs of OAuth clients that are admitted besides https and loopback, byte for byte",
        |config, given| {
            config.allow_redirects = redirects(given.texts)?;
            Ok(())
        },
    ),
    key(
        "oauth.clientDocuments",
        "true",
        "whether OAuth clients may name themselves by the address of their metadata, which this server fetches",
        |config, given| {
            config.client_documents = given.one("must be `true` or `false`")?;
            Ok(())
        },
    ),
    number("limits.bodyBytes", "1048576", (1_024, 33_554_432), "bytes of a request body", |config, given| {
        config.limits.body_bytes = given.number()?;
        Ok(())
    }),
    number(
        "limits.modelBodyBytes",
        "33554432",
        (1_024, 268_435_456),
        "bytes of a request body of model traffic",
        |config, given| {
            config.limits.model_body_bytes = given.number()?;
            Ok(())
        },
    ),
    number(
        "limits.billingBodyBytes",
        "8388608",
        (1_024, 67_108_864),
        "bytes of a request body that brings a bill",
        |config, given| {
            config.limits.billing_body_bytes = given.number()?;
            Ok(())
        },
    ),
    number(
        "limits.connections",
        "10000",
        TO_A_MILLION,
        "connections open at once; no more than three quarters of the files that the process may have open",
        |config, given| {
            config.limits.connections = given.number()?;
            Ok(())
        },
    ),
    number(
        "timeouts.headerMs",
        "10000",
        MILLISECONDS,
        "milliseconds a client has to send a request's header",
        |config, given| {
            config.timeouts.header = given.span()?;
            Ok(())
        },
    ),
    number(
        "timeouts.bodyMs",
        "30000",
        MILLISECONDS,
        "milliseconds a client has to send a request's body",
        |config, given| {
            config.timeouts.body = given.span()?;
            Ok(())
        },
    ),
    number(
        "timeouts.drainMs",
        "30000",
        MILLISECONDS,
        "milliseconds that running requests get when the server stops; event streams end at once, and their readers go on at the next server with `last-event-id`",
        |config, given| {
            config.timeouts.drain = given.span()?;
            Ok(())
        },
    ),
    number(
        "timeouts.firstTokenMs",
        "120000",
        MILLISECONDS,
        "milliseconds a model has to send the first token of a stream",
        |config, given| {
            config.timeouts.calls.first_token = given.span()?;
            Ok(())
        },
    ),
    number("timeouts.idleMs", "60000", MILLISECONDS, "milliseconds a model has between tokens", |config, given| {
        config.timeouts.calls.idle = given.span()?;
        Ok(())
    }),
    number("timeouts.totalMs", "900000", MILLISECONDS, "milliseconds a model has for a whole call", |config, given| {
        config.timeouts.calls.total = given.span()?;
        Ok(())
    }),
    key("log.level", "info", "`off`, `error`, `warn`, `info`, `debug` or `trace`", |config, given| {
        config.log.level = given.one("must be `off`, `error`, `warn`, `info`, `debug` or `trace`")?;
        Ok(())
    }),
    key(
        "log.format",
        "auto",
        "`json`, `text`, or `auto`: JSON unless standard error is a terminal",
        |config, given| {
            config.log.format = given.one("must be `auto`, `json` or `text`")?;
            Ok(())
        },
    ),
    // The address holds a password.
    Key {
        is_secret: true,
        ..key(
            "mail.url",
            "none",
            "server that takes mail: `smtps://user:password@host`, or `smtp://`, which asks for STARTTLS unless the host is loopback",
            |config, given| {
                config.mail.server = Some(Arc::new(MailServer::parse(given.text()?)?));
                Ok(())
            },
        )
    },
    key("mail.from", "none", "whom mail comes from, such as `svc <svc@example.com>`", |config, given| {
        config.mail.from = Some(mail::from(given.text()?)?);
        Ok(())
    }),
    key(
        "metrics.listen",
        "off",
        "address and port of a listener of its own for `GET /metrics` (Prometheus)",
        |config, given| {
            config.metrics = match given.text()? {
                "off" => None,
                _ => Some(
                    given.one::<SocketAddr>("must be `off`, or an IP address with a port, such as `127.0.0.1:9464`")?,
                ),
            };
            Ok(())
        },
    ),
    Key {
        is_secret: true,
        ..key(
            "billing.secret",
            "none",
            "what the payment processor signs with that bills workspaces (`/hooks/billing`): 24 to 256 visible ASCII characters",
            |config, given| {
                let secret = callback_secret::parse(given.text()?).map_err(|why| why.to_string())?;
                config.billing.secret = Some(secret);
                Ok(())
            },
        )
    },
    table(
        "billing.plans",
        "which plan a price of the payment processor's is of, such as `price_1 = \"team\"`; in the environment `price_1=team`",
        |config, given| {
            config.billing.plans = plans(given.texts)?;
            Ok(())
        },
    ),
    key(
        "slack.apiUrl",
        "https://slack.com/api",
        "where Slack's methods are: another address for GovSlack, `https://slack-gov.com/api`",
        |config, given| {
            config.slack_api = api_url(given.text()?)?;
            Ok(())
        },
    ),
    plan!("self-hosted", self_hosted, people, "0"),
    plan!("self-hosted", self_hosted, agents, "0"),
    plan!("self-hosted", self_hosted, mandates, "0"),
    plan!("self-hosted", self_hosted, requests, "0"),
    plan!("free", free, people, "3"),
    plan!("free", free, agents, "3"),
    plan!("free", free, mandates, "10"),
    plan!("free", free, requests, "10000"),
    plan!("team", team, people, "20"),
    plan!("team", team, agents, "50"),
    plan!("team", team, mandates, "500"),
    plan!("team", team, requests, "1000000"),
    plan!("enterprise", enterprise, people, "0"),
    plan!("enterprise", enterprise, agents, "0"),
    plan!("enterprise", enterprise, mandates, "0"),
    plan!("enterprise", enterprise, requests, "0"),
];

/// A setting whose value may be shown.
const fn key(
    name: &'static str,
    default: &'static str,
    help: &'static str,
    set: fn(&mut Config, &Given<'_>) -> Result<(), String>,
) -> Key {
    Key { name, default, help, is_secret: false, is_list: false, is_table: false, range: None, set }
}

/// A setting that is a whole number in a range.
const fn number(
    name: &'static str,
    default: &'static str,
    range: (u64, u64),
    help: &'static str,
    set: fn(&mut Config, &Given<'_>) -> Result<(), String>,
) -> Key {
    Key { range: Some(range), ..key(name, default, help, set) }
}

/// A setting that is a list, empty where nothing is set.
const fn list(name: &'static str, help: &'static str, set: fn(&mut Config, &Given<'_>) -> Result<(), String>) -> Key {
    Key { is_list: true, ..key(name, "[]", help, set) }
}

/// A setting that is a table of names and values, each as `name=value`; empty where nothing is set.
const fn table(name: &'static str, help: &'static str, set: fn(&mut Config, &Given<'_>) -> Result<(), String>) -> Key {
    Key { is_list: true, is_table: true, ..key(name, "{}", help, set) }
}

impl Key {
    /// The setting of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Its name in the environment: `limits.gatePerMinute` is `SVC_LIMITS_GATE_PER_MINUTE`.
    #[must_use]
    pub fn env(&self) -> String {
        let mut name = String::from("SVC_");
        for letter in self.name.chars() {
            if letter == '.' || letter == '-' {
                name.push('_');
                continue;
            }
            if letter.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        }
        name
    }

    /// Takes a value into `config`.
    ///
    /// # Errors
    /// A clause that says what the value must be.
    pub(super) fn set(&self, config: &mut Config, given: &Given<'_>) -> Result<(), String> {
        (self.set)(config, &Given { range: self.range, ..*given })
    }

    /// What it means, and the least and the most that it may be.
    fn meaning(&self) -> String {
        match self.range {
            Some((least, most)) => format!("{}; {least} to {most}", self.help),
            None => self.help.to_owned(),
        }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Key").field(&self.name).finish()
    }
}

/// Where the database is.
enum Place {
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Server(Secret<String>),
}

/// The place that an address of a database names.
fn place(given: &Given<'_>) -> Result<Place, String> {
    let url = given.text()?;
    if url.starts_with("postgres:") || url.starts_with("postgresql:") {
        server(url)
    } else {
        database(given).map(Place::File)
    }
}

/// A server of PostgreSQL. What is wrong with its address is told without any of it.
#[cfg(feature = "postgres")]
fn server(url: &str) -> Result<Place, String> {
    match svc_store::postgres::place_of(url) {
        Ok(_) => Ok(Place::Server(Secret::new(url.to_owned()))),
        Err(svc_store::StoreError::DatabaseAddress { why }) => Err(format!("names a database, and the address {why}")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "postgres"))]
fn server(_url: &str) -> Result<Place, String> {
    Err("must begin with `sqlite:`: this build has no PostgreSQL".to_owned())
}

/// The file of a `sqlite:` address.
fn database(given: &Given<'_>) -> Result<PathBuf, String> {
    let url = given.text()?;
    let path = url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path));
    match path.map(|path| within(given.folder, path)) {
        Some(path) if path.file_name().is_some_and(|name| name == DATABASE) => Ok(path),
        _ => Err(format!(
            "must be `sqlite:` and a file called `{DATABASE}`, such as `sqlite:/var/lib/svc/{DATABASE}`, or `postgres://user:password@host/database`"
        )),
    }
}

/// Checks that a master key has the 32 bytes it must have; the text is what is kept.
fn master_key(text: &str) -> Result<String, String> {
    use base64::Engine as _;
    let base64url = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 32);
    let hexadecimal = hex::decode(text).is_ok_and(|bytes| bytes.len() == 32);
    if base64url || hexadecimal {
        Ok(text.to_owned())
    } else {
        Err("must be 32 bytes in base64url (43 characters) or hexadecimal (64)".to_owned())
    }
}

/// Prices and the plans that they are of.
fn plans(texts: &[String]) -> Result<BTreeMap<Box<str>, Plan>, String> {
    let pair = |text: &String| {
        let read = text.split_once('=').map(|(price, plan)| (price.trim(), Plan::parse(plan.trim())));
        match read {
            Some((price, Some(plan))) if !price.is_empty() => Ok((price.into(), plan)),
            _ => {
                let words = Plan::ALL.map(Plan::as_str).join("`, `");
                Err(format!("must be prices, each with one of the plans `{words}`, and `{text}` is none"))
            }
        }
    };
    texts.iter().map(pair).collect()
}

/// The address of methods that others are put behind.
fn api_url(text: &str) -> Result<Box<str>, String> {
    let is_one = |it: &Url| {
        let is_safe = it.scheme() == "https"
            || (it.scheme() == "http" && it.host().is_some_and(|host| mail::is_loopback(&host.to_owned())));
        is_safe && it.has_host() && it.query().is_none() && it.fragment().is_none()
    };
    match Url::parse(text) {
        Ok(url) if is_one(&url) => Ok(text.trim_end_matches('/').into()),
        _ => Err("must be an https URL without a query, such as `https://slack.com/api`".to_owned()),
    }
}

/// Redirect URIs, which are compared byte for byte: what no client can send would be a silent nothing.
fn redirects(texts: &[String]) -> Result<Vec<Box<str>>, String> {
    let redirect = |text: &String| {
        let is_uri = text.bytes().all(|it| it.is_ascii_graphic() && it != b'#') && Url::parse(text).is_ok();
        is_uri.then(|| text.as_str().into()).ok_or_else(|| {
            format!("must be a list of URIs without a fragment such as `cursor://oauth/callback`, and `{text}` is none")
        })
    };
    texts.iter().map(redirect).collect()
}

/// Every setting for a terminal: the key and its default, and under it the name in the environment and the meaning.
#[must_use]
pub fn terminal_table() -> String {
    let mut out = String::new();
    for key in KEYS {
        let _ = writeln!(out, "  {} [default: {}]\n      {}: {}", key.name, key.default, key.env(), key.meaning());
    }
    out
}

/// Every setting as a Markdown table, as `docs/configuration.md` has it.
#[must_use]
pub fn markdown_table() -> String {
    let mut out = String::from("| Key | Environment | Default | Meaning |\n|---|---|---|---|\n");
    for key in KEYS {
        let default = if key.default.contains('`') { key.default.to_owned() } else { format!("`{}`", key.default) };
        let _ = writeln!(out, "| `{}` | `{}` | {default} | {} |", key.name, key.env(), key.meaning());
    }
    out
}
