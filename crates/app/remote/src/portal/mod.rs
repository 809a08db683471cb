//! `http://farhop.internal/`: what the proxy tells its users and lets them switch, the certificate they install, and
//! the files that configure their browsers. Everything here but [`serve`] is pure: what was asked and what there is to
//! know come in, an answer goes out.

mod html;
mod install;
mod overview;
mod pac;
mod savings;
mod secure;
mod serve;
mod switch;

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use farhop_authority::CaCertificate;
use farhop_front::{RequestHead, Scheme, Target};
use farhop_units::BitRate;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST as HOST_FIELD,
    HeaderName, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

pub(crate) use pac::Ways;
pub(crate) use savings::{Given, Ledger, Savings};
pub(crate) use serve::{Place, serve};
pub(crate) use switch::{Secret, Switch};

/// The portal's host: no name of the internet (`internal` is reserved), so that it answers only where the proxy is.
pub(crate) const HOST: &str = "farhop.internal";

/// A request to the portal.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    /// How it was asked: in the open, or inside TLS that was answered with the portal's own certificate.
    pub(crate) scheme: Scheme,
    /// Path and query.
    pub(crate) path: &'a str,
    pub(crate) fields: &'a HeaderMap,
    /// The body, as far as a form of the portal can be long.
    pub(crate) form: &'a [u8],
}

/// What the portal knows of the proxy and of the user who asks.
pub(crate) struct View {
    /// The proxy as this user reaches it: `host:port`.
    pub(crate) proxy: String,
    /// What browsers are told to reach without it.
    pub(crate) ways: Ways,
    /// The round trip to ground, zero while it is not known; `None` while the link is down or silent.
    pub(crate) round_trip: Option<Duration>,
    /// The rate at which answers cross, where settings say it.
    pub(crate) rate: Option<BitRate>,
    /// Who asks: a name or an address.
    pub(crate) user: String,
    /// What a form of this user has to bring.
    pub(crate) token: String,
    /// `None` where the operator has not switched it on.
    pub(crate) interception: Option<Interception>,
    pub(crate) savings: Savings,
}

/// HTTPS answered at the remote, as it stands for one user.
pub(crate) struct Interception {
    pub(crate) certificate: CaCertificate,
    /// Whether it is in its time: else nothing is looked into, whatever else stands here.
    pub(crate) in_force: bool,
    /// Whether the portal has a certificate of this CA, and so is at `https` too.
    pub(crate) covers_portal: bool,
    /// The ports whose connections are looked into, as settings write them.
    pub(crate) ports: Vec<String>,
    /// The certificate before the last rotation, by its name, and the day until which it is enough.
    pub(crate) older: Option<(String, String)>,
    /// The kinds of sites that the operator leaves alone for everybody.
    pub(crate) left_alone: Vec<String>,
    /// Whether this user has it on.
    pub(crate) on: bool,
    /// Whether the device that asks has refused the certificate so often that it is left alone altogether.
    pub(crate) refused: bool,
    /// The hosts at which that device has not been looked into of late, as it has not gone along.
    pub(crate) passed_on: Vec<String>,
    /// The sites for which this user has switched it off.
    pub(crate) sites_off: Vec<String>,
}

/// The portal's answer, and what it wants to be done.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) switch: Option<Switch>,
}

/// Whether a host is the portal's.
pub(crate) fn is_host(host: &str) -> bool {
    host.strip_suffix('.').unwrap_or(host) == HOST
}

/// Whether a request is for the portal: for its host, or in origin-form for a file that configures browsers, which are
/// not yet using a proxy when they ask for it.
pub(crate) fn is_asked(head: &RequestHead) -> bool {
    match &head.target {
        Target::Absolute { scheme: Scheme::Http, authority, .. } => {
            is_host(authority.host()) && authority.port_or_default(Scheme::Http) == 80
        }
        Target::Origin(path) => pac::PATHS.contains(&path.path()) || is_host(&named_host(&head.fields)),
        _ => false,
    }
}

