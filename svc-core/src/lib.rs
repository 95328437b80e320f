//! svc-core.
