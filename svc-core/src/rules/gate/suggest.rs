//! Rules that follow from what persons decided: one that would have saved them the asking, one that would have said no for
//! them. They are made on reading, never kept and never applied by themselves.
//!
//! **Invariant:** no suggestion lets an agent go anywhere: it names one merchant or one tool, and no more than the largest
//! amount that a person approved. What rests on content of strangers counts for nothing. What is said of a suggestion is what the
//! decision itself says of each question, with the mandates in force alone and with the suggested one among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::asked::own_approval;
use super::authorize::tool_is_sink;
use super::evaluate::{Facts, PayeeFacts, evaluate, tool_name};
use super::freeze::own_agent;
use super::would::request_again;
use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled, reaches};
use crate::state::gate::kind::ActionPattern;
use crate::state::gate::{
    Action, Activity, Approval, ApprovalState, Code, Duplicates, Effect, Limits, Mandate, Merchants, OnLimit, Payload,
    Request, Terms, Tier, Tools,
};
use crate::state::people::{Right, Settings, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::{Domain, DomainPattern};
use crate::value::glob::ToolGlob;
use crate::value::id::{ActionId, AgentId, ApprovalId, MandateId, MandateVersionId, RuleId, WorkspaceId};
use crate::value::period::Period;
use crate::value::text::Label;
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

impl SuggestionKind {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Tighten => "tighten",
        }
    }
}

/// What is suggested for an agent, from these of its approvals: all within [`SUGGEST_WINDOW`], or the newest [`SUGGEST_FROM`].
///
/// # Errors
/// `forbidden` and `missing_scope` where `by` may read no approvals, `not_found` where it is not about an agent of theirs.
pub fn suggestions(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    agent: AgentId,
    approvals: &[ApprovalId],
) -> Result<Vec<Suggestion>, Halt> {
    let reach = entitled(scope, by, workspace, Right::ReadApprovals)?;
    let agent = own_agent(scope, workspace, agent)?;
    reaches(by, reach, &agent)?;
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::not_found)?;
    let ids: Vec<_> = agent.mandates_in_force(scope.now()).collect();
    let keys = approvals.iter().map(|it| Approval::key(*it)).chain(ids.iter().map(|it| Mandate::key(*it)));
    scope.want(&keys.collect::<Vec<_>>())?;
    let mut mandates = Vec::with_capacity(ids.len());
    for id in ids {
        mandates.push(scope.get::<Mandate>(id)?.ok_or_else(Refusal::internal)?);
    }
    let (mut asked, mut oldest) = (Vec::with_capacity(approvals.len()), scope.now());
    for id in approvals {
        let approval = own_approval(scope, workspace.id, *id)?;
        oldest = oldest.min(approval.created_at);
        if let Some(of) = approval.asked_action().filter(|it| it.agent == agent.id) {
            asked.push((Arc::clone(&approval), of.action));
        }
    }
    let asked = read(scope, &workspace, &mandates, asked)?;
    let mut since = scope.now().minus(SUGGEST_WINDOW);
    if approvals.len() >= SUGGEST_FROM {
        since = since.max(oldest);
    }
    let by = InForce { agent: agent.id, tier: agent.tier, settings: &workspace.settings, mandates: &mandates };
    Ok(suggest(by, (since, scope.now()), &asked))
}

/// Reads what each question was about. Details that rules speak of are read where a mandate names fields, and nowhere else.
fn read(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    mandates: &[Arc<Mandate>],
    asked: Vec<(Arc<Approval>, ActionId)>,
) -> Result<Vec<Asked>, Halt> {
    scope.want(&asked.iter().map(|(_, id)| Action::key(*id)).collect::<Vec<_>>())?;
    let mut found = Vec::with_capacity(asked.len());
    for (approval, id) in asked {
        found.push((approval, scope.get::<Action>(id)?.ok_or_else(Refusal::internal)?));
    }
    let fields = |of: &Action| {
        let covers = |it: &Arc<Mandate>| it.fields.is_some() && it.actions.iter().any(|types| types.covers(&of.kind));
        of.payload && mandates.iter().any(covers)
    };
    let detailed = found.iter().filter(|(_, it)| fields(it));
    scope.want(&detailed.map(|(_, it)| Payload::key(it.id)).collect::<Vec<_>>())?;
    let mut read = Vec::with_capacity(found.len());
    for (approval, action) in found {
        let request = if fields(&action) { request_again(scope, &action)? } else { Request::again(&action, None) };
        let tool_is_sink = tool_is_sink(scope, workspace, &request)?;
        read.push(Asked { approval, action, request, tool_is_sink });
    }
    Ok(read)
}

