//! Names that a workspace gives once: what is told of one that something else of the kind bears. The rules that make and change such things
//! ask in their own commit; who reads a body that is malformed anyway asks by [`super::named`].

use crate::rules::edge::mcp_servers::servers_of;
use crate::rules::gateway::routing::routing_of;
use crate::state::edge::McpServers;
use crate::state::gate::{Template, WorkspaceTemplate};
use crate::state::gateway::Routing;
use crate::state::people::TokenName;
use crate::store::{Key, Row as _};
use crate::turn::{Halt, Scope};
use crate::value::id::{UpstreamId, WorkspaceId};
use crate::value::likeness::told_by;
use crate::value::text::{ClassId, Label, ModelName, ServerName, UpstreamName};

use super::templates::own_template;
use super::tokens;

/// What is told of a provider's name.
pub(in crate::rules) const UPSTREAM: &str = "is that of another upstream";
/// What is told of a model's id.
pub(in crate::rules) const MODEL: &str = "is that of another model of this upstream";
/// What is told of a model's further names.
pub(in crate::rules) const ALIAS: &str = "holds a name of another model of this upstream";
/// What is told of a class's id.
pub(in crate::rules) const CLASS: &str = "is that of another task class";
/// What is told of a policy profile's name.
pub(in crate::rules) const PROFILE: &str = "is that of another policy profile";
/// What is told of an MCP server's name.
pub(in crate::rules) const SERVER: &str = "is that of another MCP server";
/// What is told of a template's name.
pub(in crate::rules) const TEMPLATE: &str = "is the name of another template";
/// What is told of a token's name.
pub(in crate::rules) const TOKEN: &str = "is the name of another token in force";

/// A name that something is to have, and nothing else of its kind may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewName {
    /// Further names of a model of this provider: of `own`, where it is there already.
    Aliases {
        /// The provider.
        of: UpstreamId,
        /// The names.
        names: Vec<ModelName>,
        /// The model that has, or is to have, them.
        own: Option<ModelName>,
    },
    /// A class of tasks.
    Class(ClassId),
    /// A model of this provider.
    Model(UpstreamId, ModelName),
    /// A policy profile.
    Profile(Label),
    /// An MCP server.
    Server(ServerName),
    /// A template of mandates.
    Template(Label),
    /// A service token.
    Token(Label),
    /// A provider.
    Upstream(UpstreamName),
}

/// What is told of a name that is taken.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there that every workspace has.
pub(in crate::rules) fn taken(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    name: &NewName,
) -> Result<Option<&'static str>, Halt> {
    let (is_taken, clause) = match name {
        NewName::Aliases { of, names, own } => {
            let routing = routing_of(scope, workspace)?;
            let mut others = routing.models.iter().filter(|it| it.upstream == *of && Some(&it.name) != own.as_ref());
            (others.any(|it| names.contains(&it.name) || names.iter().any(|name| it.aliases.contains(name))), ALIAS)
        }
        NewName::Class(id) => (routing_of(scope, workspace)?.class(id).is_some(), CLASS),
        NewName::Model(upstream, name) => {
            let routing = routing_of(scope, workspace)?;
            (routing.models.iter().any(|it| it.upstream == *upstream && it.name == *name), MODEL)
        }
        NewName::Profile(name) => (routing_of(scope, workspace)?.profiles.iter().any(|it| it.name == *name), PROFILE),
        NewName::Server(name) => (servers_of(scope, workspace)?.servers.iter().any(|it| it.name == *name), SERVER),
        NewName::Template(name) => (is_template(scope, workspace, name)?, TEMPLATE),
        NewName::Token(name) => {
            let now = scope.now();
            (tokens::is_taken(scope, workspace, name, now)?, TOKEN)
        }
        NewName::Upstream(name) => {
            (routing_of(scope, workspace)?.upstreams.iter().any(|it| it.name == *name), UPSTREAM)
        }
    };
    Ok(is_taken.then_some(clause))
}

/// Whether a template has this name: one of the workspace's own, or of the catalogue.
pub(super) fn is_template(scope: &mut Scope<'_>, workspace: WorkspaceId, name: &Label) -> Result<bool, Halt> {
    Ok(own_template(scope, workspace, name)?.is_some() || Template::find(&told_by(name.as_str())).is_some())
}

/// The rows that say whether a name is taken, as far as they are known beforehand.
pub(super) fn rows(workspace: WorkspaceId, name: &NewName) -> Vec<Key> {
    match name {
        NewName::Aliases { .. }
        | NewName::Class(_)
        | NewName::Model(..)
        | NewName::Profile(_)
        | NewName::Upstream(_) => vec![Routing::key(workspace)],
        NewName::Server(_) => vec![McpServers::key(workspace)],
        NewName::Template(name) => {
            WorkspaceTemplate::ids_of(workspace, name).into_iter().map(WorkspaceTemplate::key).collect()
        }
        NewName::Token(name) => TokenName::ids_of(workspace, name).into_iter().map(TokenName::key).collect(),
    }
}
