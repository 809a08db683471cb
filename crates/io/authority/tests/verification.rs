//! What others make of the certificates: rustls with webpki, and OpenSSL where it is installed.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use farhop_authority::{Authority, AuthorityError, CaCertificate, Leaves, Subtree, Terms};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::sign::CertifiedKey;

const DAY: Duration = Duration::from_secs(86_400);

fn terms(permitted: &[&str]) -> Terms {
    let subtrees: Vec<Subtree> = permitted.iter().map(|entry| entry.parse().unwrap()).collect();
    Terms { name: "MV Aurora".into(), permitted: subtrees.into(), ..Terms::default() }
}

fn leaves(terms: &Terms) -> Leaves {
    Leaves::new(Arc::new(Authority::ephemeral(terms).unwrap())).unwrap()
}

/// What a client that trusts `root` alone says of a certificate for `host`.
fn verdict(
    root: &CaCertificate,
    certified: &CertifiedKey,
    host: &str,
    after: Duration,
) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let provider = Arc::new(default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let (leaf, rest) = certified.cert.split_first().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + after;
    let name = ServerName::try_from(host.to_owned()).unwrap();
    verifier.verify_server_cert(leaf, rest, &name, &[], UnixTime::since_unix_epoch(now)).map(|_| ())
}

#[test]
fn a_leaf_is_valid_for_its_host_alone_and_for_days_alone() {
    let leaves = leaves(&Terms::default());
    let authority = leaves.authority();
    let root = authority.certificate();
    for host in ["www.example.org", "192.0.2.1", "2001:db8::1", "xn--bcher-kva.example"] {
        let certified = leaves.for_host(host).unwrap();
        certified.keys_match().unwrap();
        verdict(root, &certified, host, Duration::ZERO).unwrap();
        verdict(root, &certified, host, 13 * DAY).unwrap();
        assert!(verdict(root, &certified, host, 15 * DAY).is_err(), "{host}");
        assert!(verdict(root, &certified, "other.example", Duration::ZERO).is_err(), "{host}");
        assert!(verdict(root, &certified, "a.www.example.org", Duration::ZERO).is_err(), "{host}");
    }
    let other = Authority::ephemeral(&Terms::default()).unwrap();
    let certified = leaves.for_host("www.example.org").unwrap();
    assert!(verdict(other.certificate(), &certified, "www.example.org", Duration::ZERO).is_err());
}

#[test]
fn leaves_share_a_key_that_is_not_the_cas() {
    let leaves = leaves(&Terms::default());
    let key = |host: &str| leaves.for_host(host).unwrap().key.public_key().unwrap().to_vec();
    assert_eq!(key("a.example"), key("b.example"));
    let ca = leaves.authority().certificate().der().to_vec();
    let leaf = key("a.example");
    assert!(!ca.windows(leaf.len()).any(|window| window == leaf), "the leaf's key in the CA's certificate");
}

#[test]
fn within_its_constraints_a_ca_vouches_and_beyond_them_it_is_not_asked() {
    for (permitted, host, other) in [
        (&["example.org"][..], "www.example.org", "example.net"),
        (&["example.org"], "example.org", "192.0.2.1"),
        (&["10.0.0.0/8"], "10.1.2.3", "example.org"),
        (&["10.0.0.0/8"], "10.1.2.3", "2001:db8::1"),
        (&["example.org", "2001:db8::/32"], "2001:db8::7", "2001:db9::7"),
    ] {
        let leaves = leaves(&terms(permitted));
        let certified = leaves.for_host(host).unwrap();
        verdict(leaves.authority().certificate(), &certified, host, Duration::ZERO).unwrap();
        let refused = leaves.for_host(other).unwrap_err();
        assert!(matches!(&refused, AuthorityError::NotPermitted(named) if named == other), "{refused}");
    }
}

