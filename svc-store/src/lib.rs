//! svc-store.
