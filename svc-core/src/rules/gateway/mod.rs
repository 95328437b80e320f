//! Model traffic: what a workspace routes by.

pub mod list_models;
