//! Which mandate covers an action: one of them has to cover the whole of it, and the gate picks it, never the agent.

use std::sync::Arc;

use super::Facts;
use crate::state::gate::{Code, DATA_FIELDS_MAX, Effect, Mandate, OnLimit, Payment, Reason, Request, Tally, Tool};
use crate::value::period::Period;

/// The mandate that an action is charged to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The version in force.
    pub mandate: Arc<Mandate>,
    /// Whether the action is beyond its limits, so that only a person can let it pass and nothing is reserved.
    pub beyond: bool,
}

/// Entries of any mandate's deny lists, whether or not it speaks of this type.
pub(super) fn deny_lists(facts: &Facts<'_>, reasons: &mut Vec<Reason>) {
    reasons.extend(denied(facts.mandates, facts.request.payment.as_ref(), tool(facts.request)));
}

/// What deny lists of `mandates` say of a payment and of a tool, by its server and name.
pub fn denied(mandates: &[Arc<Mandate>], payment: Option<&Payment>, tool: Option<ToolName<'_>>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for mandate in mandates {
        if let Some(payment) = payment.filter(|it| mandate.denies_merchant(&it.domain)) {
            reasons.push(
                Reason::new(Code::MerchantDenied, Effect::Deny).by(mandate.id.mandate).about(payment.domain.as_str()),
            );
        }
        if let Some((server, name)) = tool.filter(|(server, name)| mandate.denies_tool(*server, name)) {
            reasons.push(
                Reason::new(Code::ToolDenied, Effect::Deny).by(mandate.id.mandate).about(full_name(server, name)),
            );
        }
    }
    reasons
}

/// Picks the mandate to charge: of those that permit the action the narrowest.
///
/// Most mandates of an agent are confined to other merchants. Where one permits, what stands in the way in others is told to
/// nobody, so those are not looked into before it is known that none does.
pub(super) fn choose(facts: &Facts<'_>, reasons: &mut Vec<Reason>) -> Option<Charge> {
    let (mut permitting, mut refusing) = (None, Vec::new());
    let mut names = Names::default();
    for mandate in facts.mandates.iter().filter(|it| !excludes(facts, it) && speaks(facts.request, it)) {
        let said = refusals_of(facts, mandate, &mut names);
        if said.is_empty() {
            narrowest(facts, &mut permitting, mandate);
        } else {
            refusing.push((mandate, said));
        }
    }
    match permitting {
        Some(mandate) => Some(Charge { mandate: Arc::clone(mandate), beyond: false }),
        None => beyond(facts, (refusing, names), reasons),
    }
}

/// A mandate that refuses, and what it says.
type Refusing<'a> = (&'a Arc<Mandate>, Vec<Reason>);

/// Where no mandate permits: every refusal of every candidate is a reason, and one whose limits alone stand in the way, and may
/// be asked about, is charged beyond them. `refusing` are those that have been looked into, in their order, beside what is left to
/// be told by the others.
fn beyond<'a>(
    facts: &Facts<'a>,
    (refusing, mut names): (Vec<Refusing<'a>>, Names),
    reasons: &mut Vec<Reason>,
) -> Option<Charge> {
    let mut refusing = refusing.into_iter().peekable();
    let (mut beyond, mut refusals, mut any) = (None, Vec::new(), false);
    for mandate in facts.mandates {
        let said = match refusing.next_if(|(it, _)| Arc::ptr_eq(it, mandate)) {
            Some((_, said)) => said,
            None if excludes(facts, mandate) && speaks(facts.request, mandate) => {
                refusals_of(facts, mandate, &mut names)
            }
            None => continue,
        };
        any = true;
        if said.iter().all(|it| it.effect == Effect::Ask && is_limit(it.code)) {
            narrowest(facts, &mut beyond, mandate);
        }
        refusals.extend(said);
    }
    if !any {
        reasons.push(Reason::new(Code::OutsideMandate, facts.outside()));
    }
    reasons.append(&mut refusals);
    beyond.map(|mandate| Charge { mandate: Arc::clone(mandate), beyond: true })
}

/// Whether the mandate is confined to merchants that the one who is paid is certainly none of.
fn excludes(facts: &Facts<'_>, mandate: &Mandate) -> bool {
    facts.request.payment.as_ref().is_some_and(|it| mandate.excludes(&it.domain))
}

