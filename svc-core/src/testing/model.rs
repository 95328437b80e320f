//! A naive model of what the gate promises about limits, velocity, idempotency, single use and settlement: lists of
//! events that are searched from the beginning, and none of the rules' code. Where the two differ, one of them is wrong.
//!
//! It knows one agent with one mandate over payments in one currency and one over tool calls, and one person who decides.

use std::collections::BTreeSet;

/// What is asked of the model's agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The amount in minor units; `None` is a tool call.
    pub pays: Option<i64>,
    /// To which host.
    pub host: &'static str,
    /// The registrable domain of the host.
    pub payee: &'static str,
    /// Under which idempotency key.
    pub key: Option<u8>,
}

/// The rules in force: those of a mandate over payments, and the workspace's velocity.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most one payment may move.
    pub per_action: i64,
    /// The most an hour of UTC may see, reserved and spent.
    pub per_hour: i64,
    /// The most payments an hour of UTC may see.
    pub count: usize,
    /// Above it a person is asked.
    pub ask_above: i64,
    /// Hosts that may be paid end with this.
    pub below: &'static str,
    /// Tool calls in a window.
    pub tools: usize,
    /// All else in a window.
    pub others: usize,
    /// The window in milliseconds.
    pub window_ms: i64,
}

/// How an action stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// Allowed and unsettled.
    Allowed,
    /// A person has been asked.
    Asked,
    /// Denied.
    Denied,
    /// Settled, whatever as.
    Settled,
}

/// What the gate has to answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The action, by number in the order of making.
    pub action: usize,
    /// How it stands.
    pub stands: Stands,
    /// The codes of its reasons.
    pub codes: BTreeSet<&'static str>,
    /// Whether it was made before.
    pub replayed: bool,
}

/// Everything that ever happened.
#[derive(Clone, Debug)]
pub struct Model {
    limits: Limits,
    actions: Vec<Made>,
    /// Whether the agent was stopped.
    pub frozen: bool,
}

#[derive(Clone, Debug)]
struct Made {
    at: i64,
    /// When it was allowed, by the rules or by the person.
    allowed_at: Option<i64>,
    ask: Ask,
    first: Stands,
    stands: Stands,
    codes: BTreeSet<&'static str>,
    /// Asked although no limit was free, so that it holds nothing.
    holds: bool,
    consumed: Option<i64>,
    posted: Option<i64>,
    /// What the agent said it came to.
    told: Option<i64>,
    /// Whether it said that it was done.
    done: bool,
    /// Settled as not done without ever having been used: it was no payment.
    void: bool,
    /// Whether a person gave back what its use kept, before anybody settled it.
    given_back: bool,
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const DUPLICATE_MS: i64 = 600_000;

impl Model {
    /// Nothing has happened.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, actions: Vec::new(), frozen: false }
    }

    /// How many actions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether nothing was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Asks at `now`. `None` where the idempotency key was used for something else.
    pub fn ask(&mut self, now: i64, ask: &Ask) -> Option<Answer> {
        if !self.frozen
            && let Some(action) = ask.key.and_then(|_| self.actions.iter().position(|it| it.keeps_key(ask)))
        {
            let first = &self.actions[action];
            let same = (first.ask.pays, first.ask.host) == (ask.pays, ask.host);
            let codes = first.codes.clone();
            return same.then_some(Answer { action, stands: first.stands, codes, replayed: true });
        }
        let mut codes = BTreeSet::new();
        let (mut deny, mut ask_person, mut holds) = (false, false, true);
        if self.frozen {
            codes.insert("agent_frozen");
            (deny, holds) = (true, false);
        } else {
            let outside = ask.pays.is_some() && !ask.host.ends_with(self.limits.below);
            if outside {
                codes.insert("merchant_not_allowed");
                (ask_person, holds) = (true, false);
            }
            let over = self.over_limits(now, ask);
            deny |= !over.is_empty();
            holds &= over.is_empty();
            codes.extend(over);
            // What asks about amounts is a member of the mandate that is charged: none where no mandate permits.
            let mut asking = self.velocity(now, ask);
            if let Some(amount) = ask.pays {
                if holds && amount > self.limits.ask_above {
                    asking.push("above_ask_threshold");
                }
                let before = self.paid(now, ask);
                if holds && before > 0 && before + amount > self.limits.ask_above {
                    asking.push("split_payments");
                }
                if self.is_repeated(now, ask) {
                    asking.push("possible_duplicate");
                }
            }
            ask_person |= !asking.is_empty();
            codes.extend(asking);
        }
        let first = match (deny, ask_person) {
            (true, _) => Stands::Denied,
            (false, true) => Stands::Asked,
            (false, false) => Stands::Allowed,
        };
        // A stopped agent's deny is not kept under the key.
        let kept = Ask { key: ask.key.filter(|_| !self.frozen), ..ask.clone() };
        let made = Made {
            at: now,
            allowed_at: (first == Stands::Allowed).then_some(now),
            ask: kept,
            first,
            stands: first,
            codes: codes.clone(),
            holds: holds && first != Stands::Denied,
            consumed: None,
            posted: None,
            told: None,
            done: false,
            void: false,
            given_back: false,
        };
        self.actions.push(made);
        Some(Answer { action: self.actions.len() - 1, stands: first, codes, replayed: false })
    }

