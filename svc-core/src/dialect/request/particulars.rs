//! Which models refuse what of a request single models refuse: asked where one is sent, and before a model is chosen.

use super::{Target, interjection, makers, thinking};
use crate::state::gateway::{Demand, Dialect, Host, Mode, Model, Particular, Upstream};

impl Target<'_> {
    /// Whether it takes all of a request that single models refuse.
    pub(super) fn takes(self, demand: &Demand) -> bool {
        !demand.particulars.iter().any(|it| self.refuses(*it))
    }

    /// Whether it is one of those that refuse this.
    pub(super) fn refuses(self, what: Particular) -> bool {
        let of_chat = self.dialect == Dialect::Chat;
        match what {
            Particular::Odds => of_chat && makers::takes_no_odds(self),
            Particular::Stop => of_chat && makers::takes_no_stop(self),
            Particular::Stops => of_chat && self.host == Host::Maker,
            Particular::Tools => of_chat && makers::takes_no_tools(self),
            Particular::Beginning => !of_chat && thinking::takes_no_beginning(self),
            // One that draws by chances of its own is not told of it.
            Particular::Heat => !of_chat && !makers::draws_itself(self),
            Particular::Interjection => !of_chat && interjection::takes_none(self),
        }
    }
}

/// Whether a model takes what single models refuse of a request; that its provider's API has a form for the rest is not looked at.
#[must_use]
pub fn takes(demand: &Demand, mode: Mode, upstream: &Upstream, model: &Model) -> bool {
    demand.particulars.is_empty() || Target::asked(upstream, model, demand, mode).takes(demand)
}
