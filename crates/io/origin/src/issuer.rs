//! Fetches the certificate of an issuer that an origin has left out of its chain, from where the one below it says that it is
//! (RFC 5280 §4.2.2.1), as browsers do. What comes is judged with the rest of the chain, so that whoever answers proves nothing.

use crate::connect::Destination;
use crate::open::{Offer, Opener};
use crate::pool::{Lent, Opened, Partition};
use crate::request::{Request, Scheme};
use crate::sending::Sending;
use crate::upload::Upload;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode, Uri};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A certificate takes one or two thousand bytes.
const LARGEST: usize = 64 << 10;
/// Somebody waits for a page meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

impl Opener {
    /// What is at `url`, in DER or PEM; `None` where nothing of the kind can be had soon.
    pub(crate) async fn issuer(&self, url: &str) -> Option<CertificateDer<'static>> {
        let bytes = timeout(PATIENCE, self.bytes_at(url)).await.ok()??;
        let pem = CertificateDer::pem_slice_iter(&bytes).next().and_then(Result::ok);
        Some(pem.unwrap_or_else(|| CertificateDer::from(bytes)))
    }

    async fn bytes_at(&self, url: &str) -> Option<Vec<u8>> {
        let uri: Uri = url.parse().ok()?;
        let destination = Destination::of_url(uri.scheme_str()?, uri.authority()?.as_str()).ok()?;
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let Ok(Opened::Http1(connection)) = self.open_once(Scheme::Http, &destination, &Offer::HTTP1).await
        else {
            return None;
        };
        let request = Request {
            partition: Partition::new(""),
            scheme: Scheme::Http,
            method: Method::GET,
            destination,
            path,
            fields: HeaderMap::new(),
            upload: Upload::empty(),
            patience: Some(PATIENCE),
        };
        let mut sending = Sending::new(request, Arc::new(|_, _, _| ()), self.settings()).ok()?;
        let mut response = sending.over_http1(Lent::alone(connection), false).await.ok()?;
        let mut bytes = Vec::new();
        while let Some(piece) = response.body.data().await.ok()? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > LARGEST {
                return None;
            }
        }
        (response.status == StatusCode::OK).then_some(bytes)
    }
}
