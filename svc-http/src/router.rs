//! Finds the route of a method and path, or says what was probably meant.

use std::ops::Range;

use http::{HeaderValue, Method};
use svc_core::refusal::Refusal;

use crate::routes::{self, Route};

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
/// Edits that a word without an underscore counts for where an id belongs.
const NO_ID_COST: usize = 3;

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
            paths.insert(path, Entry { routes, allow }).map_err(|source| AmbiguousRoute { path, source })?;
        }
        Ok(Self { paths })
    }

    /// The route of `method` and `path`.
    ///
    /// # Errors
    /// [`Unmatched`]: 405 where the path is served with other methods, else 404 with the nearest route.
    pub fn find(&self, method: &Method, path: &str) -> Result<Matched, Box<Unmatched>> {
        let Ok(found) = self.paths.at(path) else {
            let refusal = Refusal::route_not_found(nearest(method, path).as_deref());
            return Err(Box::new(Unmatched { refusal, allow: None }));
        };
        let head = method == Method::HEAD;
        let wanted = if head { &Method::GET } else { method };
        let Some(route) = found.value.routes.iter().find(|it| it.method == *wanted) else {
            return Err(Box::new(Unmatched {
                refusal: Refusal::method_not_allowed(),
                allow: Some(found.value.allow.clone()),
            }));
        };
        // A parameter is a part of `path`, so its distance from the start is its place.
        let place = |value: &str| {
            let start = (value.as_ptr() as usize).saturating_sub(path.as_ptr() as usize);
            start..start.saturating_add(value.len())
        };
        let params = found.params.iter().map(|(_, value)| place(value)).collect();
        Ok(Matched { route, params, head })
    }
}

/// `METHOD /path` of the route that was probably meant. Where several paths are equally near, the one with the method
/// that was used.
fn nearest(method: &Method, path: &str) -> Option<String> {
    if path.len() > NEAREST_PATH_MAX {
        return None;
    }
    let route = routes::all().min_by_key(|it| (distance(path, it.path), it.method != *method))?;
    // More than a third of the path changed is another path.
    (distance(path, route.path) <= (path.len() / 3).max(2)).then(|| format!("{} {}", route.method, route.path))
}

/// Edits between a path and a template, segment by segment; an id costs nothing, another word in its place a little.
fn distance(path: &str, template: &str) -> usize {
    let mut segments = path.split('/');
    let mut total = 0_usize;
    for wanted in template.split('/') {
        let edits = match segments.next() {
            Some(sent) if wanted.starts_with("{") && sent.contains('_') => 0,
            Some(_) if wanted.starts_with("{") => NO_ID_COST,
            Some(sent) => strsim::damerau_levenshtein(sent, wanted),
            None => wanted.len().saturating_add(1),
        };
        total = total.saturating_add(edits);
    }
    segments.fold(total, |sum, left_over| sum.saturating_add(left_over.len()).saturating_add(1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use svc_core::refusal::Kind;

    use super::*;
    use crate::routes::Op;

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

    /// A near miss names the route that was meant; a path that is like nothing names none.
    #[test]
    fn a_near_miss_names_the_route() {
        let meant =
            |method: Method, path: &str| router().find(&method, path).unwrap_err().refusal.nearest().map(str::to_owned);
        assert_eq!(meant(Method::POST, "/v1/action/authorise").as_deref(), Some("POST /v1/actions/authorize"));
        assert_eq!(
            meant(Method::POST, "/v1/actions/act_01ARZ3NDEKTSV4RRFFQ69G5FAV/setle").as_deref(),
            Some("POST /v1/actions/{id}/settle")
        );
        assert_eq!(meant(Method::POST, "/v1/verify/").as_deref(), Some("POST /v1/verify"));
        assert_eq!(meant(Method::GET, "/doc").as_deref(), Some("GET /docs"));
        assert_eq!(meant(Method::GET, "/"), None);
        assert_eq!(meant(Method::GET, "/favicon.ico"), None);
        assert_eq!(meant(Method::GET, &format!("/{}", "a/".repeat(4_000))), None);
        assert_eq!(meant(Method::CONNECT, ""), None);
    }
}
