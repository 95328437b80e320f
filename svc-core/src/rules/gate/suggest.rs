//! Rules that follow from what persons decided: one that would have saved them the asking, one that would have said no for
//! them. They are made on reading, never kept and never applied by themselves.
//!
//! **Invariant:** no suggestion lets an agent go anywhere: it names one merchant or one tool, and no more than the largest
//! amount that a person approved. What rests on content of strangers counts for nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::asked::own_approval;
use super::evaluate::tool_name;
use super::freeze::own_agent;
use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled, reaches};
use crate::state::gate::kind::ActionPattern;
use crate::state::gate::{
    Action, Approval, ApprovalState, Code, Duplicates, Effect, Limits, Mandate, Merchants, OnLimit, Terms, Tools,
};
use crate::state::people::Right;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::{Domain, DomainPattern};
use crate::value::glob::ToolGlob;
use crate::value::id::{AgentId, ApprovalId, MandateId, RuleId, WorkspaceId};
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
    /// The questions that nobody would have been asked.
    pub would_have_saved: Vec<ApprovalId>,
    /// How many of all that was asked it would have allowed.
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
    let ids: Vec<_> = agent.mandates_in_force(scope.now()).collect();
    let keys = approvals.iter().map(|it| Approval::key(*it)).chain(ids.iter().map(|it| Mandate::key(*it)));
    scope.want(&keys.collect::<Vec<_>>())?;
    let mut mandates = Vec::with_capacity(ids.len());
    for id in ids {
        mandates.push(scope.get::<Mandate>(id)?.ok_or_else(Refusal::internal)?);
    }
    let (mut asked, mut oldest) = (Vec::with_capacity(approvals.len()), scope.now());
    for id in approvals {
        let approval = own_approval(scope, workspace, *id)?;
        oldest = oldest.min(approval.created_at);
        if let Some(of) = approval.asked_action().filter(|it| it.agent == agent.id) {
            asked.push((Arc::clone(&approval), of.action));
        }
    }
    scope.want(&asked.iter().map(|(_, id)| Action::key(*id)).collect::<Vec<_>>())?;
    let mut decided = Vec::with_capacity(asked.len());
    for (approval, id) in asked {
        decided.push((approval, scope.get::<Action>(id)?.ok_or_else(Refusal::internal)?));
    }
    let mut since = scope.now().minus(SUGGEST_WINDOW);
    if approvals.len() >= SUGGEST_FROM {
        since = since.max(oldest);
    }
    Ok(suggest(agent.id, (since, scope.now()), &decided, &mandates))
}

/// What follows for `agent` from what was asked and how it was decided in `window`. `mandates` are those in force. Of a window that is
/// shorter than [`SUGGEST_WINDOW`] no allow follows: a person may have said no before it.
#[must_use]
pub fn suggest(
    agent: AgentId,
    window: (Timestamp, Timestamp),
    asked: &[(Arc<Approval>, Arc<Action>)],
    mandates: &[Arc<Mandate>],
) -> Vec<Suggestion> {
    let (since, now) = window;
    let is_whole = since <= now.minus(SUGGEST_WINDOW);
    let over = if is_whole { "in 30 days".to_owned() } else { format!("since {since}") };
    let mut about: BTreeMap<About, Vec<Case<'_>>> = BTreeMap::new();
    for (approval, action) in asked {
        let counts = approval.created_at >= since && !action.provenance.effective.is_untrusted();
        if let Some(subject) = About::of(action).filter(|_| counts) {
            about.entry(subject).or_default().push(Case { approval, action });
        }
    }
    let mut found = Vec::new();
    for (subject, cases) in &about {
        let refused = cases.iter().filter(|it| it.is_refused()).count();
        let made = if refused == 0 {
            if is_whole { subject.allow(cases, mandates, &over) } else { None }
        } else if refused >= DECISIONS_MIN && !cases.iter().any(|it| it.is_approved()) {
            subject.tighten(cases, mandates, &over)
        } else {
            None
        };
        found.extend(made.map(|it| it.told(agent, window)));
    }
    found
}

/// One question, and the action it was about.
#[derive(Clone, Copy)]
struct Case<'a> {
    approval: &'a Approval,
    action: &'a Action,
}

impl Case<'_> {
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

    /// A mandate for what persons approved, and no more.
    fn allow(&self, cases: &[Case<'_>], mandates: &[Arc<Mandate>], over: &str) -> Option<Made> {
        let saved: Vec<&Case<'_>> = cases.iter().filter(|it| it.is_approved() && it.is_about_mandates()).collect();
        if saved.len() < DECISIONS_MIN {
            return None;
        }
        let most = saved.iter().map(|it| it.amount()).max()?;
        let terms = self.terms(most)?;
        let allowed = cases.iter().filter(|it| it.is_about_mandates() && it.amount() <= most).count();
        Some(Made {
            kind: SuggestionKind::Allow,
            confirm_broaden: mandates.iter().any(|it| terms.broadens(it.terms())),
            terms,
            replaces: None,
            because: format!("persons approved `{}` {} times {over}", self.name(), saved.len()),
            saved: saved.iter().map(|it| it.approval.id).collect(),
            allowed,
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

    /// A mandate in force with an entry more on its deny list, for what persons kept refusing.
    fn tighten(&self, cases: &[Case<'_>], mandates: &[Arc<Mandate>], over: &str) -> Option<Made> {
        let refused: Vec<&Case<'_>> = cases.iter().filter(|it| it.is_refused()).collect();
        let charged = refused.iter().find_map(|it| it.action.mandate).map(|it| it.mandate);
        let kind = refused.first()?.action.kind.clone();
        let covering = |it: &&Arc<Mandate>| it.actions.iter().any(|pattern| pattern.covers(&kind));
        let of = mandates.iter().find(|it| Some(it.id.mandate) == charged);
        let of = of.or_else(|| mandates.iter().find(covering))?;
        let mut terms = of.terms().clone();
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
        Some(Made {
            kind: SuggestionKind::Tighten,
            terms,
            replaces: Some(of.id.mandate),
            because: format!("persons denied `{}` {} times {over}", self.name(), refused.len()),
            saved: refused.iter().map(|it| it.approval.id).collect(),
            allowed: 0,
            confirm_broaden: false,
        })
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