/// A question, and the action it was about.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The question, and how it was decided.
    pub approval: Arc<Approval>,
    /// The action.
    pub action: Arc<Action>,
    /// What was asked, as far as rules speak of it.
    pub request: Request,
    /// Whether the tool table calls its tool a sink.
    pub tool_is_sink: bool,
}

/// What stands now, by which questions are weighed anew.
#[derive(Clone, Copy, Debug)]
pub struct InForce<'a> {
    /// Of which agent.
    pub agent: AgentId,
    /// How much it is trusted.
    pub tier: Tier,
    /// The workspace's settings.
    pub settings: &'a Settings,
    /// Its mandates in force, in the order of their ids.
    pub mandates: &'a [Arc<Mandate>],
}

/// What follows from what was asked and how it was decided in `window`. Of a window that is shorter than [`SUGGEST_WINDOW`] no allow
/// follows: a person may have said no before it.
#[must_use]
pub fn suggest(by: InForce<'_>, window: (Timestamp, Timestamp), asked: &[Asked]) -> Vec<Suggestion> {
    let (since, now) = window;
    let is_whole = since <= now.minus(SUGGEST_WINDOW);
    let over = if is_whole { "in 30 days".to_owned() } else { format!("since {since}") };
    let mut about: BTreeMap<About, Vec<&Asked>> = BTreeMap::new();
    for it in asked {
        let counts = it.approval.created_at >= since && !it.action.provenance.effective.is_untrusted();
        if let Some(subject) = About::of(&it.action).filter(|_| counts) {
            about.entry(subject).or_default().push(it);
        }
    }
    let mut found = Vec::new();
    for (subject, cases) in &about {
        let refused = cases.iter().filter(|it| it.is_refused()).count();
        let made = if refused == 0 {
            if is_whole { subject.allow(cases, by, &over) } else { None }
        } else if refused >= DECISIONS_MIN && !cases.iter().any(|it| it.is_approved()) {
            subject.tighten(cases, by, &over)
        } else {
            None
        };
        found.extend(made.map(|it| it.told(by.agent, window)));
    }
    found
}

impl Asked {
    fn is_approved(&self) -> bool {
        matches!(self.approval.state, ApprovalState::Approved { .. }) && !self.approval.approvals.is_empty()
    }

    fn is_refused(&self) -> bool {
        matches!(self.approval.state, ApprovalState::Denied { by: Some(_), .. })
    }

    /// Whether a mandate of its own would have answered it: nothing else than mandates made it ask.
    fn is_about_mandates(&self) -> bool {
        let of_mandates = |code: Code| {
            code.is_outside()
                || matches!(code, Code::AboveAskThreshold | Code::SplitPayments)
                || matches!(code, Code::OverLimit | Code::OverPeriodLimit | Code::OverCountLimit)
        };
        self.action.reasons.iter().filter(|it| it.effect == Effect::Ask).all(|it| of_mandates(it.code))
    }

    fn amount(&self) -> i64 {
        self.action.payment.as_ref().map_or(0, |it| it.amount)
    }

    /// What the decision comes to where these mandates are those in force. What else made it ask does so whatever they say.
    fn weighed(&self, by: InForce<'_>, mandates: &[Arc<Mandate>]) -> Effect {
        let verdict = evaluate(&Facts {
            now: self.action.created_at(),
            request: &self.request,
            settings: by.settings,
            tier: by.tier,
            mandates,
            unreadable: false,
            activity: &self.activity(by.settings),
            waiting: 0,
            velocity: None,
            payee: self.payee(),
            session_conflict: false,
            origin: &self.action.provenance,
            tool_is_sink: self.tool_is_sink,
        });
        if self.is_about_mandates() { verdict.effect } else { verdict.effect.max(Effect::Ask) }
    }

    /// What filled its mandates when it was asked, as far as its reasons tell: a limit that was full then made it ask, though its
    /// period has ended since.
    fn activity(&self, settings: &Settings) -> Activity {
        let (mut activity, at) = (Activity::none(self.action.agent), self.action.created_at());
        for reason in &self.action.reasons {
            let period = reason.window.as_deref().and_then(|it| Period::parse(it).ok());
            let (Some(mandate), Some(period), Some(used)) = (reason.mandate, period, reason.used) else { continue };
            let mut tally = activity.tally(mandate, period, at, settings);
            if reason.code == Code::OverPeriodLimit {
                tally.reserved = used;
            } else if reason.code == Code::OverCountLimit {
                tally.count = u32::try_from(used).unwrap_or(u32::MAX);
            }
            activity.keep(tally, at);
        }
        activity
    }

