//! A request as it came from a client, judged by what the ends need to know of it. No I/O.

use std::net::{IpAddr, SocketAddr};

use farhop_bundle::opens_page;
use farhop_front::{RequestHead as Asked, Scheme, Target};
use farhop_htotp::RequestHead;
use farhop_htotp::head::{HELD, RECEIVED, SENT_TO, UNASKED};
use http::header::{CONTENT_LENGTH, HOST, MAX_FORWARDS, TE, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use url::Url;

use crate::own_dictionary::OwnDictionary;
use crate::transparent;

/// What is to be done with a request.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Fetch this.
    Fetch(Box<Fetch>),
    /// Open a tunnel.
    Tunnel { host: String, port: u16 },
    /// It is for this proxy itself.
    Own { status: StatusCode, text: &'static str },
    /// TRACE with `Max-Forwards: 0`: sent back as it came, with this target.
    Echo { target: String, fields: HeaderMap },
}

/// A request that may cross.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    /// Without a word of the client's own dictionary.
    pub(crate) head: RequestHead,
    /// That; none for a page, which ground is to read.
    pub(crate) dictionary: Option<OwnDictionary>,
    /// The URL as browsers normalise it.
    pub(crate) url: Url,
    pub(crate) has_body: bool,
    /// In which it came.
    pub(crate) version: Version,
}

impl Fetch {
    /// Whether an answer that is held or promised may stand for asking. It has to be sent in the words of its URL; content may
    /// change what is answered, as may the connection by which it came: a login of it, or where it led.
    pub(crate) fn may_be_answered_here(&self) -> bool {
        !self.has_body
            && !self.head.upgrades()
            && !self.head.is_of_its_connection()
            && self.head.is_for(&self.url)
    }

    /// The same, at the address that its client's connection led to if ground's name servers do not know its host.
    pub(crate) fn or_at(&self, address: IpAddr) -> Fetch {
        let mut fetch = self.clone();
        if let Ok(address) = HeaderValue::try_from(address.to_string()) {
            fetch.head.fields.insert(SENT_TO, address);
        }
        fetch
    }

    /// The head as the client sent it, but for hops.
    pub(crate) fn with_dictionary(&self) -> RequestHead {
        let mut head = self.head.clone();
        self.dictionary.iter().for_each(|own| own.put(&mut head.fields));
        head
    }

    /// Whether it may be sent again when nobody knows what became of it (RFC 9110 §9.2.2), its body being gone.
    pub(crate) fn is_repeatable(&self) -> bool {
        !self.has_body
            && matches!(self.head.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
    }
}

/// How a request came to the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// As to a proxy.
    Explicit,
    /// In a connection whose TLS is looked into; its target says `https`.
    Intercepted,
    /// In a connection to this address that was caught, as to a server.
    Caught(SocketAddr),
}

/// Sorts a request out.
pub(crate) fn sort(asked: Asked, way: Way) -> Wanted {
    let Asked { method, mut target, mut fields, framing, upgrade, version, .. } = asked;
    if let Way::Caught(at) = way {
        let Some(settled) = transparent::settle(target, &fields, at) else {
            let text = "This request is not for the address that it was sent to.\n";
            return Wanted::Own { status: StatusCode::MISDIRECTED_REQUEST, text };
        };
        target = settled;
    }
    let (scheme, authority, path) = match target {
        Target::Authority { host, port } if way == Way::Explicit => return Wanted::Tunnel { host, port },
        Target::Authority { .. } => {
            let text = "CONNECT leads nowhere from inside a connection.\n";
            return Wanted::Own { status: StatusCode::NOT_IMPLEMENTED, text };
        }
        Target::Origin(_) => {
            let text = "This is a Farhop proxy. Set it as the HTTP proxy of your browser, or have it configured by /proxy.pac, then open http://farhop.internal/.\n";
            return Wanted::Own { status: StatusCode::BAD_REQUEST, text };
        }
        Target::Asterisk => return Wanted::Own { status: StatusCode::OK, text: "" },
        Target::Absolute { scheme: Scheme::Https, .. } if way == Way::Explicit => {
            let text = "This proxy takes https URLs by CONNECT only.\n";
            return Wanted::Own { status: StatusCode::BAD_REQUEST, text };
        }
        Target::Absolute { scheme, authority, path } => (scheme, authority, path),
    };
    // RFC 9110 §7.6.2: who is asked with zero answers as the final recipient; else the count goes down.
    if matches!(method, Method::OPTIONS | Method::TRACE)
        && let Some(left) = max_forwards(&fields)
    {
        match (left, &method) {
            (0, &Method::TRACE) if way == Way::Explicit => {
                let target = format!("{}://{authority}{path}", scheme.as_str());
                return Wanted::Echo { target, fields };
            }
            (0, &Method::TRACE) => return Wanted::Echo { target: path.to_string(), fields },
            (0, _) => return Wanted::Own { status: StatusCode::OK, text: "" },
            (left, _) => drop(fields.insert(MAX_FORWARDS, HeaderValue::from(left - 1))),
        }
    }
    // RFC 9110 §7.6.1; trailers are carried, so that much of TE stays true.
    let trailers = farhop_front::h1::lists_token(&fields, TE, "trailers");
    farhop_freshness::strip_hop_by_hop(&mut fields);
    if trailers {
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(protocol) = upgrade {
        fields.insert(UPGRADE, HeaderValue::from_static(protocol));
    }
    fields.remove(HOST);
    // What a client says of that is nothing that ground may believe.
    fields.remove(SENT_TO);
    fields.remove(UNASKED);
    fields.remove(HELD);
    fields.remove(RECEIVED);
    let dictionary = OwnDictionary::take(&mut fields).filter(|_| !opens_page(&method, &fields));
    let has_body = framing != farhop_front::Framing::None;
    // RFC 9110 §8.6: said where a body is usual, so that ground need not wait for one.
    if !has_body && [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
        fields.entry(CONTENT_LENGTH).or_insert(HeaderValue::from_static("0"));
    }
    let authority = match authority.port() {
        Some(port) if port != scheme.default_port() => format!("{}:{port}", authority.host()),
        _ => authority.host().to_owned(),
    };
    let head =
        RequestHead { method, scheme: scheme.as_str().into(), authority, path: path.as_str().into(), fields };
    match head.normalised() {
        Some(url) => Wanted::Fetch(Box::new(Fetch { head, dictionary, url, has_body, version })),
        None => Wanted::Own { status: StatusCode::BAD_REQUEST, text: "The URL is malformed.\n" },
    }
}

fn max_forwards(fields: &HeaderMap) -> Option<u64> {
    fields.get(MAX_FORWARDS)?.to_str().ok()?.trim().parse().ok()
}
