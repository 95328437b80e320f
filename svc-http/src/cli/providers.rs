//! The providers of models that `svc dev` and `svc init` begin with: those whose keys are in the environment, else a stand-in.

use std::collections::BTreeSet;
use std::env;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use svc_core::refusal::Refusal;
use svc_core::rules::gateway::models::{NewModel, Set as ModelSet};
use svc_core::rules::gateway::routing::{Edit, EditRouting};
use svc_core::rules::gateway::upstreams::{NewKey, Set};
use svc_core::rules::people::by::By;
use svc_core::state::gateway::listing::{Listed, shipped};
use svc_core::state::gateway::{Capability, Dialect, Prices, Quality, Routing, TokenPrices, Upstream, UpstreamKey};
use svc_core::value::MicroUsd;
use svc_core::value::id::{UpstreamId, WorkspaceId};
use svc_core::value::text::{ModelName, UpstreamName, UrlText};
use svc_http::mock::Mock;
use svc_http::secrets::PREFIXES;
use svc_http::serve::runtime;
use svc_store::Gate;

use super::mock_upstream;
use super::output::{Problem, note};
use super::welcome::Home;

/// A provider whose key may be in the environment.
struct Known {
    variable: &'static str,
    name: &'static str,
    dialect: Dialect,
    base_url: &'static str,
    /// How its models' ids begin.
    models: &'static [&'static str],
}

const KNOWN: [Known; 2] = [
    Known {
        variable: "OPENAI_API_KEY",
        name: "openai",
        dialect: Dialect::Chat,
        base_url: "https://api.openai.com/v1",
        models: &["gpt-", "o3", "o4"],
    },
    Known {
        variable: "ANTHROPIC_API_KEY",
        name: "anthropic",
        dialect: Dialect::Messages,
        base_url: "https://api.anthropic.com",
        models: &["claude-"],
    },
];

/// The stand-in's names as a provider: one for each API.
const DEMO: [(&str, Dialect); 2] = [("demo", Dialect::Chat), ("demo-messages", Dialect::Messages)];
/// The stand-in's models: what each is called, its quality, and what a million tokens of input and output cost in micros.
const DEMO_MODELS: [(&str, u8, u64, u64); 2] =
    [("demo-large", 80, 3_000_000, 15_000_000), ("demo-small", 50, 250_000, 1_000_000)];

/// What others than those above are called together.
const OWN: &str = "the workspace's own upstreams";

/// What is kept as the stand-in's key. A key goes with its address: with another host it has to be given anew, so an upstream
/// that still has this one is as it was made here.
const DEMO_KEY: &str = "demonstration";

/// What model traffic goes to.
pub(crate) enum Providers {
    /// Providers by their names.
    Real(Vec<&'static str>),
    /// The stand-in.
    Demo,
    /// The stand-in, as soon as somebody starts it.
    DemoElsewhere,
    /// The stand-in alone, which somebody disabled.
    Off,
}

impl Providers {
    /// What is told of them at the start.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Real(names) => format!("Models are called at {}.", names.join(" and ")),
            Self::Demo => {
                "Models are answered by a demonstration upstream (`demo-large`, `demo-small`): set OPENAI_API_KEY or \
                 ANTHROPIC_API_KEY for real ones."
                    .to_owned()
            }
            Self::DemoElsewhere => format!(
                "Models are answered by a demonstration upstream (`demo-large`, `demo-small`) while `svc mock-upstream` runs and \
                 `outbound.allow` names {}; `svc dev` brings its own. Set OPENAI_API_KEY or ANTHROPIC_API_KEY at the first \
                 `svc init` for real ones, or make upstreams in the console's interface.",
                Ipv4Addr::LOCALHOST
            ),
            Self::Off => {
                "Models are answered by nobody: the demonstration upstream is disabled. Enable `demo`, or set \
                 OPENAI_API_KEY or ANTHROPIC_API_KEY."
                    .to_owned()
            }
        }
    }
}

/// Has the workspace know the providers whose keys are in the environment, or, where there are none and it knows no others,
/// a stand-in that runs as long as this process. Beside others a stand-in of an earlier start is disabled: what it makes up is
/// no answer where real ones are to be had, and nothing listens any more where it was.
///
/// `directory` is that of the database.
///
/// # Errors
/// [`Problem`] where the store takes nothing more or the stand-in cannot start.
pub(crate) fn ensure(gate: &Gate, directory: &Path, home: &Home) -> Result<Providers, Problem> {
    let (workspace, _turn) = (home.workspace, home.turn(directory));
    let real = keep_all_real(gate, workspace)?;
    let known = routing(gate, workspace)?;
    let mut demo = Vec::new();
    for upstream in &known.upstreams {
        if is_demo(gate, workspace, upstream)? {
            demo.push(upstream);
        }
    }
    if real.is_empty() && demo.len() == known.upstreams.len() {
        keep_demo(gate, workspace, &demo, stand_in()?)?;
        let is_off = !demo.is_empty() && demo.iter().all(|it| !it.enabled);
        return Ok(if is_off { Providers::Off } else { Providers::Demo });
    }
    for upstream in demo.into_iter().filter(|it| it.enabled) {
        edit(gate, workspace, Edit::ChangeUpstream(upstream.id, vec![Set::Enabled(false)]))?;
        tracing::info!(upstream = %upstream.name.as_str(), "the demonstration upstream is disabled, as there are others");
    }
    Ok(Providers::Real(if real.is_empty() { vec![OWN] } else { real }))
}

