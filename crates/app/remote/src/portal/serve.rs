//! Brings the portal's requests and answers to the rest of the remote: the only part of it that is not pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use farhop_consent::Scope;
use farhop_events::{AnsweredFrom, Event};
use farhop_front::{Exchange as Incoming, Head, RequestBody, RequestHead, Scheme, Target};
use farhop_settings::RemoteSettings;
use farhop_transport::path::End;
use http::StatusCode;
use http::header::HOST as HOST_FIELD;
use tokio::time::Instant;

use super::{Asked, HOST, Interception, Switch, View, Ways, answer, named_host, refusal};
use crate::Remote;
use crate::answers::via;
use crate::users::User;

/// The longest form: a site's name takes most of it.
const LONGEST_FORM: usize = 8 * 1024;

/// Where a client is and which listener it came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) client: SocketAddr,
    pub(crate) listener: SocketAddr,
}

/// Serves a request of which [`super::is_asked`] is true, or one for the portal's host inside TLS.
pub(crate) async fn serve(remote: &Arc<Remote>, incoming: Incoming, user: &User, place: Place) {
    let started = Instant::now();
    let exchange = remote.next_exchange();
    let Incoming { head, body, responder } = incoming;
    let path = match &head.target {
        Target::Absolute { path, .. } | Target::Origin(path) => path.as_str(),
        Target::Authority { .. } | Target::Asterisk => "/",
    };
    let scheme = match &head.target {
        Target::Absolute { scheme, .. } => *scheme,
        _ => Scheme::Http,
    };
    let (name, method) = (user.name.to_string(), head.method.to_string());
    let url = remote.bus().url(&format!("{}://{HOST}{path}", scheme.as_str()));
    let accepted =
        Event::RequestAccepted { exchange, user: name.clone(), method: method.clone(), url: url.clone() };
    remote.bus().emit(accepted);

    let mut reply = match form(body).await {
        Some(form) => {
            let asked = Asked { method: &head.method, scheme, path, fields: &head.fields, form: &form };
            answer(&asked, &view(remote, &head, user, place))
        }
        None => refusal(StatusCode::PAYLOAD_TOO_LARGE, "That is more than any form here sends."),
    };
    if let Some(switch) = reply.switch.take()
        && let Err(words) = carry_out(remote, user, place.client.ip(), switch)
    {
        reply = refusal(StatusCode::CONFLICT, &words);
    }
    via(&mut reply.fields, exchange);
    let (status, bytes) = (reply.status, reply.body.len() as u64);
    // Whether the client still listens changes nothing here.
    let _ = responder.respond(Head { status, fields: reply.fields }, reply.body).await;
    let took_ms = started.elapsed().as_millis() as u64;
    remote.bus().emit(Event::Answered {
        exchange,
        user: name,
        method,
        url,
        status: status.as_u16(),
        from: AnsweredFrom::Remote,
        bytes,
        upload_bytes: 0,
        first_byte_ms: took_ms,
        total_ms: took_ms,
    });
}

/// The whole body; `None` where it is longer than a form or breaks off.
async fn form(mut body: RequestBody) -> Option<Vec<u8>> {
    let mut form = Vec::new();
    while let Some(data) = body.data().await.ok()? {
        if form.len() + data.len() > LONGEST_FORM {
            return None;
        }
        form.extend_from_slice(&data);
    }
    Some(form)
}

fn carry_out(remote: &Remote, user: &User, client: IpAddr, switch: Switch) -> Result<(), String> {
    let (scope, on) = match switch {
        Switch::TryAgain => {
            remote.consent().forget(Some(client.to_canonical()), None);
            return Ok(());
        }
        Switch::All { on } => (Scope::Everything, on),
        Switch::Site { host, on } => (Scope::site(&host), on),
    };
    if on {
        remote.consent().switch_on(user, &scope);
        return Ok(());
    }
    remote.consent().switch_off(user, scope, None).map_err(|error| format!("Nothing was changed: {error}."))
}

