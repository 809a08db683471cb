//! A request to an origin, and how its head goes on the wire of either protocol. Pure.

use crate::connect::Destination;
use crate::error::Error;
use crate::hop::strip_hop_by_hop;
use crate::pool::Partition;
use crate::upload::Upload;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, TE, TRANSFER_ENCODING};
use http::uri::{PathAndQuery, Scheme as UriScheme};
use http::{Method, Uri, Version};
use std::time::Duration;

/// How an origin is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP/1.1.
    Http,
    /// HTTP/1.1 or HTTP/2 within TLS.
    Https,
}

impl Scheme {
    /// The port where nothing else is said.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    fn of_uri(self) -> UriScheme {
        match self {
            Scheme::Http => UriScheme::HTTP,
            Scheme::Https => UriScheme::HTTPS,
        }
    }
}

impl std::str::FromStr for Scheme {
    type Err = Error;

    /// `http` or `https`, in lower case.
    fn from_str(text: &str) -> Result<Scheme, Error> {
        match text {
            "http" => Ok(Scheme::Http),
            "https" => Ok(Scheme::Https),
            _ => Err(Error::InvalidRequest(format!("scheme {text} is not supported"))),
        }
    }
}

/// A request to an origin.
#[derive(Debug)]
pub struct Request {
    /// Whose connections to use.
    pub partition: Partition,
    /// Whether within TLS.
    pub scheme: Scheme,
    /// The method; CONNECT is [`crate::Client::connect`]'s.
    pub method: Method,
    /// The origin. Host is written from it.
    pub destination: Destination,
    /// Path and query; `*` for OPTIONS of the server as a whole.
    pub path: PathAndQuery,
    /// End-to-end fields. Those of the connection are taken out, those of framing are set from `upload`.
    pub fields: HeaderMap,
    /// The body.
    pub upload: Upload,
    /// The longest that the origin may be silent, where that is less than settings say.
    pub patience: Option<Duration>,
}

/// A request head that can be written for either protocol, as often as it takes.
pub(crate) struct Head {
    pub(crate) method: Method,
    scheme: Scheme,
    authority: String,
    path: PathAndQuery,
    /// End-to-end ones, Content-Length and `TE: trailers`.
    fields: HeaderMap,
    chunked: bool,
}

impl Head {
    /// Takes out what is of other connections, and says the length of the body where it is known.
    pub(crate) fn new(
        method: Method,
        scheme: Scheme,
        destination: &Destination,
        path: PathAndQuery,
        mut fields: HeaderMap,
        length: Option<u64>,
    ) -> Head {
        strip_hop_by_hop(&mut fields);
        let sized = fields.remove(CONTENT_LENGTH).is_some();
        fields.remove(HOST);
        // RFC 9110 §8.6: said for methods that usually have a body.
        let usual = [Method::POST, Method::PUT, Method::PATCH].contains(&method);
        if let Some(bytes) = length.filter(|&bytes| bytes > 0 || sized || usual) {
            fields.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
        }
        let authority = destination.authority(scheme.default_port());
        Head { method, scheme, authority, path, fields, chunked: length.is_none() }
    }

    /// Whom it is for, as Host says it.
    pub(crate) fn host(&self) -> &str {
        &self.authority
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// For HTTP/1.1: origin-form, Host first (RFC 9112 §3.2.1, RFC 9110 §7.2).
    pub(crate) fn http1(&self) -> Result<http::Request<()>, Error> {
        let mut fields = HeaderMap::with_capacity(self.fields.len() + 3);
        let host = HeaderValue::try_from(&self.authority).map_err(|_| self.malformed_host())?;
        fields.insert(HOST, host);
        fields.extend(self.fields.clone());
        if fields.contains_key(TE) {
            // RFC 9110 §10.1.4: TE is of this connection.
            fields.insert(CONNECTION, HeaderValue::from_static("TE"));
        }
        if self.chunked {
            fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        Ok(self.request(Uri::from(self.path.clone()), fields, Version::HTTP_11))
    }

    /// For HTTP/2: the authority in its pseudo-field, no Host (RFC 9113 §8.3.1).
    pub(crate) fn http2(&self) -> Result<http::Request<()>, Error> {
        let uri = Uri::builder()
            .scheme(self.scheme.of_uri())
            .authority(self.authority.as_str())
            .path_and_query(self.path.clone())
            .build()
            .map_err(|_| self.malformed_host())?;
        Ok(self.request(uri, self.fields.clone(), Version::HTTP_2))
    }

    fn request(&self, uri: Uri, fields: HeaderMap, version: Version) -> http::Request<()> {
        let mut request = http::Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.version_mut() = version;
        *request.headers_mut() = fields;
        request
    }

    fn malformed_host(&self) -> Error {
        Error::InvalidRequest(format!("host '{}' is malformed", self.authority))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(scheme: Scheme, port: u16, length: Option<u64>) -> Head {
        let mut fields: HeaderMap = HeaderMap::new();
        for (name, value) in
            [("host", "liar.example"), ("te", "trailers"), ("connection", "x-one"), ("x-one", "1")]
        {
            fields.insert(name, HeaderValue::from_static(value));
        }
        let destination = Destination::new("::1", port);
        Head::new(Method::OPTIONS, scheme, &destination, PathAndQuery::from_static("*"), fields, length)
    }

    #[test]
    fn each_protocol_says_the_host_in_its_own_way() {
        let one = head(Scheme::Http, 80, None).http1().unwrap();
        assert_eq!(
            (one.uri().to_string().as_str(), &one.headers()["host"]),
            ("*", &HeaderValue::from_static("[::1]"))
        );
        assert_eq!(one.headers()["connection"], "TE");
        assert_eq!(one.headers()["transfer-encoding"], "chunked");
        let two = head(Scheme::Https, 80, None).http2().unwrap();
        assert_eq!(two.uri().authority().unwrap(), "[::1]:80");
        assert_eq!(two.uri().path(), "*");
        let names: Vec<_> = two.headers().keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["te"]);
        assert_eq!(head(Scheme::Https, 443, Some(3)).http2().unwrap().uri().authority().unwrap(), "[::1]");
    }
}
