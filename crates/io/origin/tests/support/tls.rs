//! Origins within TLS, and authorities that issue whatever a test wants. Only for the tests beside it.

use super::*;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::collections::HashMap;
use std::path::PathBuf;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The host of all origins within TLS.
pub const HOST: &str = "host.example";
/// What else they are reached by.
const HOSTS: [&str; 8] = [
    HOST,
    "host.example.",
    "www.host.example",
    "other.example",
    "wildps.co.uk",
    "site.com",
    "host.intranet",
    "site.github.io",
];

/// An authority.
pub struct Authority {
    pub certificate: Certificate,
    pub issuer: Issuer<'static, KeyPair>,
}

/// What an authority is, by name.
pub fn authority_of(name: &str) -> CertificateParams {
    let mut params = params(&[]);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// A certificate for these names.
pub fn params(names: &[&str]) -> CertificateParams {
    let mut params =
        CertificateParams::new(names.iter().map(|&name| name.into()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
}

impl Authority {
    /// One that nobody stands above.
    pub fn root(name: &str) -> Authority {
        Authority::root_with(name, KeyPair::generate().unwrap())
    }

    /// The same with this key.
    pub fn root_with(name: &str, key: KeyPair) -> Authority {
        let params = authority_of(name);
        let certificate = params.self_signed(&key).unwrap();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// The same name and key in a certificate that counts now.
    pub fn issuer_again(&self) -> Authority {
        let params = authority_of("Root");
        let key = KeyPair::from_pem(&self.issuer.key().serialize_pem()).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// One below this one.
    pub fn below(&self, params: CertificateParams) -> Authority {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate for a key.
    pub fn certify(&self, params: &CertificateParams, key: &impl PublicKeyData) -> CertificateDer<'static> {
        params.signed_by(key, &self.issuer).unwrap().der().clone()
    }

    /// Issues a certificate with a key of its own.
    pub fn issue(&self, params: &CertificateParams) -> Shown {
        let key = KeyPair::generate().unwrap();
        Shown::new(vec![self.certify(params, &key)], signer(&key))
    }
}

/// What an origin shows to prove who it is.
pub struct Shown {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: Arc<dyn SigningKey>,
    pub stapled: Option<Vec<u8>>,
}

impl Shown {
    pub fn new(chain: Vec<CertificateDer<'static>>, key: Arc<dyn SigningKey>) -> Shown {
        Shown { chain, key, stapled: None }
    }

    /// With this certificate above it.
    pub fn under(mut self, authority: &Authority) -> Shown {
        self.chain.push(authority.certificate.der().clone());
        self
    }
}

pub fn signer(key: &KeyPair) -> Arc<dyn SigningKey> {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    rustls::crypto::ring::sign::any_supported_type(&key).unwrap()
}

/// Files that hold `items` in PEM.
pub fn files(items: &[String]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |number: usize| folder.path().join(number.to_string());
    items.iter().enumerate().for_each(|(number, item)| std::fs::write(path(number), item).unwrap());
    let paths = (0..items.len()).map(path).collect();
    (folder, paths)
}

pub fn trusting(authority: &Authority) -> Trust {
    trust(&[authority.certificate.pem()], &[])
}

pub fn trust(roots: &[String], crls: &[String]) -> Trust {
    let ((_roots, roots), (_crls, crls)) = (files(roots), files(crls));
    Trust::only(&roots, &crls).unwrap()
}

/// A client that finds all origins on this machine and trusts whom it is told to.
pub fn client_trusting(trust: Trust, settings: Settings) -> Client {
    let here = |name: &str| (name.to_owned(), vec!["127.0.0.1".parse().unwrap()]);
    let names: HashMap<_, _> = HOSTS.into_iter().map(here).collect();
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    Client::new(settings, guard, Arc::new(FixedResolver { names }), trust)
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

pub const BOTH_VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

/// How an origin speaks TLS.
pub fn config(
    shown: &Shown,
    protocols: &[&str],
    versions: &[&'static SupportedProtocolVersion],
) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut key = CertifiedKey::new(shown.chain.clone(), shown.key.clone());
    key.ocsp.clone_from(&shown.stapled);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(key))));
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// An origin that shakes hands and then runs `serve`; connections without a handshake are only counted.
pub async fn origin_within<F, Fut>(config: ServerConfig, serve: F) -> Origin
where
    F: Fn(TlsStream<TcpStream>, usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let serve = Arc::new(serve);
    Origin::start(move |stream, number| {
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, number).await;
            }
        }
    })
    .await
}

/// A request for [`HOST`] within TLS.
pub fn secure(origin: &Origin, method: Method, path: &'static str, upload: Upload) -> Request {
    let mut request = origin.request(method, path, upload);
    request.scheme = Scheme::Https;
    request.destination = Destination::new(HOST, origin.port);
    request
}

pub fn secure_get(origin: &Origin, path: &'static str) -> Request {
    secure(origin, Method::GET, path, Upload::empty())
}
