//! From a host's name to its addresses.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// Addresses that are looked for.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks up names. Whoever is asked may lie or change their mind: what is answered is checked, and only what was checked is
/// connected to.
pub trait Resolve: Send + Sync + std::fmt::Debug + 'static {
    /// The addresses of `host`.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;
}

/// The system's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|it| it.ip()).collect()) })
    }
}
