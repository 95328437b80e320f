//! Takes in a table of models: what is known of them from now on, and what those cost whose price a table gave.

use std::sync::Arc;

use super::routing::as_json;
use super::told::ToldPrices;
use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled};
use crate::state::evidence::{Fact, Subject};
use crate::state::gateway::listing::{LISTED_MAX, Listing, ModelListing, find};
use crate::state::gateway::{Prices, Routing};
use crate::state::people::{Right, Workspace};
use crate::store::Key;
use crate::turn::{Halt, Scope};
use crate::value::canonical::{Object, canonical};
use crate::value::id::WorkspaceId;
use crate::value::json::Json;

/// Adds a table to what a workspace knows of models.
#[derive(Clone, Debug)]
pub struct ListModels {
    /// Of which workspace.
    pub workspace: WorkspaceId,
    /// Who.
    pub by: By,
    /// The table: its models stand before those of one that was added earlier, and before the shipped one's.
    pub listing: Arc<Listing>,
}

/// What a table brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listings {
    /// Models of the table of which nothing was known.
    pub new: Vec<Box<str>>,
    /// Models of the table of which something else was known.
    pub changed: Vec<Box<str>>,
    /// Models of the table of which the same was known.
    pub same: u64,
    /// Models of the workspace, as `provider/model`, that cost something else from now on.
    pub repriced: Vec<Box<str>>,
}

/// Keeps the table. A model of the workspace gets the table's price if it had the one that was known of it before; a price
/// that differs was set by somebody, and stays.
///
/// # Errors
/// Those of [`entitled`], `not_found` where there is no such workspace, `invalid_request` where it would know of more
/// than [`LISTED_MAX`] models.
pub fn list_models(scope: &mut Scope<'_>, asked: &ListModels) -> Result<Listings, Halt> {
    scope.want(&[
        Key::Workspace(asked.workspace),
        Key::ModelListing(asked.workspace),
        Key::Routing(asked.workspace),
    ])?;
    entitled(scope, &asked.by, asked.workspace, Right::ManageSettings)?;
    scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let before = scope.get::<ModelListing>(asked.workspace)?.map(|it| it.listing.clone()).unwrap_or_default();
    let mut after = before.clone();
    let mut done = Listings::default();
    for (id, listed) in &asked.listing.models {
        match find(Some(&before), "", id) {
            None => done.new.push(id.clone()),
            Some(known) if known == listed => done.same = done.same.saturating_add(1),
            Some(_) => done.changed.push(id.clone()),
        }
        after.models.insert(id.clone(), listed.clone());
    }
    after.date = asked.listing.date.clone().or(after.date);
    if after.models.len() > LISTED_MAX {
        return Err(
            Refusal::invalid_field("models", format!("must be at most {LISTED_MAX} with those added before")).into()
        );
    }
    let mut repriced = Vec::new();
    if let Some(routing) = scope.get::<Routing>(asked.workspace)? {
        let (routing, found) = reprice(&routing, &before, &after);
        if !found.is_empty() {
            scope.put(routing);
        }
        repriced = found;
    }
    done.repriced = repriced.iter().map(|it| it.model.clone()).collect();
    if after == before {
        return Ok(done);
    }
    let data = told(&done, &repriced)?;
    let subject = Subject::Workspace(asked.workspace);
    scope.append(asked.workspace, Fact { kind: "settings.changed", actor: asked.by.actor(), subject, data });
    let updated_at = scope.now();
    scope.put(ModelListing { workspace: asked.workspace, listing: after, updated_at });
    Ok(done)
}

/// A model of a workspace that costs something else from now on.
#[derive(Debug)]
struct Repriced {
    /// `provider/model`.
    model: Box<str>,
    old: Option<Prices>,
    new: Option<Prices>,
}

