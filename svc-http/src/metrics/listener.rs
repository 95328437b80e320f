//! The listener of `metrics.listen`: `GET /metrics` and nothing else, apart from the addresses that agents and people reach.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE as TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use svc_store::Gate;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::{CONTENT_TYPE, Metrics};
use crate::ops::RunningCalls;
use crate::serve::rest_after;

/// Connections at once: whoever reads metrics is one or two.
const CONNECTIONS_MAX: usize = 64;
/// Until a request's head is whole.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// How long one connection is served.
const CONNECTION_TIME: Duration = Duration::from_secs(300);

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, metrics: Arc<Metrics>, gate: Gate, running: Arc<RunningCalls>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                rest_after(&error).await;
                continue;
            }
        };
        let (metrics, gate, running) = (Arc::clone(&metrics), gate.clone(), Arc::clone(&running));
        tokio::spawn(async move {
            let _place = place;
            let service = service_fn(|request: Request<hyper::body::Incoming>| {
                let (metrics, gate, running) = (Arc::clone(&metrics), gate.clone(), Arc::clone(&running));
                async move {
                    Ok::<_, Infallible>(answer(request.method(), request.uri().path(), metrics, gate, running).await)
                }
            });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // Whoever goes away in between has what they came for, or comes again.
            let _ = tokio::time::timeout(CONNECTION_TIME, connection).await;
        });
    }
}

async fn answer(
    method: &Method,
    path: &str,
    metrics: Arc<Metrics>,
    gate: Gate,
    running: Arc<RunningCalls>,
) -> Response<Full<Bytes>> {
    if path != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "Metrics are at /metrics.\n");
    }
    if method != Method::GET && method != Method::HEAD {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "Metrics are read with GET.\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let stored = metrics.stored(&gate).await;
    match tokio::task::spawn_blocking(move || metrics.text(&gate, &running, stored)).await {
        Ok(Ok(text)) => {
            let mut told = Response::new(Full::new(Bytes::from(text)));
            told.headers_mut().insert(TYPE, HeaderValue::from_static(CONTENT_TYPE));
            told.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            told
        }
        Ok(Err(_)) | Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "Metrics could not be written.\n"),
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut told = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *told.status_mut() = status;
    told.headers_mut().insert(TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    told
}
