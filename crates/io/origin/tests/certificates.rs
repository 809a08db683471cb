//! Each way in which a certificate can be bad, shown by a real origin over both versions of TLS: each is told apart, and
//! the origin gets no byte of the request.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_origin::{CertificateProblem, Error};
use rcgen::{
    CertificateParams, ExtendedKeyUsagePurpose, GeneralSubtree, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, PublicKeyData, date_time_ymd,
};
use rustls::sign::{Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};
use std::sync::Arc;
use support::judging::*;
use support::tls::*;
use support::*;

#[tokio::test]
async fn a_good_certificate_is_taken_with_what_stands_above_it() {
    let root = Authority::root("Root");
    let between = root.below(authority_of("Between"));
    let trust = trusting(&root);
    assert_eq!(judged(&root.issue(&params(&[HOST])), &trust, HOST).await, Ok(()));
    assert_eq!(judged(&between.issue(&params(&[HOST])).under(&between), &trust, HOST).await, Ok(()));
    let many = root.issue(&params(&[HOST, "*.host.example", "127.0.0.1"]));
    assert_eq!(judged(&many, &trust, "www.host.example").await, Ok(()));
    assert_eq!(judged(&many, &trust, "127.0.0.1").await, Ok(()));
    // The name with the dot of an absolute one is the same name.
    assert_eq!(judged(&many, &trust, "host.example.").await, Ok(()));
}

#[tokio::test]
async fn certificates_out_of_time_are_refused_with_their_date() {
    let root = Authority::root("Root");
    let trust = trusting(&root);
    let mut old = params(&[HOST]);
    old.not_after = date_time_ymd(2021, 3, 4);
    let since = "Thu, 04 Mar 2021 00:00:00 GMT".to_owned();
    assert_eq!(
        problem(&root.issue(&old), &trust, HOST).await,
        CertificateProblem::Expired { since: since.clone() }
    );

    let mut early = params(&[HOST]);
    early.not_before = date_time_ymd(2126, 3, 4);
    early.not_after = date_time_ymd(2127, 3, 4);
    let from = "Mon, 04 Mar 2126 00:00:00 GMT".to_owned();
    assert_eq!(
        problem(&root.issue(&early), &trust, HOST).await,
        CertificateProblem::NotYetValid { from: from.clone() }
    );

    // It ends before it begins.
    let mut never = old.clone();
    never.not_before = date_time_ymd(2022, 3, 4);
    assert_eq!(
        problem(&root.issue(&never), &trust, HOST).await,
        CertificateProblem::Expired { since: since.clone() }
    );
    (never.not_before, never.not_after) = (early.not_before, date_time_ymd(2125, 3, 4));
    assert_eq!(problem(&root.issue(&never), &trust, HOST).await, CertificateProblem::NotYetValid { from });

    let mut above = authority_of("Between");
    above.not_after = old.not_after;
    let between = root.below(above);
    let shown = between.issue(&params(&[HOST])).under(&between);
    let old = CertificateProblem::Expired { since };
    assert_eq!(problem(&shown, &trust, HOST).await, of_issuer("CN=Between", old));
}

#[tokio::test]
async fn a_certificate_of_another_host_is_refused_and_says_whose_it_is() {
    let root = Authority::root("Root");
    let trust = trusting(&root);
    for names in [&["other.example", "192.0.2.7", "2001:db8::7"][..], &["*.host.example"], &["*"], &[]] {
        let wrong = CertificateProblem::WrongHost { names: names.iter().map(|&name| name.into()).collect() };
        assert_eq!(problem(&root.issue(&params(names)), &trust, HOST).await, wrong);
    }
}

#[tokio::test]
async fn a_certificate_that_names_its_host_in_vain_says_how() {
    let root = Authority::root("Root");
    let trust = trusting(&root);
    let named = |name: &str| {
        let mut params = params(&[]);
        params.subject_alt_names = vec![rcgen::SanType::DnsName(name.try_into().unwrap())];
        params
    };
    let common = |name: &str, mut params: CertificateParams| {
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params
    };
    let other = || params(&["127.0.0.1.example"]);
    for (leaf, host, told) in [
        (named("127.0.0.1"), "127.0.0.1", "127.0.0.1 (as a host name, not as an address)"),
        (
            named("host.example."),
            "host.example",
            "host.example. (with a dot at its end, which is wrong there)",
        ),
        (
            common("127.0.0.1", params(&[])),
            "127.0.0.1",
            "127.0.0.1 (by its common name, which does not count)",
        ),
        (
            common(HOST, other()),
            HOST,
            "127.0.0.1.example, host.example (by its common name, which does not count)",
        ),
        (common(HOST, other()), "127.0.0.1", "127.0.0.1.example"),
    ] {
        assert_eq!(problem(&root.issue(&leaf), &trust, host).await.to_string(), format!("it is for {told}"));
    }
}

