//! Names to addresses. Says nothing about whether an address may be used; [`crate::guard`] does.

use hickory_resolver::config::ResolverConfig;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Resolver, TokioResolver};
use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

/// Why a name has no addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no such name, or it has no address.
    #[error("there is no such name")]
    NotFound,
    /// The name servers failed.
    #[error("{0}")]
    Failed(String),
}

/// The answer of a resolver, as it comes.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, ResolveError>> + Send + 'a>>;

/// Whoever knows the addresses of names.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `host`, the best first. Address literals are not asked for.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;
}

/// The system's own configuration: `/etc/resolv.conf` and `/etc/hosts`, answers kept as long as they say.
pub struct SystemResolver {
    resolver: TokioResolver,
}

impl SystemResolver {
    /// Reads the system's configuration. Without name servers, only `/etc/hosts` is left, and the log says so.
    ///
    /// # Errors
    /// No resolver can be made.
    pub fn new() -> Result<SystemResolver, ResolveError> {
        let builder = TokioResolver::builder_tokio().unwrap_or_else(|error| {
            tracing::warn!(%error, "/etc/resolv.conf names no name server that can be used, only /etc/hosts is left");
            Resolver::builder_with_config(ResolverConfig::default(), TokioRuntimeProvider::default())
        });
        let resolver = builder.build().map_err(|error| ResolveError::Failed(error.to_string()))?;
        Ok(SystemResolver { resolver })
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            match self.resolver.lookup_ip(host).await {
                Ok(answer) => Ok(answer.iter().collect()),
                Err(error) if error.is_no_records_found() => Err(ResolveError::NotFound),
                Err(error) => Err(ResolveError::Failed(error.to_string())),
            }
        })
    }
}

/// A fixed table of names, for tests and laboratories.
#[derive(Debug, Clone, Default)]
pub struct FixedResolver {
    /// Lower-case names and their addresses.
    pub names: HashMap<String, Vec<IpAddr>>,
}

impl Resolve for FixedResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        let addresses = self.names.get(&host.to_ascii_lowercase()).cloned();
        Box::pin(async move { addresses.ok_or(ResolveError::NotFound) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_hosts_file_is_honoured() {
        let resolver = SystemResolver::new().unwrap();
        let addresses = resolver.resolve("localhost").await.unwrap();
        assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback), "{addresses:?}");
    }

    #[tokio::test]
    async fn a_name_that_can_never_exist_is_not_found() {
        // RFC 6761 §6.4: `invalid` is answered without asking anyone.
        let resolver = SystemResolver::new().unwrap();
        assert_eq!(resolver.resolve("nowhere.invalid").await, Err(ResolveError::NotFound));
    }
}
