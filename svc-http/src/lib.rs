//! svc-http.
