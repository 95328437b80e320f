//! Rules that follow from what persons decided: one that would have saved them the asking, one that would have said no for
//! them. They are made on reading, never kept and never applied by themselves.
//!
//! What an agent asked is read a page at a time, as each question may take a hundred kilobytes, and gone through subject by subject, so
//! that whoever reads may end between any two: [`Past::of`], [`Past::read`] and [`Past::take`] for each page, [`Past::weighing`], then
//! for each of [`Weighing::subjects`] the fields of [`Weighing::detailed`] by [`Weighing::fields`], and [`Weighing::follows`].
//!
//! **Invariant:** no suggestion lets an agent go anywhere: it names one merchant or one tool, and no more than the largest
//! amount that a person approved. What rests on content of strangers counts for nothing. What is said of a suggestion is what the
//! decision itself says of each question, with the mandates in force alone and with the suggested one among them.

mod asked;
mod lists;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::asked::Asked;
use self::asked::detail_names;
use self::lists::{Allowing, Lists};
use super::asked::own_approval;
use super::evaluate::{Facts, evaluate};
use super::freeze::own_agent;
use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled, reaches};
use crate::state::gate::kind::{ActionKind, ActionPattern};
use crate::state::gate::{
    Action, Agent, Approval, Duplicates, Effect, Limits, Mandate, Merchants, OnLimit, Terms, Tools,
};
use crate::state::people::{Right, Workspace};
use crate::store::{Key, Row};
use crate::turn::{Halt, Scope};
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::{Domain, DomainPattern};
use crate::value::glob::ToolGlob;
use crate::value::id::{ActionId, AgentId, ApprovalId, MandateId, MandateVersionId, RuleId, WorkspaceId};
use crate::value::text::Label;
use crate::value::words::words;
use crate::value::{Id, Span, Timestamp};

/// How far back decisions count.
pub const SUGGEST_WINDOW: Span = Span::hours(30 * 24);
/// Approvals of one agent that are looked at, the newest first: where there are more within [`SUGGEST_WINDOW`], those before them are
/// not looked at.
pub const SUGGEST_FROM: usize = 1_000;
/// From how many decisions of persons a rule follows.
const DECISIONS_MIN: usize = 3;

/// A rule that follows from what persons decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Its id: the same for the same rule.
    pub id: RuleId,
    /// Whether it allows or forbids.
    pub kind: SuggestionKind,
    /// For which agent.
    pub agent: AgentId,
    /// The mandate to grant, or the new version of the one it replaces.
    pub terms: Terms,
    /// The mandate whose new version it is.
    pub replaces: Option<MandateId>,
    /// Why, in one sentence.
    pub because: String,
    /// From when to when decisions were looked at.
    pub window: (Timestamp, Timestamp),
    /// The questions that nobody would be asked beside it, and somebody is by the mandates in force.
    pub would_have_saved: Vec<ApprovalId>,
    /// How many of all that was asked it would allow, and the mandates in force do not.
    pub would_have_allowed: usize,
    /// Whether granting it has to be confirmed, as it is wider than a mandate in force.
    pub confirm_broaden: bool,
}

/// What a suggestion does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuggestionKind {
    /// It allows without asking.
    Allow,
    /// It forbids without asking.
    Tighten,
}

words! { SuggestionKind;
    Allow "allow";
    Tighten "tighten";
}

/// What an agent asked lately, and what stands now.
#[derive(Debug)]
pub struct Past {
    now: Timestamp,
    agent: Arc<Agent>,
    workspace: Arc<Workspace>,
    /// Its mandates in force, in the order of their ids.
    mandates: Vec<Arc<Mandate>>,
    asked: Vec<Asked>,
    /// How many approvals were looked at, and when the oldest of them was made.
    looked_at: usize,
    oldest: Timestamp,
}

/// A page of what was asked.
#[derive(Debug)]
pub struct Page {
    asked: Vec<Asked>,
    looked_at: usize,
    oldest: Timestamp,
}

