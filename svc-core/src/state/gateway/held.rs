//! Rows beside a workspace's routing: the providers' keys, and which keys are bound to classes, profiles and teams.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::route::{Meant, meant};
use super::routing::Routing;
use crate::refusal::Refusal;
use crate::state::people::Binding;
use crate::value::Timestamp;
use crate::value::digest::CredentialId;
use crate::value::id::{KeyId, ProfileId, TeamId, UpstreamId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::text::ClassId;

/// A provider's key and whatever else it is shown as a credential, each sealed for [`UpstreamKey::purpose`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamKey {
    /// The provider.
    pub upstream: UpstreamId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The key; empty where there is none.
    pub sealed: Box<str>,
    /// Values of headers that carry a credential, by name in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<Box<str>, Box<str>>,
}

impl UpstreamKey {
    /// Nothing yet.
    #[must_use]
    pub fn new(upstream: UpstreamId, workspace: WorkspaceId) -> Self {
        Self { upstream, workspace, sealed: "".into(), headers: BTreeMap::new() }
    }

    /// What a workspace's provider keys are sealed for.
    #[must_use]
    pub fn purpose(workspace: WorkspaceId) -> String {
        format!("upstream/{workspace}")
    }
}

impl Linked for UpstreamKey {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// Which keys of a workspace are bound to a class, a profile or a team: none of these goes while one in force is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundKeys {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The keys, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<BoundKey>,
}

/// What one key is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundKey {
    /// The key.
    pub key: KeyId,
    /// Its row, which tells whether it is in force; without it the key counts as one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialId>,
    /// Its class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassId>,
    /// Its profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileId>,
    /// Its team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamId>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl BoundKeys {
    /// No keys.
    #[must_use]
    pub const fn new(workspace: WorkspaceId) -> Self {
        Self { workspace, keys: Vec::new() }
    }

    /// The same without those that have ended by `now`.
    #[must_use]
    pub fn swept(mut self, now: Timestamp) -> Self {
        self.keys.retain(|it| it.until.is_none_or(|end| now < end));
        self
    }
}

impl Linked for BoundKeys {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// Finding what a workspace routes by.
impl Routing {
    /// The provider with this id.
    #[must_use]
    pub fn upstream(&self, id: UpstreamId) -> Option<&super::Upstream> {
        self.upstreams.iter().find(|it| it.id == id)
    }

    /// The class with this id.
    #[must_use]
    pub fn class(&self, id: &ClassId) -> Option<&super::TaskClass> {
        self.classes.iter().find(|it| it.id == *id)
    }

    /// The profile with this id.
    #[must_use]
    pub fn profile(&self, id: ProfileId) -> Option<&super::Profile> {
        self.profiles.iter().find(|it| it.id == id)
    }

    /// The model that `provider/model` names, and its provider; the model by its id alone, not an alias.
    #[must_use]
    pub fn model(&self, provider: &str, name: &str) -> Option<(&super::Model, &super::Upstream)> {
        let upstream = self.upstreams.iter().find(|it| it.name.as_str() == provider)?;
        let model = self.models.iter().find(|it| it.upstream == upstream.id && it.name.as_str() == name)?;
        Some((model, upstream))
    }

    /// By what a name in a list of models means such, where it does: `provider/model`, else a bare id, else an alias.
    #[must_use]
    pub fn meant(&self, name: &str) -> Option<Meant> {
        self.models.iter().filter_map(|it| self.means(it, name)).min()
    }

    /// By what a name in a list of models would mean this one, were it no other's.
    #[must_use]
    pub fn means(&self, model: &super::Model, name: &str) -> Option<Meant> {
        meant(name, model, self.upstream(model.upstream)?)
    }

    /// Whether policy acts on calls of a key with this profile.
    #[must_use]
    pub fn mode_for(&self, profile: Option<&super::Profile>) -> super::Mode {
        profile.and_then(|it| it.mode).unwrap_or(self.mode)
    }

    /// The class of work: the one that is named, where the key has none or leaves it open, else the key's, else the
    /// workspace's.
    ///
    /// # Errors
    /// `forbidden` where the key is bound to another class, `unknown_task_class` where there is none of this id.
    pub fn class_for(
        &self,
        named: Option<&str>,
        binding: Option<&Binding>,
    ) -> Result<Option<&super::TaskClass>, Refusal> {
        let bound = binding.and_then(|it| it.task_class.as_ref()).map(|it| it.as_str());
        if let (Some(bound), Some(named)) = (bound, named)
            && bound != named
            && !binding.is_some_and(|it| it.task_class_open)
        {
            return Err(Refusal::forbidden("this key is bound to another task class"));
        }
        let default = || self.default_class.as_ref().map(|it| it.as_str());
        let Some(wanted) = named.or(bound).or_else(default) else { return Ok(None) };
        let found = self.classes.iter().find(|it| it.id.as_str() == wanted);
        found.map(Some).ok_or_else(|| Refusal::unknown_task_class(wanted, self.class_like(wanted)))
    }

    /// The class that was probably meant.
    #[must_use]
    pub fn class_like(&self, word: &str) -> Option<&str> {
        crate::value::nearest::nearest(word, self.classes.iter().map(|it| it.id.as_str()))
    }
}
