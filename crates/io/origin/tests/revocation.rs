//! Certificates that are revoked: by a configured list, by a stapled word of the issuer, by the want of one.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_origin::CertificateProblem;
use rcgen::{
    CertificateParams, CertificateRevocationListParams, CustomExtension, ExtendedKeyUsagePurpose,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, SigningKey as _, date_time_ymd,
};
use support::judging::*;
use support::tls::*;

#[tokio::test]
async fn a_configured_list_revokes() {
    let root = Authority::root("Root");
    let list = |serials: &[u64], next| {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 2),
            next_update: next,
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&root.issuer).unwrap().pem().unwrap()
    };
    let numbered = |serial: u64| {
        let mut params = params(&[HOST]);
        params.serial_number = Some(SerialNumber::from(serial));
        root.issue(&params)
    };
    let later = date_time_ymd(2124, 1, 2);
    let trust = trust(&[root.certificate.pem()], &[list(&[7, 9], later)]);
    assert_eq!(problem(&numbered(7), &trust, HOST).await, CertificateProblem::Revoked);
    assert_eq!(judged(&numbered(8), &trust, HOST).await, Ok(()));
    // What an old list revoked stays revoked.
    let old = support::tls::trust(&[root.certificate.pem()], &[list(&[9], date_time_ymd(2024, 2, 2))]);
    assert_eq!(problem(&numbered(9), &old, HOST).await, CertificateProblem::Revoked);
    // Of whom, where it is one above.
    let mut above = authority_of("Between");
    above.serial_number = Some(SerialNumber::from(9));
    let between = root.below(above);
    let shown = between.issue(&params(&[HOST])).under(&between);
    assert_eq!(problem(&shown, &trust, HOST).await, of_issuer("CN=Between", CertificateProblem::Revoked));
    // Of what other authorities have issued the list says nothing.
    let other = Authority::root("Other");
    let both = support::tls::trust(&[root.certificate.pem(), other.certificate.pem()], &[list(&[7], later)]);
    let mut seven = params(&[HOST]);
    seven.serial_number = Some(SerialNumber::from(7));
    assert_eq!(judged(&other.issue(&seven), &both, HOST).await, Ok(()));
}

/// An OCSP response about a certificate with serial number 7.
struct Stapled<'a> {
    of: &'a Authority,
    serial: u8,
    /// Without its header: good is `[0x80, 0]`.
    status: Vec<u8>,
    times: (&'a str, Option<&'a str>),
    signer: &'a KeyPair,
    responder: Option<Vec<u8>>,
}

impl Stapled<'_> {
    fn der(&self) -> Vec<u8> {
        let digest = |bytes: &[u8]| {
            ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec()
        };
        let time = |text: &str| tlv(0x18, text.as_bytes());
        let sha1 = tlv(0x30, &[&tlv(6, &[0x2b, 14, 3, 2, 26])[..], &[5, 0]].concat());
        let (_, above) = x509_parser::parse_x509_certificate(self.of.certificate.der()).unwrap();
        let name = digest(above.subject().as_raw());
        let key = digest(&above.public_key().subject_public_key.data);
        let id = tlv(0x30, &[sha1, tlv(4, &name), tlv(4, &key), tlv(2, &[self.serial])].concat());
        let next = self.times.1.map(|text| tlv(0xa0, &time(text))).unwrap_or_default();
        let answer = tlv(0x30, &[id, self.status.clone(), time(self.times.0), next].concat());
        let data = [tlv(0xa2, &tlv(4, &key)), time("20240101000000Z"), tlv(0x30, &answer)].concat();
        let data = tlv(0x30, &data);
        let algorithm = tlv(0x30, &tlv(6, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));
        let signature = tlv(3, &[&[0][..], &self.signer.sign(&data).unwrap()].concat());
        let responder = self.responder.as_ref().map(|der| tlv(0xa0, &tlv(0x30, der))).unwrap_or_default();
        let basic = tlv(0x30, &[data, algorithm, signature, responder].concat());
        let kind = tlv(6, &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1]);
        let bytes = tlv(0xa0, &tlv(0x30, &[kind, tlv(4, &basic)].concat()));
        tlv(0x30, &[tlv(10, &[0]), bytes].concat())
    }
}