impl Past {
    /// What stands of an agent, before anything is read of what it asked.
    ///
    /// # Errors
    /// `forbidden` and `missing_scope` where `by` may read no approvals, `not_found` where it is not about an agent of theirs.
    pub fn of(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, agent: AgentId) -> Result<Self, Halt> {
        let reach = entitled(scope, by, workspace, Right::ReadApprovals)?;
        let agent = own_agent(scope, workspace, agent)?;
        reaches(by, reach, &agent)?;
        let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::not_found)?;
        let now = scope.now();
        let ids: Vec<_> = agent.mandates_in_force(now).collect();
        scope.want(&ids.iter().map(|it| Mandate::key(*it)).collect::<Vec<_>>())?;
        let mut mandates = Vec::with_capacity(ids.len());
        for id in ids {
            mandates.push(scope.get::<Mandate>(id)?.ok_or_else(Refusal::internal)?);
        }
        Ok(Self { now, agent, workspace, mandates, asked: Vec::new(), looked_at: 0, oldest: now })
    }

    /// Reads what some of its approvals were about: of all within [`SUGGEST_WINDOW`], or of the newest [`SUGGEST_FROM`].
    ///
    /// # Errors
    /// `not_found` where one is not the workspace's.
    pub fn read(&self, scope: &mut Scope<'_>, approvals: &[ApprovalId]) -> Result<Page, Halt> {
        scope.want(&approvals.iter().map(|it| Approval::key(*it)).collect::<Vec<_>>())?;
        let (mut found, mut oldest) = (Vec::with_capacity(approvals.len()), self.now);
        for id in approvals {
            let approval = own_approval(scope, self.workspace.id, *id)?;
            oldest = oldest.min(approval.created_at);
            if let Some(of) = approval.asked_action().filter(|it| it.agent == self.agent.id) {
                found.push((Arc::clone(&approval), of.action));
            }
        }
        let keys: Vec<Key> = found.iter().map(|(_, id)| Action::key(*id)).collect();
        scope.want(&keys)?;
        let mut asked = Vec::with_capacity(found.len());
        for (approval, id) in found {
            let action = scope.get::<Action>(id)?.ok_or_else(Refusal::internal)?;
            asked.push(Asked::read(scope, &self.workspace, &approval, &action)?);
        }
        Ok(Page { asked, looked_at: approvals.len(), oldest })
    }

    /// Takes in what was read.
    pub fn take(&mut self, page: Page) {
        self.asked.extend(page.asked);
        self.looked_at = self.looked_at.saturating_add(page.looked_at);
        self.oldest = self.oldest.min(page.oldest);
    }

    /// Sorts what was asked by its subjects. Of a window that is shorter than [`SUGGEST_WINDOW`] no allow follows: a person may have said
    /// no before it.
    #[must_use]
    pub fn weighing(&self) -> Weighing<'_> {
        let whole = self.now.minus(SUGGEST_WINDOW);
        let since = if self.looked_at >= SUGGEST_FROM { whole.max(self.oldest) } else { whole };
        let mut about: BTreeMap<About, Vec<&Asked>> = BTreeMap::new();
        for it in &self.asked {
            let counts = it.asked_at >= since && !it.origin.effective.is_untrusted();
            if let Some(subject) = About::of(it).filter(|_| counts) {
                about.entry(subject).or_default().push(it);
            }
        }
        let subject = |(about, cases): (About, Vec<_>)| Subject::of(about, cases, since <= whole);
        let subjects: Vec<Subject<'_>> = about.into_iter().filter_map(subject).collect();
        let lists = Lists::of(&self.mandates, subjects.iter().flat_map(|it| it.cases.iter().copied()));
        let over = if since <= whole { "in 30 days".to_owned() } else { format!("since {since}") };
        Weighing { past: self, since, over, subjects, lists }
    }
}

/// What was asked, by its subjects, as it is weighed by what stands now.
#[derive(Debug)]
pub struct Weighing<'a> {
    past: &'a Past,
    since: Timestamp,
    /// The same in words.
    over: String,
    subjects: Vec<Subject<'a>>,
    lists: Lists<'a>,
}