/// Whether the mandate speaks of this type of action.
fn speaks(request: &Request, mandate: &Mandate) -> bool {
    mandate.actions.iter().any(|pattern| pattern.covers(&request.kind))
}

/// Whether what is asked is outside of all of `mandates`, whatever their limits say.
pub fn is_outside(mandates: &[Arc<Mandate>], request: &Request) -> bool {
    let covers =
        |it: &Mandate| speaks(request, it) && outside_of((request, Effect::Deny), it, &mut Names::default()).is_empty();
    !mandates.iter().any(|it| covers(it))
}

/// Keeps the narrower of two.
fn narrowest<'a>(facts: &Facts<'_>, best: &mut Option<&'a Arc<Mandate>>, mandate: &'a Arc<Mandate>) {
    if best.is_none_or(|best| narrowness(facts, mandate) < narrowness(facts, best)) {
        *best = Some(mandate);
    }
}

fn is_limit(code: Code) -> bool {
    matches!(code, Code::OverLimit | Code::OverPeriodLimit | Code::OverCountLimit)
}

/// Exact merchant before wildcard before anywhere, then the smaller remaining amount, then the older id.
fn narrowness(facts: &Facts<'_>, mandate: &Mandate) -> (u8, i64, u128) {
    let payment = facts.request.payment.as_ref();
    let reach = match (mandate.merchants_allowed(), payment) {
        (Some(_), Some(payment)) => {
            mandate.merchant_allowed(&payment.domain).map_or(2, |pattern| u8::from(!pattern.is_exact()))
        }
        _ => 2,
    };
    let limits = mandate.limits();
    let left = limits.per_period.as_ref().map(|it| it.amount.saturating_sub(tally(facts, mandate, it.period).used()));
    let remaining = match (left, limits.per_action) {
        (Some(left), Some(most)) => left.min(most),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => i64::MAX,
    };
    (reach, remaining, crate::value::Id::bits(mandate.id.mandate))
}

/// Everything in `mandate` that stands in the way.
fn refusals_of(facts: &Facts<'_>, mandate: &Mandate, names: &mut Names) -> Vec<Reason> {
    let mut said = outside_of((facts.request, facts.outside()), mandate, names);
    amounts(facts, mandate, &mut said);
    said
}

/// Everything in `mandate` but its limits that a request is outside of, with this effect.
fn outside_of((request, outside): (&Request, Effect), mandate: &Mandate, names: &mut Names) -> Vec<Reason> {
    let mut said = Vec::new();
    let id = mandate.id.mandate;
    let payment = request.payment.as_ref();
    if payment.is_some_and(|it| !mandate.limits().cover(it.currency)) {
        said.push(Reason::new(Code::CurrencyNotCovered, outside).by(id));
    }
    if mandate.merchants_allowed().is_some() && payment.is_none_or(|it| mandate.merchant_allowed(&it.domain).is_none())
    {
        let reason = Reason::new(Code::MerchantNotAllowed, outside).by(id);
        said.push(match payment {
            Some(payment) => reason.about(payment.domain.as_str()),
            None => reason,
        });
    }
    fields((request, outside), mandate, (&mut said, names));
    tools((request, outside), mandate, &mut said);
    said
}

/// What is left of the names of fields that one decision tells. `details` can hold thousands of them or very long ones, an agent
/// can have hundreds of mandates that refuse each, and every reason is stored and answered.
struct Names {
    count: usize,
    bytes: usize,
}

/// Bytes of names that one decision tells: more than `data.fields` may hold.
const NAMES_BYTES_MAX: usize = 64 * 1024;

impl Default for Names {
    fn default() -> Self {
        Self { count: DATA_FIELDS_MAX, bytes: NAMES_BYTES_MAX }
    }
}

impl Names {
    /// Takes room for `name`; whether there was some.
    fn take(&mut self, name: &str) -> bool {
        let left = self.count.checked_sub(1).zip(self.bytes.checked_sub(name.len()));
        if let Some((count, bytes)) = left {
            *self = Self { count, bytes };
        }
        left.is_some()
    }
}