#[tokio::test]
async fn a_stapled_word_of_the_issuer_revokes_and_nobody_elses_does() {
    let (root, other) = (Authority::root("Root"), Authority::root("Other"));
    let between = root.below(authority_of("Between"));
    let trust = trusting(&root);
    let revoked = || tlv(0xa1, &tlv(0x18, b"20240101000000Z"));
    let current = ("20240101000000Z", Some("21240101000000Z"));
    let seven = |staple: Vec<u8>, by: &Authority| {
        let mut params = params(&[HOST]);
        params.serial_number = Some(SerialNumber::from(7));
        Shown { stapled: Some(staple), ..by.issue(&params) }
    };
    let word = |of| Stapled {
        of,
        serial: 7,
        status: revoked(),
        times: current,
        signer: of.issuer.key(),
        responder: None,
    };
    // By the root itself, by one between, without an end to it, and long ago: what was revoked stays revoked.
    let forever = Stapled { times: ("20240101000000Z", None), ..word(&root) };
    let old = Stapled { times: ("20230101000000Z", Some("20240101000000Z")), ..word(&root) };
    let by_one_between = seven(word(&between).der(), &between).under(&between);
    let by_root = [word(&root), forever, old].map(|word| seven(word.der(), &root));
    for shown in by_root.into_iter().chain([by_one_between]) {
        assert_eq!(problem(&shown, &trust, HOST).await, CertificateProblem::Revoked);
    }
    // By one whom the issuer lets speak for it, and by others below it.
    let responder = KeyPair::generate().unwrap();
    let delegated = |usages: &[ExtendedKeyUsagePurpose], by: &Authority| {
        let mut params: CertificateParams = params(&[]);
        params.extended_key_usages = usages.to_vec();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let certificate = Some(by.certify(&params, &responder).to_vec());
        Stapled { signer: &responder, responder: certificate, ..word(&root) }.der()
    };
    let may = [ExtendedKeyUsagePurpose::OcspSigning];
    let found = problem(&seven(delegated(&may, &root), &root), &trust, HOST).await;
    assert_eq!(found, CertificateProblem::Revoked);

    let may_not = [ExtendedKeyUsagePurpose::ServerAuth];
    let mut forged = word(&root).der();
    let last = forged.len() - 1;
    forged[last] ^= 1;
    let harmless = [
        ("no usage", delegated(&[], &root)),
        ("another usage", delegated(&may_not, &root)),
        ("another's responder", delegated(&may, &other)),
        ("another's word", Stapled { signer: other.issuer.key(), ..word(&root) }.der()),
        ("of another's certificate", Stapled { signer: root.issuer.key(), ..word(&other) }.der()),
        ("good", Stapled { status: vec![0x80, 0], ..word(&root) }.der()),
        ("unknown", Stapled { status: vec![0x82, 0], ..word(&root) }.der()),
        ("another serial", Stapled { serial: 8, ..word(&root) }.der()),
        ("of the future", Stapled { times: ("21230101000000Z", None), ..word(&root) }.der()),
        ("forged", forged),
        ("try later", tlv(0x30, &tlv(10, &[3]))),
        ("junk", b"junk".to_vec()),
    ];
    for (what, staple) in harmless {
        assert_eq!(judged(&seven(staple, &root), &trust, HOST).await, Ok(()), "{what}");
    }
}

#[tokio::test]
async fn who_must_staple_is_refused_without_a_current_good_word() {
    let (root, other) = (Authority::root("Root"), Authority::root("Other"));
    let trust = trusting(&root);
    let shown = |features: &[u8], stapled: Option<Vec<u8>>| {
        let mut params = params(&[HOST]);
        params.serial_number = Some(SerialNumber::from(7));
        // RFC 7633 §6: a sequence of the numbers of TLS extensions.
        let features = tlv(0x30, &features.iter().flat_map(|&number| [2, 1, number]).collect::<Vec<_>>());
        let feature = CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 24], features);
        params.custom_extensions = vec![feature];
        Shown { stapled, ..root.issue(&params) }
    };
    let word = |status: &[u8], times, signer: &Authority| {
        let (status, signer) = (status.to_vec(), signer.issuer.key());
        Some(Stapled { of: &root, serial: 7, status, times, signer, responder: None }.der())
    };
    let (good, unknown) = (&[0x80, 0][..], &[0x82, 0][..]);
    let current = ("20240101000000Z", Some("21240101000000Z"));
    let (past, endless) = (("20230101000000Z", Some("20240101000000Z")), ("20240101000000Z", None));
    assert_eq!(judged(&shown(&[5], word(good, current, &root)), &trust, HOST).await, Ok(()));
    let to_come = ("21230101000000Z", None);
    let eight = Stapled {
        of: &root,
        serial: 8,
        status: good.to_vec(),
        times: current,
        signer: root.issuer.key(),
        responder: None,
    };
    for (stapled, told) in [
        (None, "the origin shows none"),
        (word(good, past, &root), "the one that the origin shows is out of date"),
        // Without an end.
        (word(good, endless, &root), "the one that the origin shows is out of date"),
        (word(good, to_come, &root), "the one that the origin shows is of a time to come"),
        (word(unknown, current, &root), "the one that the origin shows says that it is not known"),
        (Some(eight.der()), "the one that the origin shows is about another certificate"),
        (word(good, current, &other), "the one that the origin shows is not its issuer's"),
        (Some(b"junk".to_vec()), "the one that the origin shows can't be read"),
    ] {
        let found = problem(&shown(&[17, 5], stapled), &trust, HOST).await;
        assert_eq!(
            found.to_string(),
            format!(
                "it may only be shown with a current word of its issuer that it is good (must-staple), and {told}"
            )
        );
    }
    assert_eq!(judged(&shown(&[17], None), &trust, HOST).await, Ok(()), "another feature");
}