/// What some questions are alike in, where enough of them were decided for a rule to follow.
#[derive(Debug)]
pub struct Subject<'a> {
    about: About,
    cases: Vec<&'a Asked>,
    kind: SuggestionKind,
}

/// Which mandates let the fields of each action's details be shared.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<ActionId, Allowing>);

impl Fields {
    /// Takes in those of more actions.
    pub fn take(&mut self, more: Self) {
        self.0.extend(more.0);
    }
}

impl<'a> Subject<'a> {
    fn of(about: About, cases: Vec<&'a Asked>, is_whole: bool) -> Option<Self> {
        let count = |of: fn(&Asked) -> bool| cases.iter().filter(|it| of(it)).count();
        let refused = count(Asked::is_refused);
        let kind = if refused == 0 && is_whole && count(would_be_saved) >= DECISIONS_MIN {
            SuggestionKind::Allow
        } else if refused >= DECISIONS_MIN && count(Asked::is_approved) == 0 {
            SuggestionKind::Tighten
        } else {
            return None;
        };
        Some(Self { about, cases, kind })
    }
}

/// Whether a person said yes to what a mandate would have let pass.
fn would_be_saved(it: &Asked) -> bool {
    it.is_approved() && it.is_about_mandates
}

/// A question, and the mandates in force with what in their lists speaks of it.
struct Case<'a> {
    asked: &'a Asked,
    mandates: Arc<[Arc<Mandate>]>,
}