#[tokio::test]
async fn nobody_vouches_for_itself() {
    let root = Authority::root("Root");
    for is_authority in [false, true] {
        let key = KeyPair::generate().unwrap();
        let mut itself = if is_authority { authority_of("Itself") } else { params(&[HOST]) };
        itself.subject_alt_names = params(&[HOST]).subject_alt_names;
        let certificate = itself.self_signed(&key).unwrap().der().clone();
        let shown = Shown::new(vec![certificate], signer(&key));
        assert_eq!(problem(&shown, &trusting(&root), HOST).await, CertificateProblem::SelfSigned);
    }
}

#[tokio::test]
async fn an_unknown_issuer_is_named() {
    let (root, stranger) = (Authority::root("Root"), Authority::root("Stranger"));
    let unknown = |name: &str| CertificateProblem::UnknownIssuer { issuer: format!("CN={name}") };
    let trust = trusting(&root);
    let mut leaf = params(&[HOST]);
    leaf.distinguished_name.push(rcgen::DnType::CommonName, HOST);
    assert_eq!(problem(&stranger.issue(&leaf), &trust, HOST).await, unknown("Stranger"));
    assert_eq!(problem(&stranger.issue(&leaf).under(&stranger), &trust, HOST).await, unknown("Stranger"));
    // The one between is known to nobody unless it is shown.
    let between = root.below(authority_of("Between"));
    assert_eq!(problem(&between.issue(&leaf), &trust, HOST).await, unknown("Between"));
    // The name of a trusted one without its key is worth nothing.
    let impostor = Authority::root("Root");
    let named = CertificateProblem::OtherIssuer { issuer: "CN=Root".into() };
    assert_eq!(problem(&impostor.issue(&leaf), &trust, HOST).await, named);
    assert_eq!(problem(&impostor.issue(&leaf).under(&impostor), &trust, HOST).await, named);
    // A signature that was tampered with is no other's.
    let mut shown = between.issue(&leaf).under(&between);
    let mut tampered = shown.chain[0].to_vec();
    *tampered.last_mut().unwrap() ^= 1;
    shown.chain[0] = tampered.into();
    assert!(matches!(problem(&shown, &trust, HOST).await, CertificateProblem::Malformed(_)));
    assert_eq!(problem(&root.issue(&leaf), &nobody(), HOST).await, unknown("Root"));
}

/// An RSA key of so many bits that nobody has.
struct Rsa(Vec<u8>);

impl Rsa {
    fn of(bits: usize) -> Rsa {
        let mut modulus = vec![0xa5; bits / 8 + 1];
        modulus[0] = 0;
        Rsa(tlv(0x30, &[tlv(2, &modulus), tlv(2, &[1, 0, 1])].concat()))
    }
}

impl PublicKeyData for Rsa {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_RSA_SHA256
    }
}

impl rcgen::SigningKey for Rsa {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(vec![0x5a; 256])
    }
}

/// Signs with noise: the client must not come so far as to see it.
#[derive(Debug)]
struct Noise(SignatureScheme);

impl SigningKey for Noise {
    fn choose_scheme(&self, _: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(Noise(self.0)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.0 {
            SignatureScheme::RSA_PSS_SHA256 => SignatureAlgorithm::RSA,
            _ => SignatureAlgorithm::ECDSA,
        }
    }
}

impl Signer for Noise {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        Ok(vec![0x5a; 128])
    }

    fn scheme(&self) -> SignatureScheme {
        self.0
    }
}

