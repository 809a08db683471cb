//! Judges the certificate that an origin shows, before it has seen a byte of any request. Pure but for what it logs.
//!
//! webpki finds the chain and checks it; what it lets pass or leaves unsaid is added here: what keys and roots may be used
//! for, the strength of the origin's own key, stapled OCSP responses, and words for what is wrong.

use super::facts::Facts;
use super::issuers::Issuers;
use super::ocsp::{self, Silence, Status};
use super::problem::CertificateProblem;
use super::trust::Trust;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use webpki::{
    EndEntityCert, ExpirationPolicy, KeyUsage, RevocationCheckDepth, RevocationOptionsBuilder,
    UnknownStatusPolicy, VerifiedPath,
};

/// What is to be judged, but for the chain above it.
struct Case<'a> {
    certificate: &'a CertificateDer<'a>,
    /// Whom the origin says to be.
    host: &'a ServerName<'a>,
    /// The OCSP response that came with it, or nothing.
    stapled: &'a [u8],
    now: UnixTime,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Verifier {
    trust: Trust,
    /// What origins leave out of their chains and was fetched.
    issuers: Arc<Issuers>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(trust: Trust, issuers: Arc<Issuers>, provider: &CryptoProvider) -> Verifier {
        Verifier { trust, issuers, algorithms: provider.signature_verification_algorithms }
    }

    /// Judges a chain; what is missing in it and is known is put in.
    fn judge_completed(
        &self,
        case: &Case<'_>,
        above: &[CertificateDer<'_>],
    ) -> Result<(), CertificateProblem> {
        let mut chain = above.to_vec();
        loop {
            let judged = self.judge(case, &chain);
            let Err(CertificateProblem::IssuerMissing { at, .. }) = &judged else { return judged };
            let Some(issuer) = self.issuers.known(at).filter(|issuer| !chain.contains(issuer)) else {
                return judged;
            };
            chain.push(issuer);
        }
    }

    fn judge(&self, case: &Case<'_>, above: &[CertificateDer<'_>]) -> Result<(), CertificateProblem> {
        let explained = |error| explain(error, case, above);
        let certificate = EndEntityCert::try_from(case.certificate).map_err(explained)?;
        let facts = Facts::of(case.certificate);
        let path = match self.trust.roots.is_trusted_itself(case.certificate, case.now) {
            Some(in_time) => in_time.map(|()| None),
            None => self.path(&certificate, case, above).map(Some),
        };
        if path.as_ref().err().is_none_or(CertificateProblem::is_left_to_browsers) {
            if let Some(facts) = &facts {
                fit(facts, case.host)?;
            }
            certificate.verify_is_valid_for_subject_name(case.host).map_err(explained)?;
        }
        let path = path?;
        let word =
            match &path {
                _ if case.stapled.is_empty() => None,
                Some(path) => {
                    let word = ocsp::word(case.stapled, path, self.algorithms.all, case.now);
                    Some(word.inspect_err(|silence| {
                        tracing::debug!(?silence, "a stapled OCSP response says nothing")
                    }))
                }
                // Nobody has issued it.
                None => Some(Err(Silence::Anothers)),
            };
        match word {
            Some(Ok(Status::Revoked)) => Err(CertificateProblem::Revoked),
            Some(Ok(Status::Good)) => Ok(()),
            word if facts.is_some_and(|facts| facts.must_staple()) => Err(unstapled(word)),
            _ => Ok(()),
        }
    }

    fn path<'p>(
        &'p self,
        certificate: &'p EndEntityCert<'p>,
        case: &Case<'_>,
        above: &'p [CertificateDer<'p>],
    ) -> Result<VerifiedPath<'p>, CertificateProblem> {
        let lists: Vec<_> = self.trust.revoked.iter().collect();
        // Fails only without any list. What no list tells of passes; what an old list revoked stays revoked.
        let revocation = |depth| {
            let options = RevocationOptionsBuilder::new(&lists).ok()?.with_depth(depth);
            let options = options.with_status_policy(UnknownStatusPolicy::Allow);
            Some(options.with_expiration_policy(ExpirationPolicy::Ignore).build())
        };
        let anchors = self.trust.roots.anchors();
        let usage = KeyUsage::server_auth();
        // A chain that is in order but for this says more than why others are none.
        let almost = RefCell::new(None);
        let allowed = |path: &VerifiedPath<'_>| {
            self.allows(path, case.now).map_err(|problem| {
                almost.replace(Some(problem));
                webpki::Error::UnknownIssuer
            })
        };
        let verify = |depth| {
            let lists = revocation(depth);
            let all = self.algorithms.all;
            certificate.verify_for_usage(all, anchors, above, case.now, usage, lists, Some(&allowed))
        };
        verify(RevocationCheckDepth::Chain).map_err(|error| {
            let misnamed = || self.misnamed(&error, certificate, case, above);
            let problem = almost.take().or_else(misnamed).unwrap_or_else(|| explain(error, case, above));
            // Who of the chain was taken back is not said: without the lists of those above, it is not the origin's own.
            let is_anothers = problem == CertificateProblem::Revoked
                && !matches!(verify(RevocationCheckDepth::EndEntity), Err(webpki::Error::CertRevoked));
            if is_anothers { revoked_above(above) } else { problem }
        })
    }

    /// What is wrong where an issuer that is trusted has but the name of the one who signed: who is shown above it has signed it, or nobody is.
    /// Names are not told apart by who has them (`CN=localhost` is among the roots of many a system).
    fn misnamed(
        &self,
        error: &webpki::Error,
        certificate: &EndEntityCert<'_>,
        case: &Case<'_>,
        above: &[CertificateDer<'_>],
    ) -> Option<CertificateProblem> {
        let is_of_another_key = match error {
            webpki::Error::InvalidSignatureForPublicKey => true,
            webpki::Error::UnsupportedSignatureAlgorithmForPublicKeyContext(tried) => {
                let tried = tried.public_key_algorithm_id.as_slice();
                self.algorithms.all.iter().any(|known| known.public_key_alg_id().as_ref() == tried)
            }
            _ => false,
        };
        if !is_of_another_key {
            return None;
        }
        let (all, usage) = (self.algorithms.all, KeyUsage::server_auth());
        let issuers: Vec<_> =
            above.iter().filter_map(|der| webpki::anchor_from_trusted_cert(der).ok()).collect();
        let alone = certificate.verify_for_usage(all, &issuers, &[], case.now, usage, None, None);
        if alone.is_err_and(|error| error != webpki::Error::UnknownIssuer) {
            return None;
        }
        let shown = Facts::of(case.certificate)?;
        if shown.is_self_issued() {
            return Some(CertificateProblem::SelfSigned);
        }
        let last = end_of_chain(shown, above);
        let weak = self.trust.roots.weak_key_of(&last).map(CertificateProblem::WeakKey);
        Some(weak.unwrap_or_else(|| CertificateProblem::OtherIssuer { issuer: last.issuer() }))
    }

    /// Whether those above the certificate may be there.
    fn allows(&self, path: &VerifiedPath<'_>, now: UnixTime) -> Result<(), CertificateProblem> {
        let mut between = 0;
        for issuer in path.intermediate_certificates() {
            let der = issuer.der();
            let Some(facts) = Facts::of(&der) else { continue };
            if !facts.may_sign_certificates() {
                let what = "an issuer in its chain has a key that may not sign certificates";
                return Err(CertificateProblem::Misused(what));
            }
            // RFC 5280 §6.1.4 (l): who has issued to itself, to change its key, is not counted.
            between += usize::from(!facts.is_self_issued());
        }
        self.trust.roots.vouch(path.anchor(), between, now)
    }
}