impl Weighing<'_> {
    /// What a rule may follow for.
    #[must_use]
    pub fn subjects(&self) -> &[Subject<'_>] {
        &self.subjects
    }

    /// The actions of a subject in whose details it matters which fields they have: where a mandate names fields, and nowhere else.
    #[must_use]
    pub fn detailed(&self, subject: &Subject<'_>) -> Vec<ActionId> {
        let names = |kind: &ActionKind| {
            self.past.mandates.iter().any(|it| it.fields.is_some() && it.actions.iter().any(|types| types.covers(kind)))
        };
        let of = |it: &&&Asked| it.detailed && names(&it.request.kind);
        subject.cases.iter().filter(of).map(|it| it.action).collect()
    }

    /// Reads which mandates let the fields of these actions be shared.
    ///
    /// # Errors
    /// Those of reading alone.
    pub fn fields(&self, scope: &mut Scope<'_>, actions: &[ActionId]) -> Result<Fields, Halt> {
        let mut fields = Fields::default();
        detail_names(scope, actions, |id, names| {
            // Where there are none, nothing is said of them.
            let mut names = names.peekable();
            if names.peek().is_some() {
                fields.0.insert(id, self.lists.allowing(names));
            }
        })?;
        Ok(fields)
    }

    /// The rule that follows, if one does. `fields` are those of what is [detailed](Self::detailed).
    #[must_use]
    pub fn follows(&self, subject: &Subject<'_>, fields: &Fields) -> Option<Suggestion> {
        let (mut known, mut cases) = (BTreeMap::new(), Vec::with_capacity(subject.cases.len()));
        for asked in &subject.cases {
            let mut own = asked.fields().peekable();
            let own = own.peek().is_some().then(|| self.lists.allowing(own));
            let both = [own, fields.0.get(&asked.action).copied()].into_iter().flatten().reduce(|all, one| all & one);
            let (tool, allowing) = (asked.tool(), both.unwrap_or_default());
            let mandates =
                known.entry((tool, allowing)).or_insert_with(|| self.lists.about(asked.domain(), tool, allowing));
            cases.push(Case { asked, mandates: Arc::clone(mandates.as_ref()?) });
        }
        let made = match subject.kind {
            SuggestionKind::Allow => self.allow(&subject.about, cases),
            SuggestionKind::Tighten => self.tighten(&subject.about, cases),
        };
        made.map(|it| it.told(self.past.agent.id, (self.since, self.past.now)))
    }

    /// What the decision comes to where these mandates are those in force. What else made it ask does so whatever they say.
    fn weighed(&self, asked: &Asked, mandates: &[Arc<Mandate>]) -> Effect {
        let settings = &self.past.workspace.settings;
        let verdict = evaluate(&Facts {
            now: asked.at,
            request: &asked.request,
            settings,
            tier: self.past.agent.tier,
            mandates,
            unreadable: false,
            activity: &asked.activity(self.past.agent.id, settings),
            waiting: 0,
            velocity: None,
            payee: asked.payee(),
            session_conflict: false,
            origin: &asked.origin,
            tool_is_sink: asked.tool_is_sink,
        });
        if asked.is_about_mandates { verdict.effect } else { verdict.effect.max(Effect::Ask) }
    }

    /// A mandate for what persons approved, and no more: for what would be asked or denied as things stand, and not beside it.
    fn allow(&self, about: &About, cases: Vec<Case<'_>>) -> Option<Made> {
        let stops = |it: &Case<'_>| self.weighed(it.asked, &it.mandates) != Effect::Info;
        let stopped: Vec<Case<'_>> = cases.into_iter().filter(stops).collect();
        let approved = |it: &&Case<'_>| would_be_saved(it.asked);
        let most = stopped.iter().filter(approved).map(|it| it.asked.amount()).max()?;
        let terms = about.terms(most)?;
        // It would be the newest of the agent's mandates.
        let id = MandateVersionId { mandate: MandateId::from_bits(u128::MAX), version: 1 };
        let beside = Mandate::new(id, self.past.agent.id, None, terms.clone(), (None, Timestamp::default()));
        let beside = Arc::new(beside);
        let allows = |it: &Case<'_>| {
            let mandates: Vec<_> = it.mandates.iter().chain([&beside]).cloned().collect();
            self.weighed(it.asked, &mandates) == Effect::Info
        };
        let allowed: Vec<Case<'_>> = stopped.into_iter().filter(allows).collect();
        let saved: Vec<ApprovalId> = allowed.iter().filter(approved).map(|it| it.asked.approval).collect();
        (saved.len() >= DECISIONS_MIN).then(|| Made {
            kind: SuggestionKind::Allow,
            confirm_broaden: self.past.mandates.iter().any(|it| terms.broadens(it.terms())),
            terms,
            replaces: None,
            because: format!("persons approved `{}` {} times {}", about.name(), saved.len(), self.over),
            saved,
            allowed: allowed.len(),
        })
    }

    /// A mandate in force with an entry more on its deny list, for what persons kept refusing: for what would be asked as things stand,
    /// and be denied then.
    fn tighten(&self, about: &About, cases: Vec<Case<'_>>) -> Option<Made> {
        let refused: Vec<Case<'_>> = cases.into_iter().filter(|it| it.asked.is_refused()).collect();
        let charged = refused.iter().find_map(|it| it.asked.charged);
        let kind = &refused.first()?.asked.request.kind;
        let covers = |it: &Mandate| it.actions.iter().any(|pattern| pattern.covers(kind));
        let mandates = || self.past.mandates.iter();
        let place = mandates().position(|it| Some(it.id.mandate) == charged);
        let place = place.or_else(|| mandates().position(|it| covers(it)))?;
        let of = self.past.mandates.get(place)?;
        let next = MandateVersionId { version: of.id.version.saturating_add(1), ..of.id };
        let denies = |it: &Case<'_>| {
            let mut mandates = it.mandates.to_vec();
            let (Some(own), Some(terms)) =
                (mandates.get_mut(place), it.mandates.get(place).and_then(|it| about.denied_by(it.terms())))
            else {
                return false;
            };
            *own = Arc::new(Mandate::new(next, of.agent, None, terms, (None, of.created_at)));
            self.weighed(it.asked, &it.mandates) == Effect::Ask && self.weighed(it.asked, &mandates) == Effect::Deny
        };
        let saved: Vec<ApprovalId> = refused.iter().filter(|it| denies(it)).map(|it| it.asked.approval).collect();
        if saved.len() < DECISIONS_MIN {
            return None;
        }
        Some(Made {
            kind: SuggestionKind::Tighten,
            terms: about.denied_by(of.terms())?,
            replaces: Some(of.id.mandate),
            because: format!("persons denied `{}` {} times {}", about.name(), saved.len(), self.over),
            saved,
            allowed: 0,
            confirm_broaden: false,
        })
    }
}