/// What the ledger says of it: how many models, and what those of the workspace cost before and after.
fn told(done: &Listings, repriced: &[Repriced]) -> Result<String, Halt> {
    let count = |it: &[Box<str>]| i64::try_from(it.len()).unwrap_or(i64::MAX);
    let models = Object::new().int("changed", count(&done.changed)).int("new", count(&done.new));
    let data = Object::new().raw("models", &models.int("repriced", count(&done.repriced)).finish());
    if repriced.is_empty() {
        return Ok(data.finish());
    }
    let side = |prices: fn(&Repriced) -> &Option<Prices>| {
        let members =
            repriced.iter().map(|it| Ok((it.model.to_string(), as_json(&prices(it).as_ref().map(ToldPrices::of))?)));
        Ok::<_, Halt>(canonical(&Json::Object(members.collect::<Result<_, Halt>>()?)))
    };
    Ok(data.raw("new", &side(|it| &it.new)?).raw("old", &side(|it| &it.old)?).finish())
}

/// The same routing with the new prices of models that had the known ones.
fn reprice(routing: &Routing, before: &Listing, after: &Listing) -> (Routing, Vec<Repriced>) {
    let mut routing = routing.clone();
    let mut repriced = Vec::new();
    let Routing { models, upstreams, .. } = &mut routing;
    for model in models {
        let provider = upstreams.iter().find(|it| it.id == model.upstream).map_or("", |it| it.name.as_str());
        let known = |listing| find(Some(listing), provider, model.name.as_str()).and_then(|it| it.prices.clone());
        let (old, new) = (known(before), known(after));
        if model.prices == old && new.is_some() && new != old {
            model.prices.clone_from(&new);
            repriced.push(Repriced { model: format!("{provider}/{}", model.name).into(), old, new });
        }
    }
    (routing, repriced)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use super::*;
    use crate::state::gateway::listing;

    fn listing(price: u64) -> Listing {
        let text = format!(r#"{{"models":[{{"id":"m","prices":{{"input":{price},"output":2}}}}]}}"#);
        listing::read(&text).unwrap().listing
    }

    /// A new table changes the price of a model that had the known one or none, and no price that differs; the ledger says what
    /// it was and what it is.
    #[test]
    fn a_price_that_a_workspace_set_itself_stays() {
        let model = |upstream: &str, prices: &str| {
            format!(
                r#"{{"name":"m","upstream":"ups_01K6FN0001000000000000000{upstream}","jurisdiction":"eu",
                    "context_window":1,"max_output":1,"capabilities":[],"retention":"none","quality":{{"general":1}},
                    "prices":{prices},"enabled":true,"created_at":0}}"#
            )
        };
        let known = r#"{"tokens":{"input":1,"output":2}}"#;
        let own = r#"{"tokens":{"input":9,"output":9}}"#;
        let text = format!(
            r#"{{"workspace":"wsp_01K6FN0001000000000000000A","models":[{},{},{}],"upstreams":[
                {{"id":"ups_01K6FN0001000000000000000A","name":"one","dialect":"chat","base_url":"https://a.example",
                "enabled":true,"key_hint":"abcd","created_at":0}}]}}"#,
            model("A", known),
            model("A", own),
            model("B", "null")
        );
        let routing: Routing = serde_json::from_str(&text).unwrap();
        let (after, repriced) = reprice(&routing, &listing(1), &listing(3));
        let price = |place: usize| after.models[place].prices.as_ref().map(|it| it.tokens.input.get());
        assert_eq!([price(0), price(1), price(2)], [Some(3), Some(9), None]);
        assert_eq!(repriced.iter().map(|it| &*it.model).collect::<Vec<_>>(), ["one/m"]);
        let done = Listings { repriced: vec!["one/m".into()], ..Listings::default() };
        let cost = |input| format!(r#"{{"one/m":{{"input":{input},"output":2}}}}"#);
        let data = format!(r#"{{"models":{{"changed":0,"new":0,"repriced":1}},"new":{},"old":{}}}"#, cost(3), cost(1));
        assert_eq!(told(&done, &repriced).unwrap(), data);
        let (first, _) = reprice(&routing, &Listing::default(), &listing(3));
        assert_eq!(first.models[2].prices.as_ref().unwrap().tokens.input.get(), 3);
        let (same, none) = reprice(&routing, &listing(1), &listing(1));
        assert_eq!((same, none.len()), (routing, 0));
    }
}