fn view(remote: &Remote, head: &RequestHead, user: &User, place: Place) -> View {
    let settings = remote.settings();
    let interception = remote.leaves().map(|leaves| {
        let choices = remote.consent().choices(user);
        let authority = leaves.authority();
        let (refused, passed_on) = remote.consent().taught_by(place.client.ip());
        Interception {
            certificate: authority.certificate().clone(),
            in_force: authority.in_force().is_ok(),
            covers_portal: leaves.for_host(HOST).is_ok(),
            ports: settings.interception.ports.iter().map(ToString::to_string).collect(),
            older: authority
                .bridge()
                .map(|it| (it.from.subject().to_owned(), farhop_authority::day(it.until))),
            left_alone: settings.interception.categories.iter().map(ToString::to_string).collect(),
            on: choices.everything.is_none(),
            refused,
            passed_on,
            sites_off: choices.sites.keys().map(ToString::to_string).collect(),
        }
    });
    let carrier = remote.uplink().now();
    View {
        proxy: proxy(&settings, head, place),
        ways: Ways {
            bypass: settings.pac.bypass.clone(),
            ranges: settings.pac.ranges.clone(),
            direct: settings.pac.direct,
        },
        // What was measured is what was used, and on a quiet link next to nothing.
        rate: remote.plan().sending_rate(End::Ground),
        round_trip: carrier
            .filter(|carrier| carrier.hop.silent().borrow().is_none())
            .map(|carrier| carrier.hop.rtt().unwrap_or_default()),
        user: user.name.to_string(),
        token: remote.secret().token(&user.name),
        interception,
        savings: remote.ledger().of(user),
    }
}

/// The proxy's address as this client reaches it: what the settings say, else the Host by which it was asked, else the
/// address that it came to.
fn proxy(settings: &RemoteSettings, head: &RequestHead, place: Place) -> String {
    if let Some(proxy) = &settings.pac.proxy {
        return proxy.to_string();
    }
    let asked_by_address =
        matches!(head.target, Target::Origin(_)) && named_host(&head.fields).trim_end_matches('.') != HOST;
    let named = head
        .fields
        .get(HOST_FIELD)
        .and_then(|value| farhop_front::Authority::parse(value.to_str().ok()?).ok());
    match named.filter(|_| asked_by_address) {
        Some(named) => format!("{}:{}", named.host(), named.port().unwrap_or(80)),
        None => SocketAddr::new(reached(place), place.listener.port()).to_string(),
    }
}

/// The address of this machine that the client came to. A listener on all of them does not say; the way back does.
fn reached(place: Place) -> IpAddr {
    let listener = place.listener.ip().to_canonical();
    if !listener.is_unspecified() {
        return listener;
    }
    let client = place.client.ip().to_canonical();
    let any =
        if client.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    // Connecting a UDP socket sends nothing: the system only chooses the address it would send from.
    let way_back = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((client, place.client.port()))?;
        Ok(socket.local_addr()?.ip())
    });
    way_back.unwrap_or(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(listener: &str, client: &str) -> Place {
        Place { client: client.parse().unwrap(), listener: listener.parse().unwrap() }
    }

    #[test]
    fn a_listener_on_one_address_is_reached_there_and_one_on_all_where_the_way_back_begins() {
        assert_eq!(reached(place("10.0.0.1:3128", "10.0.0.7:5000")), IpAddr::from([10, 0, 0, 1]));
        for (listener, client) in
            [("0.0.0.0:3128", "127.0.0.1:5000"), ("[::]:3128", "[::ffff:127.0.0.1]:5000")]
        {
            assert_eq!(reached(place(listener, client)), IpAddr::from([127, 0, 0, 1]), "{listener}");
        }
    }

    #[test]
    fn the_proxy_is_named_as_the_client_named_it() {
        let with = |sets: &[&str]| {
            let peer = ["ground.0.name=\"g\"", "ground.0.address=\"127.0.0.1:1\"", "ground.0.keys=[\"x\"]"];
            let sets: Vec<String> = peer.iter().chain(sets).map(ToString::to_string).collect();
            farhop_settings::load::<RemoteSettings>(None, &sets).unwrap()
        };
        let head = |request: &str| {
            RequestHead::parse(format!("{request}\r\n\r\n").as_bytes(), &farhop_front::HeadLimits::default())
                .unwrap()
        };
        let place = place("10.0.0.1:3128", "10.0.0.7:5000");
        for (request, expected) in [
            ("GET /proxy.pac HTTP/1.1\r\nHost: Cache.ship.example:8080", "cache.ship.example:8080"),
            ("GET /wpad.dat HTTP/1.1\r\nHost: wpad.example", "wpad.example:80"),
            ("GET /wpad.dat HTTP/1.1\r\nHost: [2001:db8::1]:3128", "[2001:db8::1]:3128"),
            ("GET /wpad.dat HTTP/1.0", "10.0.0.1:3128"),
            ("GET http://farhop.internal/proxy.pac HTTP/1.1\r\nHost: farhop.internal", "10.0.0.1:3128"),
            ("GET /proxy.pac HTTP/1.1\r\nHost: farhop.internal", "10.0.0.1:3128"),
        ] {
            assert_eq!(proxy(&with(&[]), &head(request), place), expected, "{request}");
            let fixed = with(&["pac.proxy=\"proxy.example:3128\""]);
            assert_eq!(proxy(&fixed, &head(request), place), "proxy.example:3128");
        }
    }
}