/// Has a workspace that was made just now know the same without serving anything: the stand-in is where `svc mock-upstream`
/// listens if nothing else is said, and what is there already stays. `directory` is that of the database.
///
/// # Errors
/// [`Problem`] where the store takes nothing more.
pub(crate) fn begin(gate: &Gate, directory: &Path, home: &Home) -> Result<Providers, Problem> {
    let (workspace, _turn) = (home.workspace, home.turn(directory));
    let real = keep_all_real(gate, workspace)?;
    if !real.is_empty() {
        return Ok(Providers::Real(real));
    }
    if !routing(gate, workspace)?.upstreams.is_empty() {
        return Ok(Providers::Real(vec![OWN]));
    }
    let listen = mock_upstream::LISTEN;
    keep_demo(gate, workspace, &[], (format!("http://{listen}/v1"), format!("http://{listen}")))?;
    Ok(Providers::DemoElsewhere)
}

/// The providers whose keys are in the environment, by their names. Secrets of svc itself are told of and passed over.
fn keep_all_real(gate: &Gate, workspace: WorkspaceId) -> Result<Vec<&'static str>, Problem> {
    let mut real = Vec::new();
    for known in &KNOWN {
        let key = env::var(known.variable).unwrap_or_default();
        let key = key.trim();
        // Whoever has pointed a client at svc has its own key under that name: sent to the provider, it would be known there.
        if let Some(prefix) = PREFIXES.iter().find(|it| key.starts_with(**it)) {
            let variable = known.variable;
            note(&format!(
                "{variable} is passed over: it holds a secret of svc's own (`{prefix}`), which is no key of {}.\n",
                known.name
            ));
        } else if !key.is_empty() {
            keep_real(gate, workspace, known, key)?;
            real.push(known.name);
        }
    }
    Ok(real)
}

/// Whether an upstream is the stand-in as it was made here: what somebody made of it since, or gave its name to, is theirs.
fn is_demo(gate: &Gate, workspace: WorkspaceId, upstream: &Upstream) -> Result<bool, Problem> {
    let is_named = DEMO.iter().any(|(name, _)| *name == upstream.name.as_str());
    let here = Some(url::Host::Ipv4(Ipv4Addr::LOCALHOST));
    if !is_named || !url::Url::parse(upstream.base_url.as_str()).is_ok_and(|it| it.host() == here) {
        return Ok(false);
    }
    let key = gate.read(|scope| scope.get::<UpstreamKey>(upstream.id))?;
    let opened = key.map(|it| gate.open_sealed(&UpstreamKey::purpose(workspace), &it.sealed));
    Ok(opened.is_some_and(|it| it.is_ok_and(|key| key.expose() == DEMO_KEY.as_bytes())))
}

/// Has the workspace know where the stand-in listens this time, for chat and for messages: `svc dev` has another port at each start.
fn keep_demo(
    gate: &Gate,
    workspace: WorkspaceId,
    known: &[&Upstream],
    (chat, messages): (String, String),
) -> Result<(), Problem> {
    for ((name, dialect), base_url) in DEMO.into_iter().zip([chat, messages]) {
        let set = vec![
            Set::Name(own_value(UpstreamName::parse(name))?),
            Set::Kind(dialect),
            Set::BaseUrl(own_value(UrlText::parse(&base_url))?),
            Set::Key(seal(gate, workspace, DEMO_KEY)?),
        ];
        match known.iter().find(|it| it.name.as_str() == name) {
            Some(it) => edit(gate, workspace, Edit::ChangeUpstream(it.id, set)).map(drop)?,
            None => {
                let id = edit(gate, workspace, Edit::CreateUpstream(set))?;
                demo_models(gate, workspace, id)?;
            }
        }
    }
    Ok(())
}

