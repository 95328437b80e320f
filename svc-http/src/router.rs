//! Finds the route of a method and path, or says what was probably meant.

use std::ops::Range;

use http::{HeaderValue, Method, Uri};
use svc_core::refusal::Refusal;

use crate::routes::{self, Content, GatewayOp, Op, Route, RoutingOp};

/// The route table, ready for matching.
#[derive(Debug)]
pub struct Router {
    paths: matchit::Router<Entry>,
}

/// A route that matched.
#[derive(Clone, Debug)]
pub struct Matched {
    /// The row of the table.
    pub route: &'static Route,
    /// Where in the path the ids stand, in the order of [`Route::params`].
    pub params: Vec<Range<usize>>,
    /// Whether HEAD was asked where GET is served.
    pub head: bool,
}

/// Why nothing matched, with the `allow` header where the path exists.
#[derive(Clone, Debug)]
pub struct Unmatched {
    /// 404 or 405.
    pub refusal: Refusal,
    /// The methods of the path.
    pub allow: Option<HeaderValue>,
}

/// The routes of one path.
#[derive(Debug)]
struct Entry {
    routes: Vec<&'static Route>,
    allow: HeaderValue,
}

/// A table that cannot be matched unambiguously.
#[derive(Debug, thiserror::Error)]
#[error("the route `{path}` cannot be matched")]
pub struct AmbiguousRoute {
    path: &'static str,
    source: matchit::InsertError,
}

/// Longest path for which the nearest route is looked for: the search grows with the product of lengths.
const NEAREST_PATH_MAX: usize = 200;
/// Segments of a path that are compared; what follows them is equally far from every route.
const NEAREST_SEGMENTS_MAX: usize = 12;
/// Edits that a word without an underscore counts for where an id belongs.
const NO_ID_COST: usize = 3;
/// Edits that an id counts for that was left out.
const ID_LEFT_OUT_COST: usize = 2;
/// Edits that a version counts for that was left out at the front.
const VERSION_LEFT_OUT_COST: usize = 1;
/// The most edits that a segment too many or too few counts for.
const SEGMENT_COST_MAX: usize = 4;
/// What stands before the paths of the APIs of models.
const MODEL_BASES: [&str; 3] = ["anthropic", "openai", "v1"];
/// What follows there, whichever of it is served.
const MODEL_WORDS: [&str; 22] = [
    "assistants",
    "audio",
    "batches",
    "chat",
    "complete",
    "completions",
    "conversations",
    "embeddings",
    "files",
    "fine_tuning",
    "images",
    "messages",
    "model",
    "models",
    "moderations",
    "realtime",
    "rerank",
    RESPONSES,
    "threads",
    "uploads",
    "vector_stores",
    "videos",
];
/// The one whose requests have another shape, and what of the others a client that speaks it is switched to.
const RESPONSES: &str = "responses";
const INSTEAD_OF_RESPONSES: &str = "POST /v1/chat/completions";
/// Edits that another method counts for.
const METHOD_COST: usize = 3;

impl Router {
    /// A router over [`routes::all`].
    ///
    /// # Errors
    /// [`AmbiguousRoute`] where two rows overlap: a bug that a test finds.
    pub fn new() -> Result<Self, AmbiguousRoute> {
        let mut paths = matchit::Router::new();
        let mut known: Vec<&str> = Vec::new();
        for path in routes::all().map(|it| it.path) {
            if known.contains(&path) {
                continue;
            }
            known.push(path);
            let routes: Vec<&Route> = routes::all().filter(|it| it.path == path).collect();
            let mut methods: Vec<&str> = Vec::new();
            for route in &routes {
                methods.push(route.method.as_str());
                if route.method == Method::GET {
                    methods.push("HEAD");
                }
            }
            let allow = HeaderValue::from_str(&methods.join(", ")).unwrap_or(HeaderValue::from_static("GET"));
            let pattern = routes.first().map_or_else(|| path.to_owned(), |it| it.pattern());
            paths.insert(pattern, Entry { routes, allow }).map_err(|source| AmbiguousRoute { path, source })?;
        }
        Ok(Self { paths })
    }