#[tokio::test]
async fn weak_keys_are_refused() {
    let root = Authority::root("Root");
    let shown = |key: &Rsa| {
        let certificate = root.certify(&params(&[HOST]), key);
        Shown::new(vec![certificate], Arc::new(Noise(SignatureScheme::RSA_PSS_SHA256)))
    };
    for bits in [512, 1024, 2040] {
        let weak = CertificateProblem::WeakKey(format!("RSA with {bits} bits"));
        assert_eq!(problem(&shown(&Rsa::of(bits)), &trusting(&root), HOST).await, weak);
    }
    // Strong enough, but the origin does not have it.
    let found = problem(&shown(&Rsa::of(2048)), &trusting(&root), HOST).await;
    assert_eq!(found, CertificateProblem::Malformed("the origin does not have the key to it".into()));

    // One above with a weak key: whatever it has signed is worth nothing.
    let weak_above = root.certify(&authority_of("Weak"), &Rsa::of(1024));
    let issuer = Issuer::new(authority_of("Weak"), Rsa::of(1024));
    let key = KeyPair::generate().unwrap();
    let below = params(&[HOST]).signed_by(&key, &issuer).unwrap().der().clone();
    let chain = Shown::new(vec![below, weak_above], signer(&key));
    let found = problem(&chain, &trusting(&root), HOST).await;
    assert_eq!(found, CertificateProblem::WeakKey("RSA with 1024 bits".into()));
}

#[tokio::test]
async fn forgeable_signatures_are_refused() {
    let (params_above, key_above) = (authority_of("Root"), Rsa::of(2048));
    let root = params_above.self_signed(&key_above).unwrap().pem();
    let issuer = Issuer::new(params_above, key_above);
    let key = KeyPair::generate().unwrap();
    let good = params(&[HOST]).signed_by(&key, &issuer).unwrap().der().to_vec();
    // sha256WithRSAEncryption, whose last number makes it another's.
    let oid = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
    for (number, name) in [(2, "RSA with MD2"), (4, "RSA with MD5"), (5, "RSA with SHA-1")] {
        let mut certificate = good.clone();
        for at in 0..good.len() - oid.len() {
            if good[at..].starts_with(&oid) {
                certificate[at + 8] = number;
            }
        }
        assert_ne!(certificate, good);
        let shown = Shown::new(vec![certificate.into()], signer(&key));
        let found = problem(&shown, &trust(std::slice::from_ref(&root), &[]), HOST).await;
        assert_eq!(found, CertificateProblem::WeakSignature(name.into()));
    }
}

#[tokio::test]
async fn certificates_for_other_purposes_are_refused() {
    let root = Authority::root("Root");
    let mut mail = params(&[HOST]);
    mail.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::EmailProtection, ExtendedKeyUsagePurpose::ClientAuth];
    let found = problem(&root.issue(&mail), &trusting(&root), HOST).await;
    assert_eq!(found, CertificateProblem::NotForServers);
    mail.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    assert_eq!(judged(&root.issue(&mail), &trusting(&root), HOST).await, Ok(()));
}

#[tokio::test]
async fn what_is_no_certificate_for_a_host_is_refused() {
    let root = Authority::root("Root");
    let trust = trusting(&root);
    let good = root.issue(&params(&[HOST]));
    let cut = good.chain[0][..100].to_vec();
    let malformed = |found| matches!(found, CertificateProblem::Malformed(_));
    for junk in [b"junk".to_vec(), cut, Vec::new()] {
        let shown = Shown::new(vec![junk.into()], good.key.clone());
        assert!(malformed(problem(&shown, &trust, HOST).await));
    }
    // An authority's own certificate, and one whose issuer may vouch for others only.
    let key = KeyPair::generate().unwrap();
    let mut authority = authority_of("Between");
    authority.subject_alt_names = params(&[HOST]).subject_alt_names;
    let shown = Shown::new(vec![root.certify(&authority, &key)], signer(&key));
    assert!(malformed(problem(&shown, &trust, HOST).await));
    let mut bound = authority_of("Bound");
    bound.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("other.example".into())],
        excluded_subtrees: Vec::new(),
    });
    let bound = root.below(bound);
    let shown = bound.issue(&params(&[HOST])).under(&bound);
    let why = "its issuer may not vouch for this host";
    assert_eq!(problem(&shown, &trust, HOST).await, CertificateProblem::Misused(why));
    // A server's certificate that has signed another.
    let server = root.below(params(&["server.example"]));
    let shown = server.issue(&params(&[HOST])).under(&server);
    let why = "a certificate that is no issuer's stands above it in its chain";
    assert_eq!(problem(&shown, &trust, HOST).await, CertificateProblem::Misused(why));
}

/// An authority that stands above others, as these say.
fn root_of(change: impl FnOnce(&mut CertificateParams)) -> Authority {
    let (mut params, key) = (authority_of("Root"), KeyPair::generate().unwrap());
    change(&mut params);
    let certificate = params.self_signed(&key).unwrap();
    Authority { certificate, issuer: Issuer::new(params, key) }
}