fn keep_real(gate: &Gate, workspace: WorkspaceId, known: &Known, key: &str) -> Result<(), Problem> {
    let before = routing(gate, workspace)?.upstreams.iter().find(|it| it.name.as_str() == known.name).map(|it| it.id);
    let sealed = Set::Key(seal(gate, workspace, key)?);
    if let Some(id) = before {
        return edit(gate, workspace, Edit::ChangeUpstream(id, vec![sealed])).map(drop);
    }
    let set = vec![
        Set::Name(own_value(UpstreamName::parse(known.name))?),
        Set::Kind(known.dialect),
        Set::BaseUrl(own_value(UrlText::parse(known.base_url))?),
        sealed,
        Set::Jurisdiction(Some("us".into())),
    ];
    let id = edit(gate, workspace, Edit::CreateUpstream(set))?;
    let theirs = |name: &str| known.models.iter().any(|it| name.starts_with(it));
    for (name, listed) in shipped().models.iter().filter(|(name, _)| theirs(name)) {
        make(
            gate,
            workspace,
            NewModel { upstream: id, name: own_value(ModelName::parse(name))?, known: sets(listed), set: Vec::new() },
        )?;
    }
    Ok(())
}

/// What the shipped table knows of a model, as settings.
fn sets(listed: &Listed) -> Vec<ModelSet> {
    let aliases: BTreeSet<ModelName> = listed.aliases.iter().filter_map(|it| ModelName::parse(it).ok()).collect();
    let mut sets = vec![ModelSet::Aliases(aliases), ModelSet::Prices(listed.prices.clone().map(Box::new))];
    sets.extend(listed.jurisdiction.clone().map(|it| ModelSet::Jurisdiction(Some(it))));
    sets.extend(listed.context_window.map(ModelSet::ContextWindow));
    sets.extend(listed.max_output.map(ModelSet::MaxOutput));
    sets.extend(listed.capabilities.clone().map(ModelSet::Capabilities));
    sets.extend(listed.retention.map(ModelSet::Retention));
    sets.extend(listed.quality.clone().map(ModelSet::Quality));
    sets.extend(listed.figures.map(ModelSet::Figures));
    sets
}

fn demo_models(gate: &Gate, workspace: WorkspaceId, upstream: UpstreamId) -> Result<(), Problem> {
    for (name, quality, input, output) in DEMO_MODELS {
        let tokens = TokenPrices {
            input: MicroUsd::new(input),
            cached_input: Some(MicroUsd::new(input / 10)),
            output: MicroUsd::new(output),
            ..TokenPrices::default()
        };
        let set = vec![
            ModelSet::Quality(Quality { general: quality, by_class: std::collections::BTreeMap::new() }),
            ModelSet::Prices(Some(Box::new(Prices { tokens, ..Prices::default() }))),
            ModelSet::Capabilities(BTreeSet::from([
                Capability::Tools,
                Capability::Vision,
                Capability::Streaming,
                Capability::Json,
                Capability::Reasoning,
            ])),
        ];
        make(gate, workspace, NewModel { upstream, name: own_value(ModelName::parse(name))?, known: Vec::new(), set })?;
    }
    Ok(())
}

/// Starts the stand-in on a thread of its own: its base addresses for chat and for messages.
fn stand_in() -> Result<(String, String), Problem> {
    let cannot = |error: std::io::Error| {
        Problem::new(
            format!("the demonstration upstream cannot start: {error}"),
            "Look at this user's limits of threads and open files.",
        )
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let runtime = runtime(std::num::NonZeroUsize::new(1)).map_err(cannot)?;
    std::thread::Builder::new()
        .name("demo-upstream".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                // It answers until the process ends.
                match Mock::start(listener) {
                    Ok(_mock) => std::future::pending::<()>().await,
                    Err(error) => tracing::error!(%error, "the demonstration upstream stopped"),
                }
            });
        })
        .map_err(cannot)?;
    Ok((format!("http://{address}/v1"), format!("http://{address}")))
}

fn make(gate: &Gate, workspace: WorkspaceId, new: NewModel) -> Result<(), Problem> {
    gate.execute(EditRouting { by: By::Program, workspace, edit: Edit::CreateModel(new) })?;
    Ok(())
}

fn edit(gate: &Gate, workspace: WorkspaceId, edit: Edit) -> Result<UpstreamId, Problem> {
    let same = if let Edit::ChangeUpstream(id, _) = &edit { Some(*id) } else { None };
    let edited = gate.execute(EditRouting { by: By::Program, workspace, edit })?;
    edited.upstream.or(same).ok_or_else(|| Problem::plain("an upstream was not made".to_owned()))
}

fn routing(gate: &Gate, workspace: WorkspaceId) -> Result<std::sync::Arc<Routing>, Problem> {
    Ok(gate.read(|scope| scope.get::<Routing>(workspace)?.ok_or_else(|| Refusal::internal().into()))?)
}

fn seal(gate: &Gate, workspace: WorkspaceId, key: &str) -> Result<NewKey, Problem> {
    let sealed = gate.seal(&UpstreamKey::purpose(workspace), key.as_bytes())?.into();
    Ok(NewKey { sealed, hint: svc_http::secrets::hint(key) })
}

fn own_value<T>(read: Result<T, svc_core::value::Invalid>) -> Result<T, Problem> {
    read.map_err(|why| Problem::plain(format!("a built-in name {why}")))
}