/// What cases are alike in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// Payments of this type and currency to this domain.
    Payee(String, String, String),
    /// Calls of this type of this tool: its server, where it has one, and its name.
    Tool(String, String),
}

impl About {
    fn of(asked: &Asked) -> Option<Self> {
        let kind = asked.request.kind.as_str().to_owned();
        if let Some(payment) = &asked.request.payment {
            let domain = payment.domain.as_str().to_owned();
            return Some(Self::Payee(kind, payment.currency.as_str().to_owned(), domain));
        }
        let (server, name) = asked.tool()?;
        let full = server.map_or_else(|| name.to_owned(), |server| format!("{server}/{name}"));
        // A name that would be read as a pattern is no exact name.
        (!full.contains(['*', '?', '['])).then_some(Self::Tool(kind, full))
    }

    fn name(&self) -> &str {
        match self {
            Self::Payee(_, _, domain) => domain,
            Self::Tool(_, name) => name,
        }
    }

    fn terms(&self, most: i64) -> Option<Terms> {
        let (kind, limits, merchants, tools) = match self {
            Self::Payee(kind, currency, domain) => {
                let limits = Limits {
                    currency: Some(Currency::parse(currency).ok()?),
                    per_action: Some(most),
                    on_limit: OnLimit::Ask,
                    ..Limits::default()
                };
                let allow = Some(vec![exactly(domain)?]);
                (kind, Some(limits), Some(Merchants { allow, deny: None }), None)
            }
            Self::Tool(kind, name) => {
                let allow = Some(vec![ToolGlob::parse(name).ok()?]);
                (kind, None, None, Some(Tools { allow, deny: None }))
            }
        };
        Some(Terms {
            name: label(self.name())?,
            actions: vec![kind.parse::<ActionPattern>().ok()?],
            limits,
            merchants,
            fields: None,
            tools,
            duplicates: Duplicates::Ask,
            expires_at: None,
        })
    }

    /// The same terms with this on their deny list.
    fn denied_by(&self, terms: &Terms) -> Option<Terms> {
        let mut terms = terms.clone();
        match self {
            Self::Payee(_, _, domain) => {
                let lists = terms.merchants.get_or_insert_with(Merchants::default);
                lists.deny.get_or_insert_with(Vec::new).push(exactly(domain)?);
            }
            Self::Tool(_, name) => {
                let lists = terms.tools.get_or_insert_with(Tools::default);
                lists.deny.get_or_insert_with(Vec::new).push(ToolGlob::parse(name).ok()?);
            }
        }
        Some(terms.without_repeats())
    }
}

/// A suggestion before it has its id.
struct Made {
    kind: SuggestionKind,
    terms: Terms,
    replaces: Option<MandateId>,
    because: String,
    saved: Vec<ApprovalId>,
    allowed: usize,
    confirm_broaden: bool,
}

impl Made {
    fn told(self, agent: AgentId, window: (Timestamp, Timestamp)) -> Suggestion {
        let said = format!("{agent} {} {:?} {:?}", self.kind.as_str(), self.replaces, self.terms);
        Suggestion {
            id: RuleId::from_bits(Digest::of(said).bits()),
            kind: self.kind,
            agent,
            terms: self.terms,
            replaces: self.replaces,
            because: self.because,
            window,
            would_have_saved: self.saved,
            would_have_allowed: self.allowed,
            confirm_broaden: self.confirm_broaden,
        }
    }
}

fn exactly(domain: &str) -> Option<DomainPattern> {
    DomainPattern::parse(Domain::parse(domain).ok()?.as_str()).ok()
}

/// A name of at most a hundred characters.
fn label(text: &str) -> Option<Label> {
    Label::parse(&text.chars().take(100).collect::<String>()).ok()
}