/// The names of all fields that a request shares. Those of `data.share` stand in its own member. Any other action may have that one
/// beside its `details`, as its agent likes: it adds names, and takes none away.
fn names_of(request: &Request) -> Vec<&str> {
    let shared: Vec<&str> = request.data.iter().flat_map(|it| &it.share.fields).map(|it| it.as_str()).collect();
    let is_all = request.data.is_some() && request.kind.needs_data();
    let details = request.details.iter().filter(|_| !is_all).flat_map(|it| &it.names).map(|it| &**it);
    let details: Vec<&str> = details.filter(|it| !shared.contains(it)).collect();
    [shared, details].concat()
}

/// Each name that is refused, as long as there is room to tell them; that something is refused in any case.
fn fields((request, outside): (&Request, Effect), mandate: &Mandate, (said, left): (&mut Vec<Reason>, &mut Names)) {
    let Some(allowed) = &mandate.fields else { return };
    let reason = || Reason::new(Code::FieldNotAllowed, outside).by(mandate.id.mandate);
    let names = names_of(request);
    if names.is_empty() {
        said.push(reason());
    }
    let before = said.len();
    for name in names.into_iter().filter(|name| !allowed.allows(name)) {
        if left.take(name) {
            said.push(reason().about(name));
        } else {
            // That this mandate refuses is told without a name, where none of its own was.
            said.extend((said.len() == before).then(reason));
            break;
        }
    }
}

fn tools((request, outside): (&Request, Effect), mandate: &Mandate, said: &mut Vec<Reason>) {
    let Some(globs) = mandate.tools.as_ref().and_then(|it| it.allow.as_deref()) else { return };
    let reason = Reason::new(Code::ToolNotAllowed, outside).by(mandate.id.mandate);
    match tool(request) {
        Some((server, name)) if globs.iter().any(|it| it.covers(server, name)) => {}
        Some((server, name)) => said.push(reason.about(full_name(server, name))),
        None => said.push(reason),
    }
}

fn amounts(facts: &Facts<'_>, mandate: &Mandate, said: &mut Vec<Reason>) {
    let limits = mandate.limits();
    let effect = match limits.on_limit {
        OnLimit::Ask => Effect::Ask,
        OnLimit::Deny => Effect::Deny,
    };
    let reason = |code| Reason::new(code, effect).by(mandate.id.mandate);
    if let Some(payment) = facts.request.payment.as_ref().filter(|it| limits.cover(it.currency)) {
        let amount = payment.amount;
        if let Some(most) = limits.per_action.filter(|most| amount > *most) {
            said.push(Reason {
                limit: Some(most),
                requested: Some(amount),
                currency: limits.currency,
                ..reason(Code::OverLimit)
            });
        }
        if let Some(per) = &limits.per_period {
            let tally = tally(facts, mandate, per.period);
            if tally.used().saturating_add(amount) > per.amount {
                said.push(Reason {
                    limit: Some(per.amount),
                    used: Some(tally.used()),
                    requested: Some(amount),
                    currency: limits.currency,
                    window: Some(per.period.as_str().into()),
                    clears_at: Some(tally.until),
                    ..reason(Code::OverPeriodLimit)
                });
            }
        }
    }
    if let Some(count) = &limits.count {
        let tally = tally(facts, mandate, count.period);
        if tally.count >= count.max {
            said.push(Reason {
                limit: Some(count.max.into()),
                used: Some(tally.count.into()),
                requested: Some(1),
                window: Some(count.period.as_str().into()),
                clears_at: Some(tally.until),
                ..reason(Code::OverCountLimit)
            });
        }
    }
}

fn tally(facts: &Facts<'_>, mandate: &Mandate, period: Period) -> Tally {
    facts.activity.tally(mandate.id.mandate, period, facts.now, facts.settings)
}

fn tool(request: &Request) -> Option<ToolName<'_>> {
    request.tool.as_ref().and_then(|it| tool_name(&it.tool))
}

/// A tool's server, where it has one, and its name.
pub(super) type ToolName<'a> = (Option<&'a str>, &'a str);

/// The names that globs over tools are matched with.
pub fn tool_name(tool: &Tool) -> Option<ToolName<'_>> {
    let name = tool.name.as_ref()?;
    Some((tool.server.as_ref().map(|it| it.as_str()), name.as_str()))
}

fn full_name(server: Option<&str>, name: &str) -> String {
    server.map_or_else(|| name.to_owned(), |server| format!("{server}/{name}"))
}
