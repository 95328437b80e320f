//! Queries of lists and reports, their cursors, and bills.

use std::sync::{Arc, OnceLock};

use http::Uri;
use serde_json::json;
use svc_core::refusal::Refusal;
use svc_core::state::gateway::{BILLED_LINES_MAX, Routing};
use svc_core::store::{Key, Record};
use svc_core::testing::sample;
use svc_core::value::Id as _;
use svc_core::value::SAFE_MAX;
use svc_core::value::id::WorkspaceId;
use svc_core::value::json::Json;
use svc_core::value::period::{Zone, date_of};
use svc_http::wire::actions::Wish;
use svc_http::wire::approval::Filter;
use svc_http::wire::calls::{CallWish, TaskWish};
use svc_http::wire::evidence::{self, Listing};
use svc_http::wire::named::named_in_query;
use svc_http::wire::page::{PAGE_MAX, Page, Query};
use svc_http::wire::report::{self, Bill};
use svc_http::wire::routing::list;
use url::form_urlencoded::{Serializer, parse};

use super::bodies::{leads, told};
use super::mandates::NOW;
use super::{inputs, is_the_callers, line_and_rest};

/// A query, by whoever reads it: all that it says, and the part of a list where it asks for one.
type Reader = fn(&Uri, WorkspaceId, &Zone) -> Result<(String, Option<Page>), Refusal>;

/// What a query says beside the part of a list, which is looked at by itself.
fn listed(read: Result<(String, Page), Refusal>) -> Result<(String, Option<Page>), Refusal> {
    read.map(|(said, page)| (said, Some(page)))
}

const READERS: &[Reader] = &[
    |uri, workspace, zone| {
        listed(
            Wish::read(Query::of(uri), workspace, zone)
                .map(|it| (format!("{:?}", (it.agent, it.status, &it.kind, it.span, it.page.limit)), it.page)),
        )
    },
    |uri, workspace, zone| {
        listed(Listing::read(Query::of(uri), workspace, zone).map(|it| (format!("{:?}", (it.from, it.to)), it.page)))
    },
    |uri, workspace, zone| told(evidence::wanted(Query::of(uri), workspace, zone, NOW)).map(|it| (it, None)),
    |uri, workspace, zone| told(evidence::card(Query::of(uri), workspace, zone)).map(|it| (it, None)),
    |uri, _, zone| told(report::read(Query::of(uri), zone, NOW)).map(|it| (it, None)),
    |uri, _, _| told(list::messages(routing(), uri)).map(|it| (it, None)),
    |uri, workspace, _| {
        let mut query = Query::of(uri);
        let filter = Filter::of(&mut query);
        let page = query.page("approvals", workspace);
        query.finish()?;
        Ok((format!("{filter:?}"), Some(page)))
    },
    |uri, workspace, zone| {
        listed(CallWish::read(Query::of(uri), workspace, zone).map(|it| (format!("{it:?}"), it.page)))
    },
    |uri, workspace, zone| {
        listed(TaskWish::read(Query::of(uri), workspace, zone).map(|it| (format!("{it:?}"), it.page)))
    },
];

/// The first byte chooses what is asked, the rest is a query: it means the same in any order, or is refused by parameters that it has; a
/// cursor that is taken is of this list of this workspace, and written as it came.
///
/// # Panics
/// Where that is not so.
pub fn query(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let reader = READERS[usize::from(*choice) % READERS.len()];
    let Some(uri) = uri(text) else { return };
    let (zone, workspace) = (Zone::parse("Europe/Berlin").expect("a zone"), WorkspaceId::from_bits(1));
    let pairs: Vec<(String, String)> = parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let read = |uri: &Uri, workspace| reader(uri, workspace, &zone);
    let known = ["limit", "cursor"];
    let is_among = pairs.iter().all(|(name, _)| known.contains(&name.as_str()));
    assert!(is_among || Query::among(&uri, &known).finish().is_err(), "what is no parameter is told");
    for (name, _) in named_in_query(&Query::of(&uri), report::BILL_IDS) {
        assert!(pairs.iter().any(|(it, _)| *it == name), "{name}");
    }
    let (said, page) = match read(&uri, workspace) {
        Err(refusal) => {
            is_the_callers(&refusal);
            let names = |field: &str| pairs.iter().any(|(name, _)| name == field);
            let blamed = |field: Option<&str>| field.is_none_or(|it| names(it) || matches!(it, "from" | "to"));
            assert!(refusal.errors().iter().all(|it| blamed(it.field.as_deref())), "{refusal:?}");
            return;
        }
        Ok(read) => read,
    };
    let turned = Serializer::new(String::new()).extend_pairs(pairs.iter().rev()).finish();
    // What is escaped may be longer than an address can be.
    let Some(turned) = self::uri(turned.as_bytes()) else { return };
    let (again, _) = read(&turned, workspace).expect("it is read in any order");
    assert_eq!(again, said);
    let Some(page) = page else { return };
    assert!((1..=PAGE_MAX).contains(&page.limit), "{page:?}");
    if let Some((order, key)) = page.after {
        let cursor = pairs.iter().find(|(name, _)| name == "cursor").map(|(_, value)| value.as_str());
        assert_eq!(Some(&*page.cursor(order, key)), cursor);
        assert!(read(&uri, WorkspaceId::from_bits(2)).is_err(), "it is no other workspace's");
    } else {
        let next = page.cursor(1 << 100, Key::Workspace(workspace));
        let Some(uri) = self::uri(format!("{}&cursor={next}", uri.query().unwrap_or_default()).as_bytes()) else {
            return;
        };
        let (_, page) = read(&uri, workspace).expect("a cursor of the list is taken");
        assert_eq!(page.and_then(|it| it.after), Some((1 << 100, Key::Workspace(workspace))));
    }
}