    /// Shows the receipt of an action for a charge of `amount`: whether that is good.
    pub fn show(&mut self, now: i64, action: usize, amount: i64, lives_ms: i64) -> bool {
        let frozen = self.frozen;
        let Some(made) = self.actions.get_mut(action) else { return false };
        let most = made.posted.or(made.ask.pays).unwrap_or(0);
        let open = made.consumed.is_none() && !made.void && !frozen;
        let lives = made.allowed_at.is_some_and(|at| now / 1_000 < (at + lives_ms) / 1_000);
        let good = open && lives && amount <= most;
        if good {
            made.consumed = Some(amount);
        }
        good
    }

    /// The person decides what waits: whether that is taken.
    pub fn decide(&mut self, now: i64, action: usize, yes: bool) -> bool {
        let frozen = self.frozen;
        let Some(made) = self.actions.get_mut(action).filter(|it| it.stands == Stands::Asked && !frozen) else {
            return false;
        };
        if yes {
            (made.stands, made.allowed_at) = (Stands::Allowed, Some(now));
        } else {
            (made.stands, made.holds, made.void) = (Stands::Denied, false, true);
        }
        true
    }

    /// Settles an action: `None` where that is refused, else whether it was an incident.
    pub fn settle(&mut self, action: usize, done: bool, amount: Option<i64>) -> Option<bool> {
        let made = self.actions.get_mut(action)?;
        let refused = made.stands != Stands::Allowed || (amount.is_some() && made.ask.pays.is_none());
        if refused {
            return None;
        }
        made.stands = Stands::Settled;
        let allowed = made.ask.pays.unwrap_or(0);
        let told = amount.unwrap_or(if done { allowed } else { 0 });
        (made.told, made.done) = (Some(told), done);
        let kept = made.consumed.filter(|_| !made.given_back);
        made.posted = Some(told.max(kept.unwrap_or(0)));
        made.void = !done && kept.is_none();
        let incident = made.ask.pays.is_some() && amount.is_some_and(|it| it > allowed);
        self.frozen |= incident;
        Some(incident)
    }

    /// A person releases at `now` what the use of an action's receipt kept posted: how much, or `None` where nothing is. A day
    /// after the receipt, which lived `lives_ms`, nobody's word is waited for.
    pub fn release(&mut self, now: i64, action: usize, lives_ms: i64) -> Option<i64> {
        let made = self.actions.get_mut(action)?;
        if made.told.is_none() {
            let lapsed = made.allowed_at.is_some_and(|at| now >= at + lives_ms + DAY_MS);
            made.consumed.filter(|_| lapsed && !made.given_back)?;
            (made.given_back, made.void) = (true, true);
            return made.ask.pays;
        }
        let (told, posted) = made.told.zip(made.posted).filter(|(told, posted)| posted > told)?;
        made.posted = Some(told);
        made.void |= !made.done;
        Some(posted - told)
    }

    /// The timers have run: what waited for a person when the agent was stopped is denied and holds nothing.
    pub fn follow(&mut self) {
        for made in self.actions.iter_mut().filter(|it| self.frozen && it.stands == Stands::Asked) {
            (made.stands, made.holds, made.void) = (Stands::Denied, false, true);
        }
    }

    /// What the running hour holds: reserved, spent, and how many.
    #[must_use]
    pub fn hour(&self, now: i64) -> (i64, i64, usize) {
        let inside = |it: &&Made| it.ask.pays.is_some() && it.holds && it.at / HOUR_MS == now / HOUR_MS;
        let sum = |part: fn(&Made) -> i64| self.actions.iter().filter(inside).map(part).sum::<i64>();
        let reserved = sum(|it| if it.posted.is_some() { 0 } else { it.ask.pays.unwrap_or(0) });
        (reserved, sum(|it| it.posted.unwrap_or(0)), self.actions.iter().filter(inside).count())
    }

    fn over_limits(&self, now: i64, ask: &Ask) -> Vec<&'static str> {
        let Some(amount) = ask.pays else { return Vec::new() };
        let (reserved, spent, count) = self.hour(now);
        let mut over = Vec::new();
        if amount > self.limits.per_action {
            over.push("over_limit");
        }
        if reserved + spent + amount > self.limits.per_hour {
            over.push("over_period_limit");
        }
        if count >= self.limits.count {
            over.push("over_count_limit");
        }
        over
    }

    fn velocity(&self, now: i64, ask: &Ask) -> Vec<&'static str> {
        let counts = |it: &&Made| {
            it.first != Stands::Denied
                && it.ask.pays.is_some() == ask.pays.is_some()
                && it.at > now - self.limits.window_ms
        };
        let limit = if ask.pays.is_some() { self.limits.others } else { self.limits.tools };
        if self.actions.iter().filter(counts).count() >= limit { vec!["velocity_exceeded"] } else { Vec::new() }
    }

    fn to_payee<'a>(&'a self, ask: &'a Ask, since: i64) -> impl Iterator<Item = &'a Made> + 'a {
        let counts =
            move |it: &&Made| it.first != Stands::Denied && !it.void && it.ask.payee == ask.payee && it.at > since;
        self.actions.iter().filter(counts)
    }

    fn paid(&self, now: i64, ask: &Ask) -> i64 {
        self.to_payee(ask, now - DAY_MS).filter_map(|it| it.posted.or(it.ask.pays)).sum()
    }

    fn is_repeated(&self, now: i64, ask: &Ask) -> bool {
        self.to_payee(ask, now - DUPLICATE_MS).any(|it| it.ask.pays == ask.pays)
    }
}

impl Made {
    fn keeps_key(&self, ask: &Ask) -> bool {
        self.ask.key == ask.key
    }
}
