//! What an origin's certificate is found to be, over both versions of TLS.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use farhop_origin::{CertificateProblem, Destination, Error, Settings, Stage, Trust};
use http::StatusCode;
use rcgen::{CertificateParams, CustomExtension};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::tls::*;
use super::*;

/// Fetches from an origin that shows `shown`, over this version of TLS; the error, if there is one. Fails if the origin
/// gets a byte although there is an error.
pub async fn judged(shown: &Shown, trust: &Trust, host: &str) -> Result<(), Error> {
    let mut results = Vec::new();
    for version in BOTH_VERSIONS {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = seen.clone();
        let origin = origin_within(config(shown, &["http/1.1"], &[version]), move |mut stream, _| {
            let seen = count.clone();
            async move {
                let mut buffer = [0; 4096];
                while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
                    seen.fetch_add(bytes, Ordering::SeqCst);
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
                }
            }
        })
        .await;
        let client = client_trusting(trust.clone(), Settings::default());
        let mut request = secure_get(&origin, "/secret");
        request.destination = Destination::new(host, origin.port);
        let result = fetch(&client, request).await.map(|response| assert_eq!(response.status, 204));
        drop(client);
        assert_eq!(seen.load(Ordering::SeqCst) > 0, result.is_ok(), "{version:?}: {result:?}");
        results.push(result);
    }
    let last = results.pop();
    assert_eq!(results.pop(), last, "both versions agree");
    last.unwrap()
}

/// What is wrong with `shown`; it must be something.
pub async fn problem(shown: &Shown, trust: &Trust, host: &str) -> CertificateProblem {
    let error = judged(shown, trust, host).await.unwrap_err();
    assert_eq!((error.stage(), error.status()), (Stage::Tls, StatusCode::BAD_GATEWAY), "{error:?}");
    assert_eq!((error.proxy_status(), error.retry_can_help()), ("tls_certificate_error", false), "{error:?}");
    let line = error.to_string();
    assert!(
        line.starts_with(&format!("the certificate of {host} is refused: ")) && !line.contains('\n'),
        "{line}"
    );
    match error {
        Error::Certificate { problem, .. } => problem,
        other => panic!("{other:?}"),
    }
}

/// DER.
pub fn tlv(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len();
    let mut bytes = vec![tag];
    match length {
        0..0x80 => bytes.push(length as u8),
        0x80..0x100 => bytes.extend([0x81, length as u8]),
        _ => bytes.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    bytes.extend(contents);
    bytes
}

/// What says where the certificate of its issuer can be had (RFC 5280 §4.2.2.1).
pub fn params_naming_issuer_at(mut params: CertificateParams, url: &str) -> CertificateParams {
    let kind = tlv(6, &[0x2b, 6, 1, 5, 5, 7, 0x30, 2]);
    let place = tlv(0x86, url.as_bytes());
    let access = tlv(0x30, &tlv(0x30, &[kind, place].concat()));
    params.custom_extensions = vec![CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], access)];
    params
}

/// The same, said to be signed as ecdsa-with-SHA512, for which there is nothing here.
pub fn strangely_signed(mut shown: Shown) -> Shown {
    let (sha256, mut bytes) = ([0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], shown.chain[0].to_vec());
    for at in 0..bytes.len() - sha256.len() {
        if bytes[at..].starts_with(&sha256) {
            bytes[at + 7] = 4;
        }
    }
    assert_ne!(shown.chain[0].as_ref(), bytes);
    shown.chain[0] = bytes.into();
    shown
}

/// The problem of one above the certificate that was shown.
pub fn of_issuer(issuer: &str, problem: CertificateProblem) -> CertificateProblem {
    CertificateProblem::OfIssuer { issuer: issuer.into(), problem: problem.into() }
}
