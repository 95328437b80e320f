//! Providers, models, classes, profiles and routing (CONTRACT part 2, "Upstreams, models, routing").
//!
//! Bodies become lists of settings: what was sent and nothing else, so that two changes at once do not undo each other.

pub mod list;
pub mod model;
pub mod policy;
pub mod preview;
pub mod upstream;

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::gateway::routing::{Set, TOOL_RULES_MAX};
use svc_core::state::gateway::route::Constraint;
use svc_core::state::gateway::{Capability, Mode, Objective, Routing, ToolRule};
use svc_core::value::Invalid;
use svc_core::value::json::Json;
use svc_core::value::text::{ClassId, Source};

use super::named::Names;
use super::{Fields, integer, parse_or_empty, text, truth};

/// Characters of a glob over names of tools.
const GLOB_MAX: usize = 256;

/// What a change of routing names.
pub const IDS: &[(&str, Names)] = &[("defaultTaskClass", Names::TaskClass)];

/// Reads what changes of routing; `null` returns a member to its default.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<Vec<Set>, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["mode", "defaultObjective", "defaultTaskClass", "toolTable"]);
    let mut set = Vec::new();
    let class = |it: &Json| ClassId::parse(text(it)?);
    put(&mut fields, "mode", &mut set, mode, |it| Set::Mode(it.unwrap_or_default()));
    put(&mut fields, "defaultObjective", &mut set, objective, |it| Set::Objective(it.unwrap_or_default()));
    put(&mut fields, "defaultTaskClass", &mut set, class, Set::DefaultClass);
    if fields.is_null("toolTable") {
        set.push(Set::Tools(None));
    } else if let Some(rules) = fields.each("toolTable", TOOL_RULES_MAX, read_rule) {
        set.push(Set::Tools(Some(rules)));
    }
    fields.finish(Some(set))
}

fn read_rule(rule: &mut Fields<'_>) -> Option<ToolRule> {
    rule.only(&["tool", "source", "sink"]);
    let tool = rule.required("tool", |it| {
        let glob = text(it)?;
        let sound = (1..=GLOB_MAX).contains(&glob.chars().count()) && !glob.contains(char::is_control);
        let why = || Invalid::new(format!("must be 1 to {GLOB_MAX} characters without control characters"));
        sound.then(|| glob.into()).ok_or_else(why)
    });
    let source = rule.required("source", |it| Source::parse(text(it)?));
    let sink = rule.optional("sink", truth).unwrap_or_default();
    Some(ToolRule { tool: tool?, source: source?, sink })
}

/// Routing as it stands, with the tool table that is in force.
#[must_use]
pub fn write(routing: &Routing) -> Value {
    let table =
        routing.tool_table().map(|(tool, source, sink)| json!({ "tool": tool, "source": source, "sink": sink }));
    json!({
        "mode": routing.mode.as_str(),
        "defaultObjective": routing.objective.as_str(),
        "defaultTaskClass": routing.default_class,
        "toolTable": table.collect::<Vec<_>>(),
    })
}

/// Reads a member into a setting: `null` is the default, what was not sent is none.
fn put<'a, T, S>(
    fields: &mut Fields<'a>,
    name: &str,
    set: &mut Vec<S>,
    read: impl FnOnce(&'a Json) -> Result<T, Invalid>,
    make: impl FnOnce(Option<T>) -> S,
) {
    if fields.is_null(name) {
        set.push(make(None));
    } else if let Some(value) = fields.optional(name, read) {
        set.push(make(Some(value)));
    }
}

/// Reads one of the modes.
pub(crate) fn mode(value: &Json) -> Result<Mode, Invalid> {
    Mode::parse(text(value)?).ok_or_else(|| Invalid::new("must be `shadow` or `enforce`"))
}

/// Reads one of the objectives.
pub(crate) fn objective(value: &Json) -> Result<Objective, Invalid> {
    let why = "must be one of `balanced`, `cost`, `quality`, `latency`, `sovereign`";
    Objective::parse(text(value)?).ok_or_else(|| Invalid::new(why))
}

/// Reads a list of texts into a setting, as [`put`] does one value.
fn put_texts<'a, T, C: FromIterator<T>, S>(
    fields: &mut Fields<'a>,
    (name, min, max): (&str, usize, usize),
    set: &mut Vec<S>,
    read: impl FnMut(&'a str) -> Result<T, Invalid>,
    make: impl FnOnce(Option<C>) -> S,
) {
    if fields.is_null(name) {
        set.push(make(None));
    } else if let Some(items) = fields.texts(name, (min, max), read) {
        set.push(make(Some(items.into_iter().collect())));
    }
}

/// Capabilities of one list.
const CAPABILITIES_MAX: usize = 100;

/// Reads a capability.
fn capability(word: &str) -> Result<Capability, Invalid> {
    let why = "must be one of `tools`, `vision`, `streaming`, `json`, `reasoning`, `audio`";
    Capability::parse(word).ok_or_else(|| Invalid::new(why))
}

/// The countries of ISO 3166-1, alpha-2.
const COUNTRIES: &str = "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by bz ca cc cd \
    cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk fm fo fr ga gb gd ge gf \
    gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn \
    kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na \
    nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si \
    sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi \
    vn vu wf ws ye yt za zm zw";

/// Reads a law: ISO 3166 in lower case, or `eu`. A code that no country has would name a law that no model is under.
fn law(law: &str) -> Result<Box<str>, Invalid> {
    if matches!(law, "eu" | "unknown") || COUNTRIES.split(' ').any(|it| it == law) {
        return Ok(law.into());
    }
    Err(Invalid::new(match law {
        "uk" => "must be `gb`, which is the United Kingdom in ISO 3166",
        _ => "must be an ISO 3166 code in lower case, `eu`, or `unknown`",
    }))
}

/// Reads a whole number within bounds.
fn within(value: &Json, min: i64, max: i64) -> Result<u64, Invalid> {
    let number = integer(value)?;
    let why = || Invalid::new(format!("must be between {min} and {max}"));
    let number = Some(number).filter(|it| (min..=max).contains(it)).ok_or_else(why)?;
    u64::try_from(number).map_err(|_| why())
}

/// The words of constraints.
fn constraints(all: impl Iterator<Item = Constraint>) -> Vec<&'static str> {
    all.map(Constraint::as_str).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn fields(body: &str) -> Vec<String> {
        let refusal = read(body.as_bytes()).unwrap_err();
        refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or_default().to_owned()).collect()
    }

    /// A code that no country has is a fault: no model would ever be under it.
    #[test]
    fn a_jurisdiction_is_one() {
        for good in ["gb", "ad", "zw", "eu", "unknown"] {
            assert!(law(good).is_ok_and(|it| &*it == good), "{good}");
        }
        for bad in ["uk", "xx", "zz", "GB", "g", "", " ", "ad ae"] {
            assert!(law(bad).is_err(), "{bad:?}");
        }
    }

    /// Every fault is named by its path, and unknown members are faults.
    #[test]
    fn faults_of_routing_are_named() {
        assert_eq!(
            fields(
                r#"{"mode":"x","defaultObjective":1,"defaultTaskClass":"A b","toolTable":[{"tool":"","sinc":true}],"modes":1}"#
            ),
            [
                "modes",
                "mode",
                "defaultObjective",
                "defaultTaskClass",
                "toolTable.0.sinc",
                "toolTable.0.tool",
                "toolTable.0.source"
            ]
        );
        assert_eq!(read(b"{}").unwrap().len(), 0);
        assert_eq!(read(br#"{"mode":null,"toolTable":null,"defaultTaskClass":null}"#).unwrap().len(), 3);
    }
}