    /// What had been paid to the payee when it was asked, as far as its reasons tell.
    fn payee(&self) -> PayeeFacts {
        let told = |code| self.action.reasons.iter().find(|it| it.code == code);
        let together = told(Code::SplitPayments).and_then(|it| it.used).unwrap_or(0);
        let sum = together.saturating_sub(self.amount()).max(0);
        PayeeFacts { sum, repeated: told(Code::PossibleDuplicate).is_some() }
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
    fn of(action: &Action) -> Option<Self> {
        let kind = action.kind.as_str().to_owned();
        if let Some(payment) = &action.payment {
            let domain = payment.domain.as_str().to_owned();
            return Some(Self::Payee(kind, payment.currency.as_str().to_owned(), domain));
        }
        let (server, name) = action.tool.as_ref().and_then(tool_name)?;
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

    /// A mandate for what persons approved, and no more: for what would be asked or denied as things stand, and not beside it.
    fn allow(&self, cases: &[&Asked], by: InForce<'_>, over: &str) -> Option<Made> {
        let approved = |it: &&&Asked| it.is_approved() && it.is_about_mandates();
        if cases.iter().filter(approved).count() < DECISIONS_MIN {
            return None;
        }
        let stopped: Vec<&Asked> =
            cases.iter().copied().filter(|it| it.weighed(by, by.mandates) != Effect::Info).collect();
        let most = stopped.iter().filter(approved).map(|it| it.amount()).max()?;
        let terms = self.terms(most)?;
        // It would be the newest of the agent's mandates.
        let id = MandateVersionId { mandate: MandateId::from_bits(u128::MAX), version: 1 };
        let beside = Mandate::new(id, by.agent, None, terms.clone(), (None, Timestamp::default()));
        let mandates: Vec<_> = by.mandates.iter().cloned().chain([Arc::new(beside)]).collect();
        let allowed: Vec<&Asked> = stopped.into_iter().filter(|it| it.weighed(by, &mandates) == Effect::Info).collect();
        let saved: Vec<ApprovalId> = allowed.iter().filter(approved).map(|it| it.approval.id).collect();
        (saved.len() >= DECISIONS_MIN).then(|| Made {
            kind: SuggestionKind::Allow,
            confirm_broaden: by.mandates.iter().any(|it| terms.broadens(it.terms())),
            terms,
            replaces: None,
            because: format!("persons approved `{}` {} times {over}", self.name(), saved.len()),
            saved,
            allowed: allowed.len(),
        })
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

    /// A mandate in force with an entry more on its deny list, for what persons kept refusing: for what would be asked as things stand,
    /// and be denied then.
    fn tighten(&self, cases: &[&Asked], by: InForce<'_>, over: &str) -> Option<Made> {
        let refused: Vec<&Asked> = cases.iter().copied().filter(|it| it.is_refused()).collect();
        let charged = refused.iter().find_map(|it| it.action.mandate).map(|it| it.mandate);
        let kind = refused.first()?.action.kind.clone();
        let covering = |it: &&Arc<Mandate>| it.actions.iter().any(|pattern| pattern.covers(&kind));
        let of = by.mandates.iter().find(|it| Some(it.id.mandate) == charged);
        let of = of.or_else(|| by.mandates.iter().find(covering))?;
        let terms = self.denied_by(of.terms())?;
        let next = MandateVersionId { version: of.id.version.saturating_add(1), ..of.id };
        let next = Arc::new(Mandate::new(next, of.agent, None, terms.clone(), (None, of.created_at)));
        let next = |it: &Arc<Mandate>| Arc::clone(if it.id == of.id { &next } else { it });
        let mandates: Vec<_> = by.mandates.iter().map(next).collect();
        let is_saved =
            |it: &&Asked| it.weighed(by, by.mandates) == Effect::Ask && it.weighed(by, &mandates) == Effect::Deny;
        let saved: Vec<ApprovalId> = refused.into_iter().filter(is_saved).map(|it| it.approval.id).collect();
        (saved.len() >= DECISIONS_MIN).then(|| Made {
            kind: SuggestionKind::Tighten,
            terms,
            replaces: Some(of.id.mandate),
            because: format!("persons denied `{}` {} times {over}", self.name(), saved.len()),
            saved,
            allowed: 0,
            confirm_broaden: false,
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