    /// The route of `method` and `path`.
    ///
    /// # Errors
    /// [`Unmatched`]: 405 where the path is served with other methods, else 404 with the nearest route.
    pub fn find(&self, method: &Method, path: &str) -> Result<Matched, Box<Unmatched>> {
        let Ok(found) = self.paths.at(path) else {
            let refusal = missing(method, path);
            return Err(Box::new(Unmatched { refusal, allow: None }));
        };
        let head = method == Method::HEAD;
        let wanted = if head { &Method::GET } else { method };
        let Some(route) = found.value.routes.iter().find(|it| it.method == *wanted) else {
            // A word that is misspelt may stand where others have an id.
            let is_word = found.params.iter().any(|(_, value)| !value.contains('_'));
            let meant = is_word.then(|| nearest(method, path)).flatten();
            let meant = meant.filter(|it| it.split_once(' ').is_some_and(|it| it.0 == wanted.as_str()));
            let refusal = meant.map_or_else(Refusal::method_not_allowed, |it| Refusal::method_not_allowed_there(&it));
            return Err(Box::new(Unmatched { refusal, allow: Some(found.value.allow.clone()) }));
        };
        // A parameter is a part of `path`, so its distance from the start is its place.
        let place = |value: &str| {
            let start = (value.as_ptr() as usize).saturating_sub(path.as_ptr() as usize);
            start..start.saturating_add(value.len())
        };
        let params = found.params.iter().map(|(_, value)| place(value)).collect();
        Ok(Matched { route, params, head })
    }

    /// Where the page is that a person meant who wrote a slash after its address, as browsers and people do; `None` where there
    /// is none. It is named from the address as it was sent, so that it is found below whatever stands before the server's paths,
    /// and on no other host.
    #[must_use]
    pub fn page_beside(&self, method: &Method, uri: &Uri) -> Option<HeaderValue> {
        let path = uri.path().strip_suffix('/')?;
        let page = self.find(method, path).ok()?.route;
        let is_read = page.content == Content::Html && page.method == Method::GET;
        let (_, name) = path.rsplit_once('/').filter(|it| is_read && !it.1.is_empty())?;
        let query = uri.query().map(|it| format!("?{it}")).unwrap_or_default();
        HeaderValue::from_str(&format!("../{name}{query}")).ok()
    }
}

/// What is said of a path that no route has.
fn missing(method: &Method, path: &str) -> Refusal {
    if of_model_apis(path).is_some_and(|it| it.eq_ignore_ascii_case(RESPONSES)) {
        return Refusal::no_responses(INSTEAD_OF_RESPONSES);
    }
    Refusal::route_not_found(nearest(method, path).as_deref())
}

/// The word by which a path is one of the APIs of models, whatever stands before it.
fn of_model_apis(path: &str) -> Option<&str> {
    let is_base = |it: &&str| it.is_empty() || MODEL_BASES.iter().any(|base| it.eq_ignore_ascii_case(base));
    let mut words = path.split('/').take(NEAREST_SEGMENTS_MAX).skip_while(is_base);
    words.next().filter(|it| MODEL_WORDS.iter().any(|word| it.eq_ignore_ascii_case(word)))
}

/// Whether a route is one of those APIs'.
const fn speaks_model_apis(op: Op) -> bool {
    matches!(
        op,
        Op::Gateway(GatewayOp::Chat | GatewayOp::Messages | GatewayOp::CountTokens)
            | Op::Routing(RoutingOp::ChatModels | RoutingOp::MessagesModels)
    )
}