/// No word that it is good, but this one or none.
fn unstapled(word: Option<Result<Status, Silence>>) -> CertificateProblem {
    CertificateProblem::Unstapled(match word {
        None => "the origin shows none",
        Some(Ok(_)) => "the one that the origin shows says that it is not known",
        Some(Err(Silence::Unreadable)) => "the one that the origin shows can't be read",
        Some(Err(Silence::Anothers)) => "the one that the origin shows is not its issuer's",
        Some(Err(Silence::AboutAnother)) => "the one that the origin shows is about another certificate",
        Some(Err(Silence::OutOfDate)) => "the one that the origin shows is out of date",
        Some(Err(Silence::OfTheFuture)) => "the one that the origin shows is of a time to come",
    })
}

/// Whether an origin may prove by this certificate that it is `host`, as far as the certificate itself says.
fn fit(facts: &Facts<'_>, host: &ServerName<'_>) -> Result<(), CertificateProblem> {
    if let Some(weak) = facts.weak_key() {
        return Err(CertificateProblem::WeakKey(weak));
    }
    if !facts.may_sign_handshakes() {
        return Err(CertificateProblem::Misused("its key may not sign handshakes"));
    }
    if !facts.is_for_servers() {
        return Err(CertificateProblem::NotForServers);
    }
    let host = host.to_str();
    if facts.names_a_registry(&host) {
        return Err(CertificateProblem::WrongHost { names: facts.told_names(&host) });
    }
    Ok(())
}