#[test]
fn constraints_bind_also_a_thief_of_the_key() {
    for (permitted, host, other) in [
        (&["example.org"][..], "www.example.org", "example.net"),
        (&["example.org"], "example.org", "192.0.2.1"),
        (&["example.org"], "example.org", "2001:db8::1"),
        (&["10.0.0.0/8"], "10.1.2.3", "example.org"),
        (&["10.0.0.0/8"], "10.1.2.3", "11.1.2.3"),
        (&["10.0.0.0/8"], "10.1.2.3", "2001:db8::1"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::create(folder.path(), &terms(permitted)).unwrap();
        let root = authority.certificate();
        let parts = pem::parse_many(std::fs::read(folder.path().join("ca.key")).unwrap()).unwrap();
        let stolen = rcgen::KeyPair::try_from(parts[0].contents()).unwrap();
        let issuer = rcgen::Issuer::from_ca_cert_der(root.der(), stolen).unwrap();
        let forged = |host: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let params = rcgen::CertificateParams::new([host.to_owned()]).unwrap();
            let leaf = params.signed_by(&key, &issuer).unwrap();
            let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into();
            CertifiedKey::from_der(vec![leaf.der().clone()], key, &default_provider()).unwrap()
        };
        verdict(root, &forged(host), host, Duration::ZERO).unwrap();
        assert!(verdict(root, &forged(other), other, Duration::ZERO).is_err(), "{other} under {permitted:?}");
    }
}

#[test]
fn after_a_rotation_both_the_older_and_the_newer_certificate_verify_until_the_overlap_ends() {
    let folder = tempfile::tempdir().unwrap();
    let older = Authority::create(folder.path(), &terms(&[])).unwrap();
    Authority::rotate(folder.path(), &terms(&[]), 30 * DAY).unwrap();
    let newer = Arc::new(Authority::load(folder.path()).unwrap());
    assert_ne!(newer.certificate().subject(), older.certificate().subject());
    assert_eq!(&newer.bridge().unwrap().from, older.certificate());
    let certified = Leaves::new(Arc::clone(&newer)).unwrap().for_host("example.org").unwrap();
    for root in [older.certificate(), newer.certificate()] {
        verdict(root, &certified, "example.org", Duration::ZERO).unwrap();
    }
    openssl_verifies(folder.path(), older.certificate(), &certified, "example.org");
    openssl_verifies(folder.path(), newer.certificate(), &certified, "example.org");

    let again = Authority::rotate(folder.path(), &terms(&[]), 30 * DAY).unwrap_err().to_string();
    assert!(again.starts_with("the last rotation is carried over until 20"), "{again}");
    let last = Authority::rotate(folder.path(), &terms(&[]), Duration::ZERO).unwrap();
    assert!(last.bridge().is_none());
    let certified = Leaves::new(Arc::new(last)).unwrap().for_host("example.org").unwrap();
    assert!(verdict(newer.certificate(), &certified, "example.org", Duration::ZERO).is_err());
}

#[test]
fn openssl_agrees_also_under_constraints() {
    let folder = tempfile::tempdir().unwrap();
    for (permitted, host) in [
        (&[][..], "www.example.org"),
        (&[], "2001:db8::1"),
        (&["example.org"], "www.example.org"),
        (&["10.0.0.0/8", "example.org"], "10.9.8.7"),
    ] {
        let leaves = leaves(&terms(permitted));
        let certified = leaves.for_host(host).unwrap();
        openssl_verifies(folder.path(), leaves.authority().certificate(), &certified, host);
    }
}

fn openssl_verifies(folder: &Path, root: &CaCertificate, certified: &CertifiedKey, host: &str) {
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let as_pem = |der: &[u8]| pem::encode(&pem::Pem::new("CERTIFICATE", der));
    let chain: String = certified.cert.iter().skip(1).map(|der| as_pem(der)).collect();
    let (root, leaf) =
        (file("root.pem", root.pem().as_bytes()), file("leaf.pem", as_pem(&certified.cert[0]).as_bytes()));
    let named = if host.parse::<std::net::IpAddr>().is_ok() { "-verify_ip" } else { "-verify_hostname" };
    let mut arguments =
        vec!["verify", "-x509_strict", "-purpose", "sslserver", named, host, "-CAfile", &root];
    let rest = file("chain.pem", chain.as_bytes());
    if !chain.is_empty() {
        arguments.extend(["-untrusted", &rest]);
    }
    arguments.push(&leaf);
    match Command::new("openssl").args(&arguments).output() {
        Ok(output) => assert!(output.status.success(), "{host}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("passed over: openssl does not run ({error})"),
    }
}