/// `METHOD /path` of the route that was probably meant, whatever case it was written in. There is always one, as an answer
/// without it would leave its reader with nothing to try; only a path too long to be compared has none.
fn nearest(method: &Method, path: &str) -> Option<String> {
    if path.len() > NEAREST_PATH_MAX {
        return None;
    }
    let path = path.to_ascii_lowercase();
    let sent: Vec<&str> = path.split('/').take(NEAREST_SEGMENTS_MAX).collect();
    let wanted = if *method == Method::HEAD { &Method::GET } else { method };
    // A client that misses a part of such an API has no use for what bears another's name.
    let of_models = of_model_apis(&path).is_some();
    let known = routes::all().filter(|it| !of_models || speaks_model_apis(it.op));
    let route = known.min_by_key(|it| {
        let edits = distance(&sent, it.path);
        edits.saturating_add(if it.method == *wanted { 0 } else { METHOD_COST })
    })?;
    Some(format!("{} {}", route.method, route.path))
}

/// Edits between the segments of a path and a template, of which either may have some that the other lacks.
fn distance(sent: &[&str], template: &str) -> usize {
    // Each row holds the edits from the template so far to the first 0, 1, 2, … segments of the path.
    let mut row: Vec<usize> = vec![0];
    for segment in sent {
        row.push(row.last().copied().unwrap_or_default().saturating_add(segment_cost(segment)));
    }
    for (place, wanted) in template.split('/').enumerate() {
        let left_out = match wanted {
            "v1" if place == 1 => VERSION_LEFT_OUT_COST,
            id if id.starts_with("{") => ID_LEFT_OUT_COST,
            word => segment_cost(word),
        };
        let mut before = row.iter().copied();
        let mut diagonal = before.next().unwrap_or_default();
        let mut last = diagonal.saturating_add(left_out);
        let mut next = vec![last];
        for (segment, above) in sent.iter().zip(before) {
            let replaced = diagonal.saturating_add(edits(segment, wanted));
            let too_many = last.saturating_add(segment_cost(segment));
            last = replaced.min(too_many).min(above.saturating_add(left_out));
            next.push(last);
            diagonal = above;
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// Edits that a segment counts for which only one of the two has.
fn segment_cost(segment: &str) -> usize {
    segment.len().saturating_add(1).min(SEGMENT_COST_MAX)
}

/// Edits between a segment and the one in its place: an id costs nothing, another word where one belongs a little. Words
/// that differ much are not compared further, as leaving one out and adding the other costs no more.
fn edits(sent: &str, wanted: &str) -> usize {
    const DIFFERENT: usize = 2 * SEGMENT_COST_MAX;
    if wanted.starts_with("{") {
        return if sent.contains('_') { 0 } else { NO_ID_COST };
    }
    if sent.len().abs_diff(wanted.len()) >= DIFFERENT {
        return DIFFERENT;
    }
    strsim::osa_distance(sent, wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use svc_core::refusal::Kind;

    use super::*;

    fn router() -> Router {
        Router::new().unwrap()
    }

    /// Every row is found by its method and path, with its id where it has one, and GET by HEAD too.
    #[test]
    fn every_row_is_found() {
        for route in routes::all() {
            let path = route.path.replace("{", "x_").replace("}", "");
            let found = router().find(&route.method, &path).unwrap();
            assert_eq!(found.route.op, route.op);
            let params: Vec<String> = found.params.into_iter().map(|it| path[it].to_owned()).collect();
            assert_eq!(params, route.params().map(|it| format!("x_{it}")).collect::<Vec<_>>());
            let head = router().find(&Method::HEAD, &path);
            assert_eq!(head.is_ok_and(|it| it.head && it.route.op == route.op), route.method == Method::GET);
        }
    }

    /// The id of a model is all that is left of a path, whatever slashes it has; no other id has any.
    #[test]
    fn an_id_of_a_model_may_have_slashes() {
        let path = "/api/w/wks_x/models/c/vendor/big";
        for method in [Method::GET, Method::PATCH, Method::DELETE] {
            let found = router().find(&method, path).unwrap();
            let params: Vec<&str> = found.params.into_iter().map(|it| &path[it]).collect();
            assert_eq!(
                (found.route.path, params),
                ("/api/w/{wid}/models/{provider}/{model}", vec!["wks_x", "c", "vendor/big"])
            );
        }
        let error = router().find(&Method::PUT, path).unwrap_err();
        assert_eq!(error.refusal.kind(), Kind::MethodNotAllowed);
        for path in ["/api/w/wks_x/models/c/", "/api/w/wks_x/budgets/bud_x/y"] {
            assert_eq!(router().find(&Method::GET, path).unwrap_err().refusal.kind(), Kind::RouteNotFound, "{path}");
        }
    }

    /// A fixed segment wins over an id, so nobody's id is `authorize`.
    #[test]
    fn a_word_wins_over_an_id() {
        let error = router().find(&Method::GET, "/v1/actions/authorize").unwrap_err();
        assert_eq!(error.refusal.kind(), Kind::MethodNotAllowed);
        assert_eq!(router().find(&Method::POST, "/v1/actions/authorize").unwrap().route.op, Op::Authorize);
    }

    /// Another method is a 405 that lists the right ones; OPTIONS is no exception.
    #[test]
    fn another_method_lists_the_right_ones() {
        for (method, path, allow) in [
            (Method::OPTIONS, "/v1/verify", "POST"),
            (Method::DELETE, "/healthz", "GET, HEAD"),
            (Method::HEAD, "/v1/verify", "POST"),
        ] {
            let error = router().find(&method, path).unwrap_err();
            assert_eq!(
                (error.refusal.kind(), error.allow.unwrap().to_str().unwrap().to_owned()),
                (Kind::MethodNotAllowed, allow.to_owned())
            );
        }
    }

    /// A word that is misspelt is told as such though an id could stand in its place; where there is an id, or nothing like it with that
    /// method, the methods alone are.
    #[test]
    fn a_misspelt_word_in_the_place_of_an_id_names_the_route() {
        for (method, path, meant) in [
            (Method::POST, "/v1/actions/authorise", Some("POST /v1/actions/authorize")),
            (Method::POST, "/v1/actions/act_01K6FN0001000000000000000A", None),
            (Method::DELETE, "/v1/actions/authorise", None),
            (Method::OPTIONS, "/v1/actions/authorize", None),
        ] {
            let error = router().find(&method, path).unwrap_err();
            assert_eq!((error.refusal.kind(), error.refusal.nearest()), (Kind::MethodNotAllowed, meant), "{path}");
            assert_eq!(error.refusal.fix().unwrap().contains("`didYouMean`"), meant.is_some(), "{path}");
        }
    }

    /// A page with a slash after it leads to the page below whatever stands before it, with its query; nothing else does, and no
    /// address leads to another host.
    #[test]
    fn a_page_with_a_slash_after_it_leads_to_the_page() {
        let router = router();
        let beside = |method: Method, at: &str| router.page_beside(&method, &at.parse().unwrap());
        for (at, to) in [
            ("/w/wsp_x/", "../wsp_x"),
            ("/w/wsp_x/agents/?new", "../agents?new"),
            ("/w/wsp_x/agents/agt_x/", "../agt_x"),
            ("/w/wsp_x/approvals/apv_x/", "../apv_x"),
            ("/docs/errors/", "../errors"),
            ("/sign-in/?next=%2Fw", "../sign-in?next=%2Fw"),
        ] {
            assert_eq!(beside(Method::GET, at).unwrap(), to, "{at}");
            assert_eq!(beside(Method::HEAD, at).unwrap(), to, "{at}");
            assert_eq!(beside(Method::POST, at), None, "{at}");
        }
        for at in [
            "/",
            "//",
            "//evil.example/",
            "/w/",
            "/w/wsp_x//",
            "/w/wsp_x",
            "/api/me/",
            "/v1/models/",
            "/health/",
            "/nowhere/",
        ] {
            assert_eq!(beside(Method::GET, at), None, "{at}");
        }
    }

    fn meant(method: Method, path: &str) -> Option<String> {
        router().find(&method, path).unwrap_err().refusal.nearest().map(str::to_owned)
    }

    /// A near miss names the route that was meant: a word misspelt, in another case, too many or left out.
    #[test]
    fn a_near_miss_names_the_route() {
        for (method, path, route) in [
            (Method::POST, "/v1/action/authorise", "POST /v1/actions/authorize"),
            (Method::POST, "/v1/actions/act_01ARZ3NDEKTSV4RRFFQ69G5FAV/setle", "POST /v1/actions/{id}/settle"),
            (Method::POST, "/v1/verify/", "POST /v1/verify"),
            (Method::GET, "/doc", "GET /docs"),
            (Method::POST, "/V1/VERIFY", "POST /v1/verify"),
            (Method::POST, "/actions/authorize", "POST /v1/actions/authorize"),
            (Method::POST, "/verify", "POST /v1/verify"),
            (Method::POST, "/v1/authorize", "POST /v1/actions/authorize"),
            (Method::POST, "/v1/actions", "POST /v1/actions/authorize"),
            (Method::GET, "/v1/actions", "GET /v1/actions/{id}"),
            (Method::GET, "/v1/action", "GET /v1/actions/{id}"),
            (Method::HEAD, "/v1/action", "GET /v1/actions/{id}"),
            (Method::POST, "/v1/actions/settle/", "POST /v1/actions/{id}/settle"),
            (Method::POST, "/v1/receipts/verify", "POST /v1/verify"),
            (Method::POST, "/oauth/authorise", "POST /oauth/authorize"),
            (Method::GET, "/oauth/authorise", "GET /oauth/authorize"),
        ] {
            assert_eq!(meant(method, path).as_deref(), Some(route), "{path}");
        }
    }

    /// Whoever misses a part of an API of models is told of what is served of those, and of nothing that bears another's name.
    #[test]
    fn a_part_of_an_api_of_models_names_one_that_is_served() {
        let served = [
            "POST /v1/chat/completions",
            "POST /anthropic/v1/messages",
            "POST /anthropic/v1/messages/count_tokens",
            "GET /v1/models",
            "GET /anthropic/v1/models",
        ];
        for path in [
            "/v1/embeddings",
            "/v1/completions",
            "/v1/audio/speech",
            "/v1/files",
            "/anthropic/v1/messages/batches",
            "/v1/rerank",
        ] {
            let named = meant(Method::POST, path).unwrap();
            assert!(served.contains(&&*named), "{path}: {named}");
        }
        for (method, path, route) in [
            (Method::POST, "/v1/messages", "POST /anthropic/v1/messages"),
            (Method::POST, "/chat/completions", "POST /v1/chat/completions"),
            (Method::POST, "/v1/v1/chat/completions", "POST /v1/chat/completions"),
            (Method::POST, "/anthropic/v1/v1/messages", "POST /anthropic/v1/messages"),
            (Method::GET, "/models", "GET /v1/models"),
        ] {
            assert_eq!(meant(method, path).as_deref(), Some(route), "{path}");
        }
        for path in ["/v1/responses", "/v1/responses/resp_1", "/responses", "/V1/Responses/resp_1/input_items"] {
            let refusal = router().find(&Method::POST, path).unwrap_err().refusal;
            assert_eq!(refusal.nearest(), Some("POST /v1/chat/completions"), "{path}");
            assert!(refusal.fix().unwrap().contains("Switch the client to chat completions"), "{path}");
        }
    }

    /// Some route is named for every path, however far from all; only one that is too long to compare has none.
    #[test]
    fn every_path_names_a_route() {
        let longest = format!("/{}", "a/".repeat(NEAREST_PATH_MAX / 2 - 1));
        for path in ["", "/v1/nope", "/favicon.ico", "/%00", "////", &longest] {
            let named = meant(Method::GET, path).unwrap();
            assert!(routes::all().any(|it| named == format!("{} {}", it.method, it.path)), "{path}: {named}");
        }
        assert!(meant(Method::CONNECT, "").is_some());
        assert_eq!(meant(Method::GET, &format!("/{}", "a".repeat(NEAREST_PATH_MAX))), None);
        assert_eq!(meant(Method::GET, &format!("/{}", "a/".repeat(4_000))), None);
    }
}