/// What webpki found, for people.
fn explain(error: webpki::Error, case: &Case<'_>, above: &[CertificateDer<'_>]) -> CertificateProblem {
    use webpki::Error as Found;
    let facts = Facts::of(case.certificate);
    let malformed = |what: &str| CertificateProblem::Malformed(what.into());
    match error {
        Found::CertExpired { not_after, .. } => {
            let ends = |facts: &Facts<'_>| seconds(facts.times().1) == not_after;
            of_whom(facts, above, ends, CertificateProblem::Expired { since: date(not_after) })
        }
        Found::CertNotValidYet { not_before, .. } => {
            let begins = |facts: &Facts<'_>| seconds(facts.times().0) == not_before;
            of_whom(facts, above, begins, CertificateProblem::NotYetValid { from: date(not_before) })
        }
        Found::CertNotValidForName(_) => {
            let names = facts.map(|facts| facts.told_names(&case.host.to_str()));
            CertificateProblem::WrongHost { names: names.unwrap_or_default() }
        }
        Found::CertRevoked | Found::CertDistrusted => CertificateProblem::Revoked,
        Found::UnknownIssuer | Found::CaUsedAsEndEntity
            if facts.as_ref().is_some_and(Facts::is_self_issued) =>
        {
            CertificateProblem::SelfSigned
        }
        Found::UnknownIssuer => match facts.map(|facts| end_of_chain(facts, above)) {
            Some(last) => match last.issuer_at().filter(|_| !last.is_self_issued()) {
                Some(at) => CertificateProblem::IssuerMissing { issuer: last.issuer(), at },
                None => CertificateProblem::UnknownIssuer { issuer: last.issuer() },
            },
            None => CertificateProblem::UnknownIssuer { issuer: "a name that can't be read".into() },
        },
        Found::CaUsedAsEndEntity => malformed("it is the certificate of an issuer"),
        Found::RequiredEkuNotFoundContext(_) | Found::EmptyEkuExtension => CertificateProblem::NotForServers,
        Found::InvalidSignatureForPublicKey => {
            weakness(facts, above).unwrap_or_else(|| malformed("a signature in its chain is wrong"))
        }
        Found::UnsupportedSignatureAlgorithmContext(_)
        | Found::UnsupportedSignatureAlgorithmForPublicKeyContext(_)
            if facts.as_ref().is_some_and(Facts::is_self_issued) =>
        {
            CertificateProblem::SelfSigned
        }
        Found::UnsupportedSignatureAlgorithmContext(_)
        | Found::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => weakness(facts, above)
            .unwrap_or_else(|| {
                CertificateProblem::Unverifiable("a signature in its chain is of an unknown kind".into())
            }),
        Found::InvalidCrlSignatureForPublicKey | Found::IssuerNotCrlSigner => {
            malformed("a revocation list of the settings says to be of its issuer and is not signed by it")
        }
        Found::NameConstraintViolation => {
            CertificateProblem::Misused("its issuer may not vouch for this host")
        }
        Found::EndEntityUsedAsCa => {
            CertificateProblem::Misused("a certificate that is no issuer's stands above it in its chain")
        }
        Found::PathLenConstraintViolated => {
            CertificateProblem::Misused("an issuer above it may not have so many others below itself")
        }
        Found::MaximumPathDepthExceeded => malformed("its chain is too long"),
        Found::UnsupportedCriticalExtension => malformed("it demands what is not known here"),
        Found::InvalidCertValidity => untimely(facts, case.now, above),
        Found::UnsupportedCertVersion => malformed("it is not of version 3"),
        other => malformed(&other.to_string()),
    }
}