#[tokio::test]
async fn keys_are_used_for_nothing_that_their_certificates_do_not_say() {
    use KeyUsagePurpose::*;
    let root = Authority::root("Root");
    let trust = trusting(&root);
    for (usages, good) in [
        (&[DigitalSignature][..], true),
        (&[DigitalSignature, KeyCertSign], true),
        (&[KeyCertSign], false),
        (&[CrlSign], false),
        (&[DataEncipherment], false),
        (&[KeyEncipherment], false),
    ] {
        let mut leaf = params(&[HOST]);
        leaf.key_usages = usages.to_vec();
        let shown = root.issue(&leaf);
        match good {
            true => assert_eq!(judged(&shown, &trust, HOST).await, Ok(()), "{usages:?}"),
            false => {
                let found = problem(&shown, &trust, HOST).await;
                assert_eq!(found, CertificateProblem::Misused("its key may not sign handshakes"));
            }
        }
    }
    for (usages, good) in [(&[KeyCertSign][..], true), (&[DigitalSignature, CrlSign], false)] {
        let mut between = authority_of("Between");
        between.key_usages = usages.to_vec();
        let between = root.below(between);
        let shown = between.issue(&params(&[HOST])).under(&between);
        match good {
            true => assert_eq!(judged(&shown, &trust, HOST).await, Ok(()), "{usages:?}"),
            false => {
                let what = "an issuer in its chain has a key that may not sign certificates";
                assert_eq!(problem(&shown, &trust, HOST).await, CertificateProblem::Misused(what));
            }
        }
    }
}

#[tokio::test]
async fn roots_are_held_to_what_they_say_of_themselves() {
    let judge = async |root: &Authority| problem(&root.issue(&params(&[HOST])), &trusting(root), HOST).await;
    let misused = CertificateProblem::Misused;
    let old = root_of(|params| params.not_after = date_time_ymd(2021, 3, 4));
    let since = "Thu, 04 Mar 2021 00:00:00 GMT".into();
    assert_eq!(judge(&old).await, of_issuer("CN=Root", CertificateProblem::Expired { since }));
    let early = root_of(|params| params.not_before = date_time_ymd(2126, 3, 4));
    let from = "Mon, 04 Mar 2126 00:00:00 GMT".into();
    assert_eq!(judge(&early).await, of_issuer("CN=Root", CertificateProblem::NotYetValid { from }));
    let mute = root_of(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]);
    assert_eq!(judge(&mute).await, misused("its root has a key that may not sign certificates"));
    for no_issuer in [rcgen::IsCa::ExplicitNoCa, rcgen::IsCa::NoCa] {
        let common = root_of(|params| params.is_ca = no_issuer);
        assert_eq!(judge(&common).await, misused("its root is no issuer of certificates"));
    }
    let of_people = root_of(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    assert_eq!(judge(&of_people).await, CertificateProblem::NotForServers);

    let alone = root_of(|params| params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0)));
    assert_eq!(judged(&alone.issue(&params(&[HOST])), &trusting(&alone), HOST).await, Ok(()));
    let between = alone.below(authority_of("Between"));
    let shown = between.issue(&params(&[HOST])).under(&between);
    let found = problem(&shown, &trusting(&alone), HOST).await;
    assert_eq!(found, misused("more issuers stand below its root than that allows"));

    // A renewal with the same name and key stands in for an old one.
    let renewed = old.issuer_again();
    let both = trust(&[old.certificate.pem(), renewed.certificate.pem()], &[]);
    assert_eq!(judged(&old.issue(&params(&[HOST])), &both, HOST).await, Ok(()));
}

#[tokio::test]
async fn a_server_whose_own_certificate_is_trusted_needs_nobody_above_it() {
    for is_issuer in [true, false] {
        let key = KeyPair::generate().unwrap();
        let mut itself = if is_issuer { authority_of("Itself") } else { params(&[HOST]) };
        itself.subject_alt_names = params(&[HOST]).subject_alt_names;
        let shown = |params: &CertificateParams| {
            let certificate = params.self_signed(&key).unwrap();
            let trust = trust(&[certificate.pem()], &[]);
            (Shown::new(vec![certificate.der().clone()], signer(&key)), trust)
        };
        let (good, trust) = shown(&itself);
        assert_eq!(judged(&good, &trust, HOST).await, Ok(()), "{is_issuer}");
        let found = problem(&good, &trust, "other.example").await;
        assert_eq!(found, CertificateProblem::WrongHost { names: vec![HOST.into()] });
        itself.not_after = date_time_ymd(2021, 3, 4);
        let (old, trust) = shown(&itself);
        let since = "Thu, 04 Mar 2021 00:00:00 GMT".into();
        assert_eq!(problem(&old, &trust, HOST).await, CertificateProblem::Expired { since });
    }
}

