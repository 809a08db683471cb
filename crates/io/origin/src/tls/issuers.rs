//! Certificates of issuers that origins leave out of their chains, as they were fetched from where the certificates below say
//! that they are (RFC 5280 §4.2.2.1). None of them is trusted for that: they only join the chain that is judged.

use rustls::pki_types::CertificateDer;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many are kept, each for so long.
const MOST: usize = 256;
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// By the URL from which each was fetched.
#[derive(Debug, Default)]
pub(crate) struct Issuers(Mutex<HashMap<String, (Instant, CertificateDer<'static>)>>);

impl Issuers {
    /// What was fetched from `url`.
    pub(crate) fn known(&self, url: &str) -> Option<CertificateDer<'static>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, issuer) = kept.get(url)?;
        (at.elapsed() < KEPT).then(|| issuer.clone())
    }

    /// Whether something was.
    pub(crate) fn knows(&self, url: &str) -> bool {
        self.known(url).is_some()
    }

    /// It was of no use.
    pub(crate) fn forget(&self, url: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(url);
    }

    /// This was fetched from `url`; the oldest makes room.
    pub(crate) fn keep(&self, url: String, issuer: CertificateDer<'static>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST
            && let Some(oldest) = kept.iter().min_by_key(|(_, (at, _))| *at).map(|(url, _)| url.clone())
        {
            kept.remove(&oldest);
        }
        kept.insert(url, (Instant::now(), issuer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_makes_room_and_none_is_kept_for_more_than_a_day() {
        let issuers = Issuers::default();
        let issuer = |number: usize| CertificateDer::from(vec![number as u8]);
        for number in 0..=MOST {
            issuers.keep(number.to_string(), issuer(number));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(["0", "1"].map(|url| issuers.known(url)), [None, Some(issuer(1))]);
        tokio::time::advance(KEPT).await;
        assert_eq!(issuers.known("1"), None);
    }
}