/// The problem as that of the first of the chain to which it applies. One that is found in none stays with the origin's own.
fn of_whom(
    shown: Option<Facts<'_>>,
    above: &[CertificateDer<'_>],
    applies: impl Fn(&Facts<'_>) -> bool,
    problem: CertificateProblem,
) -> CertificateProblem {
    if shown.is_some_and(|shown| applies(&shown)) {
        return problem;
    }
    let mut issuers = above.iter().filter_map(|der| Facts::of(der));
    match issuers.find(applies) {
        Some(issuer) => CertificateProblem::OfIssuer { issuer: issuer.subject(), problem: problem.into() },
        None => problem,
    }
}

/// One of the chain above was taken back.
fn revoked_above(above: &[CertificateDer<'_>]) -> CertificateProblem {
    let names: Vec<_> = above.iter().filter_map(|der| Facts::of(der)).map(|facts| facts.subject()).collect();
    CertificateProblem::OfIssuer { issuer: names.join(" or "), problem: CertificateProblem::Revoked.into() }
}

/// Of one whose time ends before it begins, as `openssl x509 -days -1` makes them, it is never the time: here what that comes to now.
fn untimely(shown: Option<Facts<'_>>, now: UnixTime, above: &[CertificateDer<'_>]) -> CertificateProblem {
    let chain = shown.into_iter().chain(above.iter().filter_map(|der| Facts::of(der)));
    let times = chain.map(|facts| facts.times()).find(|(begin, end)| end < begin);
    match times.map(|(begin, end)| (seconds(begin), seconds(end))) {
        Some((_, end)) if end < now => CertificateProblem::Expired { since: date(end) },
        Some((begin, _)) => CertificateProblem::NotYetValid { from: date(begin) },
        None => CertificateProblem::Malformed("it ends before it begins".into()),
    }
}

/// A time as certificates say it. Before 1970 is long ago, whatever the day was.
fn seconds(since_1970: i64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(since_1970).unwrap_or(0)))
}

/// The last of the chain that was shown.
fn end_of_chain<'a>(mut last: Facts<'a>, above: &'a [CertificateDer<'a>]) -> Facts<'a> {
    let mut rest: Vec<_> = above.iter().filter_map(|der| Facts::of(der)).collect();
    while let Some(at) = rest.iter().position(|issuer| last.names_as_issuer(issuer)) {
        last = rest.swap_remove(at);
    }
    last
}

/// What is weak in what was shown. The signatures of roots are nobody's proof of anything.
fn weakness<'a>(shown: Option<Facts<'a>>, above: &'a [CertificateDer<'a>]) -> Option<CertificateProblem> {
    let chain: Vec<_> = shown.into_iter().chain(above.iter().filter_map(|der| Facts::of(der))).collect();
    let signed = chain.iter().filter(|facts| !facts.is_self_issued());
    let signature = signed.into_iter().find_map(Facts::weak_signature);
    let key = || chain.iter().find_map(Facts::weak_key).map(CertificateProblem::WeakKey);
    signature.map(|name| CertificateProblem::WeakSignature(name.into())).or_else(key)
}

fn date(time: UnixTime) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(time.as_secs()))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.judge_completed(&Case { certificate, host, stapled, now }, above) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(problem) => Err(CertificateError::Other(OtherError(Arc::new(problem))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
