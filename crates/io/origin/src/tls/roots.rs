//! Root certificates, each held to what it says of itself. How far a root is to be trusted is for who trusts it to say
//! (RFC 5280 §6.1.1 (d)), and webpki keeps no more of one than name, key and name constraints; but browsers and OpenSSL
//! go by its dates, its uses and how many issuers it lets stand below it as well. Pure.

use super::facts::Facts;
use super::problem::CertificateProblem;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use std::time::{Duration, UNIX_EPOCH};

/// All that are trusted.
#[derive(Debug, Default)]
pub(super) struct Roots {
    anchors: Vec<TrustAnchor<'static>>,
    /// What the certificate says from which the anchor of the same place was made.
    said: Vec<Said>,
}

/// What a root says of itself.
#[derive(Debug)]
struct Said {
    certificate: CertificateDer<'static>,
    /// Seconds since 1970, from the first to the last in which it counts.
    times: (i64, i64),
    /// Why nobody whom it vouches for can be believed.
    unfit: Option<CertificateProblem>,
    /// How many issuers may stand between it and a server, if it says that.
    below: Option<u32>,
}

impl Roots {
    /// Trusts this certificate, too.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), webpki::Error> {
        let anchor = webpki::anchor_from_trusted_cert(&certificate)?.to_owned();
        let facts = Facts::of(&certificate).ok_or(webpki::Error::BadDer)?;
        let (times, unfit, below) = (facts.times(), unfit(&facts), facts.issuers_below());
        self.anchors.push(anchor);
        self.said.push(Said { certificate, times, unfit, below });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.anchors.len()
    }

    /// As webpki takes them.
    pub(super) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// Why a chain with so many issuers between `anchor` and a server does not count. Of several roots of one name and
    /// key, such as an old one and its renewal, one is enough.
    ///
    /// # Errors
    /// What the root says that keeps it from counting.
    pub(super) fn vouch(
        &self,
        anchor: &TrustAnchor<'_>,
        between: usize,
        now: UnixTime,
    ) -> Result<(), CertificateProblem> {
        let same = self.anchors.iter().zip(&self.said).filter(|(known, _)| *known == anchor);
        let mut fault = Ok(());
        for (_, said) in same {
            fault = said.vouch(between, now);
            if fault.is_ok() {
                break;
            }
        }
        fault
    }

    /// The key of one that has the name of who issued `below`, if it is weak.
    pub(super) fn weak_key_of(&self, below: &Facts<'_>) -> Option<String> {
        let named = self.said.iter().filter_map(|said| Facts::of(&said.certificate));
        named.filter(|root| below.names_as_issuer(root)).find_map(|root| root.weak_key())
    }

    /// Whether a server's own certificate is among them, and counts now: then nobody else has to vouch for it. `None` if
    /// it is not.
    pub(super) fn is_trusted_itself(
        &self,
        shown: &CertificateDer<'_>,
        now: UnixTime,
    ) -> Option<Result<(), CertificateProblem>> {
        let said = self.said.iter().find(|said| said.certificate == *shown)?;
        Some(said.in_time(now))
    }
}

impl Said {
    fn in_time(&self, now: UnixTime) -> Result<(), CertificateProblem> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let (from, until) = self.times;
        if now < from {
            return Err(CertificateProblem::NotYetValid { from: date(from) });
        }
        if now > until {
            return Err(CertificateProblem::Expired { since: date(until) });
        }
        Ok(())
    }

    fn vouch(&self, between: usize, now: UnixTime) -> Result<(), CertificateProblem> {
        if let Some(unfit) = &self.unfit {
            return Err(unfit.clone());
        }
        if self.below.is_some_and(|most| between > most as usize) {
            let what = "more issuers stand below its root than that allows";
            return Err(CertificateProblem::Misused(what));
        }
        self.in_time(now).map_err(|problem| {
            let issuer = Facts::of(&self.certificate).map(|facts| facts.subject()).unwrap_or_default();
            CertificateProblem::OfIssuer { issuer, problem: problem.into() }
        })
    }
}

/// Why nobody whom a root vouches for can be believed.
fn unfit(facts: &Facts<'_>) -> Option<CertificateProblem> {
    if !facts.is_issuer() {
        return Some(CertificateProblem::Misused("its root is no issuer of certificates"));
    }
    if !facts.may_sign_certificates() {
        return Some(CertificateProblem::Misused("its root has a key that may not sign certificates"));
    }
    (!facts.is_for_servers()).then_some(CertificateProblem::NotForServers)
}

fn date(seconds: i64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}
