//! Certificates with several flaws at once: whatever comes together, the page names one of them that holds, and only what a browser
//! alone can find out is left to browsers.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use support::judging::*;
use support::tls::*;

/// Who vouches for it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Voucher {
    Trusted,
    Itself,
    /// Itself, by the name of one that is trusted: with a key of the same kind, of another, and signed in a way that is not known here.
    ItselfByItsName,
    ItselfByItsNameWithAnotherKind,
    ItselfByItsNameStrangely,
    Stranger,
    /// A stranger of a trusted one's name, whose certificate is shown, or is not and whose key is of another kind.
    Namesake,
    NamesakeOfAnotherKind,
    /// Not shown, and not to be had.
    Missing,
    /// Trusted, and signs in a way that is not known here.
    Strange,
}

const VOUCHERS: [Voucher; 10] = [
    Voucher::Trusted,
    Voucher::Itself,
    Voucher::ItselfByItsName,
    Voucher::ItselfByItsNameWithAnotherKind,
    Voucher::ItselfByItsNameStrangely,
    Voucher::Stranger,
    Voucher::Namesake,
    Voucher::NamesakeOfAnotherKind,
    Voucher::Missing,
    Voucher::Strange,
];

/// What else can be wrong, and what has to be said of it if nothing that is asked first is.
const TIMES: [Option<&str>; 3] = [None, Some("it expired on"), Some("it is not valid before")];
const FOR_MAIL: &str = "it is not for web servers";
const ELSEWHERE: &str = "it is for elsewhere.example";

impl Voucher {
    /// What has to be said of it, or that it is left to browsers.
    fn told(self) -> Result<Option<&'static str>, &'static str> {
        match self {
            Voucher::Trusted => Ok(None),
            Voucher::Itself
            | Voucher::ItselfByItsName
            | Voucher::ItselfByItsNameWithAnotherKind
            | Voucher::ItselfByItsNameStrangely => Ok(Some("it is self-signed")),
            Voucher::Stranger => Ok(Some("its issuer is not one that is trusted here: CN=Stranger")),
            Voucher::Namesake | Voucher::NamesakeOfAnotherKind => {
                Ok(Some("its issuer is not one that is trusted here: CN=Root is only the name"))
            }
            Voucher::Missing => Err("the certificate of its issuer is missing: CN=Between"),
            Voucher::Strange => Err("it can't be verified here"),
        }
    }

    fn show(self, leaf: &CertificateParams, root: &Authority) -> Shown {
        let mut named = leaf.clone();
        named.distinguished_name.push(DnType::CommonName, "Root");
        let itself = |params: &CertificateParams, key: KeyPair| {
            Shown::new(vec![params.self_signed(&key).unwrap().der().clone()], signer(&key))
        };
        let ed25519 = || KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        match self {
            Voucher::Trusted => root.issue(leaf),
            Voucher::Itself => {
                let mut itself_named = leaf.clone();
                itself_named.distinguished_name.push(DnType::CommonName, "Itself");
                itself(&itself_named, KeyPair::generate().unwrap())
            }
            Voucher::ItselfByItsName => itself(&named, KeyPair::generate().unwrap()),
            Voucher::ItselfByItsNameWithAnotherKind => itself(&named, ed25519()),
            Voucher::ItselfByItsNameStrangely => {
                strangely_signed(itself(&named, KeyPair::generate().unwrap()))
            }
            Voucher::Stranger => Authority::root("Stranger").issue(leaf),
            Voucher::Namesake => {
                let namesake = Authority::root("Root");
                namesake.issue(leaf).under(&namesake)
            }
            Voucher::NamesakeOfAnotherKind => Authority::root_with("Root", ed25519()).issue(leaf),
            Voucher::Missing => {
                let leaf = params_naming_issuer_at(leaf.clone(), "http://127.0.0.1:1/between.der");
                root.below(authority_of("Between")).issue(&leaf)
            }
            Voucher::Strange => strangely_signed(root.issue(leaf)),
        }
    }
}

#[tokio::test]
async fn one_of_several_flaws_is_named_and_left_to_browsers_is_only_what_stands_alone() {
    let root = Authority::root("Root");
    let trust = trusting(&root);
    for voucher in VOUCHERS {
        for time in TIMES {
            for for_mail in [false, true] {
                for host in [HOST, "elsewhere.example"] {
                    let mut leaf = params(&[host]);
                    match time {
                        Some("it expired on") => leaf.not_after = date_time_ymd(2021, 3, 4),
                        Some(_) => leaf.not_before = date_time_ymd(2126, 3, 4),
                        None => {}
                    }
                    if for_mail {
                        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
                    }
                    let case = format!("{voucher:?}, {time:?}, for mail: {for_mail}, for {host}");
                    let use_told = for_mail.then_some(FOR_MAIL);
                    let host_told = (host != HOST).then_some(ELSEWHERE);
                    let told = time.or(use_told).or(voucher.told().ok().flatten()).or(host_told);
                    let found = judged(&voucher.show(&leaf, &root), &trust, HOST).await;
                    match (told, voucher.told(), found) {
                        (None, Ok(_), found) => assert_eq!(found, Ok(()), "{case}"),
                        (Some(told), _, Err(error)) => {
                            assert!(error.to_string().contains(told), "{case}: {error}");
                            assert_eq!(error.proxy_status(), "tls_certificate_error", "{case}: {error}");
                        }
                        (None, Err(left), Err(error)) => {
                            assert!(error.to_string().contains(left), "{case}: {error}");
                            assert_eq!(error.proxy_status(), "tls_protocol_error", "{case}: {error}");
                        }
                        (.., Ok(())) => panic!("{case}: it passes"),
                    }
                }
            }
        }
    }
}