#[tokio::test]
async fn no_certificate_is_for_all_names_of_a_registry() {
    let root = Authority::root("Root");
    let trust = trusting(&root);
    for (name, host) in [("*.co.uk", "wildps.co.uk"), ("*.com", "site.com"), ("*.intranet", "host.intranet")]
    {
        let found = problem(&root.issue(&params(&[name])), &trust, host).await;
        assert_eq!(found, CertificateProblem::WrongHost { names: vec![name.into()] });
        assert_eq!(judged(&root.issue(&params(&[name, host])), &trust, host).await, Ok(()), "{host}");
    }
    // Whose owner gives out names below it answers for them all.
    let shown = root.issue(&params(&["*.github.io"]));
    assert_eq!(judged(&shown, &trust, "site.github.io").await, Ok(()));
}

/// The URL at which this is served.
async fn served(bytes: &[u8]) -> (Origin, String) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len());
    let origin = Origin::answering([head.as_bytes(), bytes].concat()).await;
    let url = format!("http://127.0.0.1:{}/issuer", origin.port);
    (origin, url)
}

#[tokio::test]
async fn issuers_that_an_origin_leaves_out_are_fetched_and_prove_nothing_by_that() {
    let root = Authority::root("Root");
    let trust = trusting(&root);
    let upper = root.below(authority_of("Upper"));
    let (_upper_at, url) = served(upper.certificate.pem().as_bytes()).await;
    let lower = upper.below(params_naming_issuer_at(authority_of("Lower"), &url));
    let (lower_at, url) = served(lower.certificate.der()).await;
    let leaf = lower.issue(&params_naming_issuer_at(params(&[HOST]), &url));
    assert_eq!(judged(&leaf, &trust, HOST).await, Ok(()));
    let wrong = CertificateProblem::WrongHost { names: vec![HOST.into()] };
    assert_eq!(problem(&leaf, &trust, "other.example").await, wrong);
    assert_eq!(lower_at.connections(), 2, "each client asks once, and for no other's certificate");

    let stranger = Authority::root("Stranger").below(authority_of("Upper"));
    let (there, url) = served(stranger.certificate.der()).await;
    let leaf = upper.issue(&params_naming_issuer_at(params(&[HOST]), &url));
    let unknown = CertificateProblem::UnknownIssuer { issuer: "CN=Stranger".into() };
    assert_eq!(problem(&leaf, &trust, HOST).await, unknown);
    assert_eq!(there.connections(), 2);
}

#[tokio::test]
async fn what_only_a_browser_may_know_how_to_verify_is_left_to_it() {
    let root = Authority::root("Root");
    let trust = trusting(&root);
    let left = async |shown: &Shown| {
        let error = judged(shown, &trust, HOST).await.unwrap_err();
        // What the remote learns from: the host's connections go through from then on.
        assert_eq!(error.proxy_status(), "tls_protocol_error", "{error}");
        let Error::Certificate { problem, .. } = error else { panic!("{error}") };
        use CertificateProblem::{IssuerMissing, Unverifiable};
        assert!(matches!(problem, Unverifiable(_) | IssuerMissing { .. }), "{problem}");
    };
    // Its issuer is not shown, and is not where the certificate says that it can be had.
    let between = root.below(authority_of("Between"));
    let leaf = params_naming_issuer_at(params(&[HOST]), "http://127.0.0.1:1/between.der");
    left(&between.issue(&leaf)).await;
    assert_eq!(judged(&between.issue(&leaf).under(&between), &trust, HOST).await, Ok(()));

    // A signature of a kind that there is nothing for here: ecdsa-with-SHA512, as keys on P-521 make.
    left(&strangely_signed(root.issue(&params(&[HOST])))).await;
}

#[tokio::test]
async fn a_chain_that_is_too_long_is_called_that() {
    let root = Authority::root("Root");
    let mut shown = root.issue(&params(&[HOST]));
    while shown.chain.iter().map(|certificate| certificate.len()).sum::<usize>() < 90_000 {
        shown.chain.push(root.certificate.der().clone());
    }
    let error = judged(&shown, &trusting(&root), HOST).await.unwrap_err();
    let told = "no TLS with host.example: its certificate chain, or another message of its handshake, is longer than the 64 kB \
                that are taken here";
    assert_eq!((error.to_string().as_str(), error.proxy_status()), (told, "tls_protocol_error"));
}