/// Whether a request is one that nobody has to give a name for: what is asked of the proxy itself and not through it, but for the
/// portal's pages.
pub(crate) fn is_open(head: &RequestHead) -> bool {
    match &head.target {
        Target::Origin(path) => pac::PATHS.contains(&path.path()) || !is_host(&named_host(&head.fields)),
        Target::Asterisk => true,
        _ => false,
    }
}

/// The host of the Host field, in lower case and without its port.
fn named_host(fields: &HeaderMap) -> String {
    let named =
        fields.get(HOST_FIELD).and_then(|value| farhop_front::Authority::parse(value.to_str().ok()?).ok());
    named.map(|authority| authority.host().to_owned()).unwrap_or_default()
}

/// Answers.
pub(crate) fn answer(asked: &Asked<'_>, view: &View) -> Reply {
    let (path, query) = asked.path.split_once('?').unwrap_or((asked.path, ""));
    let reads = matches!(*asked.method, Method::GET | Method::HEAD);
    let certificate = view.interception.as_ref().map(|interception| &interception.certificate);
    match (path, certificate) {
        ("/switch", Some(_)) if asked.method == Method::POST => switch::answer(asked, view),
        ("/switch", Some(_)) => not_allowed("POST"),
        ("/" | "/install" | "/style.css" | "/ca.pem" | "/ca.der" | "/ca.mobileconfig", _) if !reads => {
            not_allowed("GET, HEAD")
        }
        ("/", _) => page(StatusCode::OK, overview::page(view, switch::meant(query).as_ref())),
        ("/install", _) => page(StatusCode::OK, install::page(view)),
        ("/style.css", _) => file("text/css", "max-age=3600", include_str!("style.css")),
        ("/ca.pem", Some(ca)) => download("application/x-x509-ca-cert", "farhop-ca.pem", ca.pem()),
        ("/ca.der", Some(ca)) => download("application/x-x509-ca-cert", "farhop-ca.crt", ca.der().to_vec()),
        ("/ca.mobileconfig", Some(ca)) => {
            download("application/x-apple-aspen-config", "farhop-ca.mobileconfig", ca.profile())
        }
        (path, _) if pac::PATHS.contains(&path) && reads => {
            file(pac::CONTENT_TYPE, "max-age=3600", pac::file(&view.proxy, &view.ways))
        }
        (path, _) if pac::PATHS.contains(&path) => not_allowed("GET, HEAD"),
        _ => refusal(StatusCode::NOT_FOUND, "There is no such page here."),
    }
}

/// A page with a word on what went wrong.
fn refusal(status: StatusCode, words: &str) -> Reply {
    let words = format!("<section><p>{words}</p><p><a href=\"/\">To the overview</a></p></section>\n");
    page(status, html::page(status.canonical_reason().unwrap_or("Error"), &words))
}

fn not_allowed(allowed: &'static str) -> Reply {
    let mut reply = refusal(StatusCode::METHOD_NOT_ALLOWED, "This page does not take such a request.");
    reply.fields.insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

fn page(status: StatusCode, html: String) -> Reply {
    Reply { status, ..file("text/html; charset=utf-8", "no-store", html) }
}

fn download(content_type: &'static str, name: &str, bytes: impl Into<Bytes>) -> Reply {
    let mut reply = file(content_type, "no-store", bytes);
    if let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")) {
        reply.fields.insert(CONTENT_DISPOSITION, value);
    }
    reply
}

/// After a form: the page to load, so that going back or reloading does not send the form again.
fn see_other(path: &'static str) -> Reply {
    let mut reply = file("text/plain", "no-store", "");
    reply.status = StatusCode::SEE_OTHER;
    reply.fields.insert(LOCATION, HeaderValue::from_static(path));
    reply
}

fn file(content_type: &'static str, cache: &'static str, body: impl Into<Bytes>) -> Reply {
    // No script, nothing from elsewhere, forms to here only, in nobody's frame.
    let policy =
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let fields = [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, cache),
        (CONTENT_SECURITY_POLICY, policy),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // `no-referrer` would have browsers send `Origin: null` with the portal's own forms.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let fields = fields.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
    Reply { status: StatusCode::OK, fields, body: body.into(), switch: None }
}