/// The models that a list is made of.
fn routing() -> &'static Routing {
    static ROUTING: OnceLock<Arc<Routing>> = OnceLock::new();
    ROUTING.get_or_init(|| {
        let found =
            sample::rows().into_iter().filter_map(|it| if let Record::Routing(it) = it { Some(it) } else { None });
        found.max_by_key(|it| it.models.len()).expect("there is one")
    })
}

fn uri(query: &[u8]) -> Option<Uri> {
    let query = std::str::from_utf8(query).ok()?;
    format!("/?{query}").parse().ok()
}

/// A query of everything that is asked.
#[must_use]
pub fn query_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "\0agentId=agt_01K6FN0001000000000000000A&status=allowed&type=payment&from=2026-10-01&to=2026-10-02T09:30:00Z&limit=10",
        "\0limit=0&cursor=x&status=y&from=2026-10-02&to=2026-10-01",
        "\u{1}kind=action&about=agt_01K6FN0001000000000000000A&from=2026-10-01&limit=500",
        "\u{2}from=2026-10-01&to=2026-10-02&since=12&agentId=agt_01K6FN0001000000000000000A&redact=true",
        "\u{2}cursor=12.-.-.0.40&since=3",
        "\u{3}from=2026-10-01&to=2026-11-01&agentId=agt_01K6FN0001000000000000000A",
        "\u{4}from=2026-10-01&to=2026-11-01T00:00:00%2B02:00&by=taskClass&currency=EUR",
        "\u{4}to=0000-01-01",
        "\u{5}limit=1&after_id=one/large-1&before_id=one/large",
        "\u{5}limit=1000",
        "\u{6}state=waiting&kind=action&agentId=agt_01K6FN0001000000000000000A&limit=%31",
        "\u{6}state=&state=x&%ff=%zz&+=",
        "\u{7}agentId=agt_01K6FN0001000000000000000A&model=one/large&end=running&taskId=tsk_1&from=2026-10-01&limit=2",
        "\u{7}taskClass=a..b&end=over&model=&keyId=x",
        "\u{8}principalId=prp_01K6FN0001000000000000000A&taskClass=code.review&outcome=unreported&to=2026-10-02",
        "\u{8}outcome=done&from=2026-10-02&to=2026-10-01",
    ])
}

/// A first line `?query` and a table of commas, or a body of JSON: a bill is within its days and limits, and read again from what it says,
/// or refused for the caller to mend.
///
/// # Panics
/// Where that is not so.
pub fn bill(data: &[u8]) {
    let (line, body) = line_and_rest(data);
    let read = match line.strip_prefix(b"?") {
        Some(query) => match uri(query) {
            Some(uri) => report::read_bill_csv(Query::of(&uri), body),
            None => return,
        },
        None => report::read_bill(body),
    };
    let bill = match read {
        Err(refusal) => {
            is_the_callers(&refusal);
            if let (Ok(json), true) = (Json::parse(body), line.is_empty()) {
                let paths = refusal.errors().iter().filter_map(|it| it.field.as_deref());
                paths.for_each(|it| assert!(leads(&json, it), "{it:?} leads nowhere: {refusal:?}"));
            }
            return;
        }
        Ok(bill) => bill,
    };
    let Bill { from, to, lines, .. } = &bill;
    assert!(from < to && to - from <= report::DAYS_MAX && lines.len() <= BILLED_LINES_MAX, "{from} {to}");
    assert!(lines.iter().all(|it| (*from..*to).contains(&it.day) && it.micros.get() <= SAFE_MAX.unsigned_abs()));
    let again: Vec<_> = lines
        .iter()
        .map(|it| json!({ "model": it.model.as_str(), "day": date_of(it.day), "micros": it.micros }))
        .collect();
    let again = json!({ "upstreamId": bill.upstream, "from": date_of(*from), "to": date_of(*to), "lines": again });
    let again = report::read_bill(again.to_string().as_bytes()).expect("what was read is written as a bill");
    assert_eq!(format!("{again:?}"), format!("{bill:?}"));
}

/// Bills of both forms.
#[must_use]
pub fn bill_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "\n{\"upstreamId\":\"ups_01K6FN0001000000000000000A\",\"from\":\"2026-10-01\",\"to\":\"2026-10-03\",\"lines\":[{\"model\":\"acme/large\",\"day\":\"2026-10-01\",\"micros\":12,\"usage\":{}},{\"model\":\"b\",\"day\":\"2026-10-02\",\"micros\":0}]}",
        "\n{\"upstreamId\":\"ups_1\",\"from\":\"2026-10-01\",\"to\":\"2028-10-03\",\"lines\":[{\"model\":\"\",\"day\":\"2026-13-01\",\"micros\":-1,\"usage\":7},7]}",
        "?upstreamId=ups_01K6FN0001000000000000000A&from=2026-10-01&to=2026-10-03\nday,model,cost\n2026-10-01,\"acme/large\",$1.5000000001\n2026-10-01,acme/large,0.0000009\r\n2026-10-02T00:00:00Z,b,3\n",
        "?upstreamId=ups_01K6FN0001000000000000000A&from=2026-10-01&to=2026-10-03\n\u{feff}Date,Model,Micros,Note\n2026-10-01,a,9007199254740991,\"x,\"\"y\"\n",
        "?upstreamId=ups_01K6FN0001000000000000000A&from=2026-10-01&to=2026-10-03\nday,model,cost\n2026-10-01,a,9007199254.7409911\n",
        "?from=2026-10-01&to=2026-10-03\nmodel\n",
    ])
}
