//! HTTPS through ground: pages are read and promised as over plain HTTP, by the rules that browsers keep between the two,
//! and nothing is said to an origin that cannot prove who it is.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::RequestHead;
use farhop_transport::hop::{Arrival, Incoming, Receiver};
use http::{HeaderValue, Method};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use support::{Origin, Pair, Peer, Reply, event, navigate, request};
use tempfile::NamedTempFile;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

const PATIENCE: Duration = Duration::from_secs(20);

/// TLS in front of an origin, with a CA of its own.
struct Secured {
    port: u16,
    root: NamedTempFile,
}

impl Secured {
    /// Proves to be `name`.
    async fn before(origin: &Origin, name: &str) -> Secured {
        Secured::speaking(&[], origin.addr, name).await
    }

    /// The same before what speaks one of these protocols.
    async fn speaking(protocols: &[&str], to: SocketAddr, name: &str) -> Secured {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let mut config =
            builder.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(mut near) = acceptor.accept(stream).await {
                        let mut far = TcpStream::connect(to).await.unwrap();
                        // Either side may leave when it likes.
                        let _ = copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        let mut root = NamedTempFile::new().unwrap();
        root.write_all(issuer.pem().as_bytes()).unwrap();
        Secured { port, root }
    }

    /// A ground that trusts it.
    async fn pair(&self) -> Pair {
        self.pair_with(&[]).await
    }

    /// The same under more settings.
    async fn pair_with(&self, settings: &[&str]) -> Pair {
        let roots = format!("origin.roots=[\"{}\"]", self.root.path().display());
        Pair::new(&[&[&*roots], settings].concat()).await
    }

    /// The same request over TLS.
    fn ask(&self, head: RequestHead) -> RequestHead {
        RequestHead { scheme: "https".into(), authority: format!("localhost:{}", self.port), ..head }
    }
}

async fn next(receiver: &mut Receiver) -> Arrival {
    timeout(PATIENCE, receiver.next()).await.expect("something arrives")
}

/// The request that a promise answers.
fn promised<'a>(reply: &'a Reply, path: &str) -> &'a RequestHead {
    let found = reply.promises.iter().find(|(_, head, _)| head.path == path);
    &found.unwrap_or_else(|| panic!("{:?}", reply.promised_paths())).1
}

#[tokio::test]
async fn a_page_brings_what_it_needs_over_tls_and_nothing_that_is_insecure() {
    const PAGE: &str = "<!doctype html><link rel=stylesheet href=/a.css><script src=http://plain.test/x.js></script>\
                        <img src=http://192.0.2.1/y.png><img src=/c.png>";
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/" => peer.answer("content-type: text/html", PAGE).await,
            path => {
                let body = path.repeat(20);
                peer.answer("content-type: text/css", body).await;
            }
        }
        Some(peer)
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    let page = secured.ask(navigate(&origin, "/"));
    let reply = pair.get(&page).await;
    assert!(reply.whole && reply.body == PAGE.as_bytes(), "{reply:?}");
    assert_eq!(reply.promised_paths(), ["/a.css", "/c.png", "/favicon.ico"], "mixed content is blocked");
    for (_, head, _) in &reply.promises {
        assert_eq!((head.scheme.as_str(), &head.authority), ("https", &page.authority));
        assert_eq!(head.fields["referer"], page.url());
        assert_eq!(head.fields["cookie"], "session=1");
    }
    let mut pushes = 0;
    while pushes < 3 {
        let incoming = timeout(PATIENCE, pair.hop.accept()).await.expect("each promise is kept").unwrap();
        if let Incoming::Push { mut receiver, .. } = incoming {
            assert!(Reply::take(&mut receiver).await.whole);
            pushes += 1;
        }
    }
}

/// What was set with `Secure` goes with what the next page needs.
#[tokio::test]
async fn secure_cookies_go_with_what_secure_pages_need() {
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/login" => peer.answer("set-cookie: id=7; Secure; Path=/|content-type: text/plain", "in").await,
            "/" => {
                let page = "<!doctype html><link rel=stylesheet href=/a.css>";
                peer.answer("content-type: text/html", page).await;
            }
            _ => peer.answer("content-type: text/css", "a{}").await,
        }
        Some(peer)
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    assert!(pair.get(&secured.ask(navigate(&origin, "/login"))).await.whole);
    let mut page = navigate(&origin, "/");
    page.fields.insert("cookie", HeaderValue::from_static("session=1; id=7"));
    let reply = pair.get(&secured.ask(page)).await;
    let style = promised(&reply, "/a.css");
    assert_eq!(style.fields["cookie"], "session=1; id=7");
}

#[tokio::test]
async fn nothing_is_said_to_an_origin_that_is_someone_else() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.answer("", "secret").await;
        None
    })
    .await;
    let secured = Secured::before(&origin, "elsewhere.test").await;
    let reply = secured.pair().await.get(&secured.ask(navigate(&origin, "/"))).await;
    let failure = reply.failure();
    assert_eq!((failure.status, failure.token.as_str()), (502, "tls_certificate_error"));
    assert!(failure.detail.contains("elsewhere.test"), "{}", failure.detail);
    assert!(reply.body.is_empty() && origin.requests().is_empty());
}

#[tokio::test]
async fn what_may_have_been_cut_off_is_for_nobody_to_keep_whatever_it_says_to_chosen_caches() {
    const SAID: &str = "HTTP/1.1 200 OK\r\nown-cache-control: max-age=600\r\n";
    let origin = Origin::start(|mut peer: Peer| async move {
        let length = if peer.path() == "/sealed" { "content-length: 4\r\n" } else { "" };
        peer.say(format!("{SAID}{length}\r\nbody")).await;
        None
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair_with(&["origin.targets=['Own-Cache-Control']"]).await;
    for (path, obeyed, said) in [("/sealed", true, None), ("/unsealed", false, Some("no-store"))] {
        let reply = pair.get(&secured.ask(request(Method::GET, origin.addr, path, &[]))).await;
        let fields = &reply.head().fields;
        assert_eq!(reply.body, b"body", "{path}");
        assert_eq!(fields.contains_key("farhop-targets"), obeyed, "{path}");
        assert_eq!(fields.get("cache-control").map(|value| value.to_str().unwrap()), said, "{path}");
    }
}

#[tokio::test]
async fn a_websocket_over_tls_carries_words_both_ways() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
        )
        .await;
        loop {
            let word = peer.read().await;
            if word.is_empty() {
                return None;
            }
            peer.say(word).await;
        }
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    let fields = [("upgrade", "websocket"), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")];
    let (mut sender, mut receiver) =
        pair.ask(&secured.ask(request(Method::GET, origin.addr, "/socket", &fields)), None);
    let Arrival::Answered { head, .. } = next(&mut receiver).await else { panic!("no answer") };
    assert_eq!(head.status, 101);
    for word in 0..20u8 {
        let word = Bytes::from(vec![word; 4]);
        sender.write(word.clone()).await.unwrap();
        assert_eq!(next(&mut receiver).await, Arrival::Body(word));
    }
    sender.finish(None);
    assert_eq!(next(&mut receiver).await, Arrival::Ended);
}

/// The handshake is done when the request comes: it goes out on the connection that was prepared.
#[tokio::test]
async fn a_prepared_connection_serves_the_first_request() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.answer("", "ok").await;
        Some(peer)
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    pair.hop.prepare(7, "https", "localhost", secured.port);
    assert_eq!(pair.get(&secured.ask(navigate(&origin, "/"))).await.body, b"ok");
    assert_eq!(pair.get(&secured.ask(navigate(&origin, "/"))).await.body, b"ok");
    assert_eq!(origin.requests().len(), 2);
}

/// A script of so many functions, of which every twentieth is of this version.
fn script(version: u64) -> Vec<u8> {
    let function = |at: u64| {
        let seed = if at % 20 == 7 { version } else { 0 };
        format!(
            "function f{at}() {{ return {:x} }}\n",
            (at * 31 + seed * 1_000_003).wrapping_mul(2_654_435_761)
        )
    };
    (0..600).map(function).collect::<String>().into_bytes()
}

/// Versions of a script of which each is a dictionary for the next (RFC 9842). `/wrong…` names another one than was offered,
/// `/cut…` breaks off, `/twice…` is coded once more. `/old.js` is fresh for a second, and not modified where somebody has it.
async fn versions() -> Origin {
    Origin::start(|mut peer: Peer| async move {
        const FIELDS: &str = "content-type: text/javascript|cache-control: max-age=60|use-as-dictionary: match=\"/*.js\", id=\"v1\"";
        let before = script(1);
        let hash = ring::digest::digest(&ring::digest::SHA256, &before);
        let available = format!("available-dictionary: :{}:", STANDARD.encode(hash.as_ref())).to_lowercase();
        let has_dictionary = peer.head.contains(&available) && peer.head.contains("dictionary-id: \"v1\"");
        let is_wrong = peer.path().starts_with("/wrong");
        if peer.path() == "/" {
            peer.answer("content-type: text/html", "<!doctype html><script src=/v2.js></script>").await;
        } else if peer.path() == "/old.js" && peer.head.contains("if-none-match: \"1\"") {
            peer.say("HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\ncache-control: max-age=60\r\n\r\n").await;
        } else if peer.path() == "/old.js" {
            peer.answer(&format!("{FIELDS}|etag: \"1\"|age: 59"), &before).await;
        } else if peer.path() == "/v1.js" {
            peer.answer(&format!("{FIELDS}|content-encoding: gzip"), support::gzip(&before)).await;
        } else if has_dictionary && peer.head.contains("dcb, dcz") {
            let after = farhop_squeeze::compress_against(&before, &script(2), 9).unwrap();
            let mut named = hash.as_ref().to_vec();
            named[31] ^= u8::from(is_wrong);
            let mut coded = [&[0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0][..], &named, &after].concat();
            if peer.path().starts_with("/cut") {
                coded.truncate(coded.len() / 2);
            }
            let more = if peer.path().starts_with("/twice") { ", gzip" } else { "" };
            let vary = format!("vary: accept-encoding, available-dictionary|content-encoding: dcz{more}|etag: \"2\"");
            peer.answer(&format!("content-type: text/javascript|cache-control: max-age=60|{vary}"), coded).await;
        } else {
            let vary = "vary: accept-encoding, available-dictionary";
            peer.answer(&format!("content-type: text/javascript|cache-control: max-age=60|{vary}"), script(2)).await;
        }
        Some(peer)
    })
    .await
}

/// Waits until ground keeps so many dictionaries.
async fn keeps(pair: &Pair, count: u64) {
    while pair.ground.status()["origin_dictionaries"]["kept"].as_u64() != Some(count) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_an_origin_codes_with_a_dictionary_that_it_named_is_undone() {
    let origin = versions().await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    let ask = |path: &str| secured.ask(support::get(&origin, path));
    let cold = pair.get(&ask("/v2.js")).await;
    assert_eq!(
        (cold.body.as_slice(), &cold.head().fields["vary"]),
        (&script(2)[..], &HeaderValue::from_static("accept-encoding"))
    );
    assert_eq!(pair.get(&ask("/v1.js")).await.body, script(1));
    keeps(&pair, 1).await;
    let counted = || pair.bus.counters().snapshot()["bytes_from_origins"].as_u64().unwrap();
    let (before, mut told) = (counted(), pair.bus.subscribe());
    let coded = pair.get(&ask("/v2.js")).await;
    let head = coded.head();
    assert!(coded.whole && coded.body == script(2));
    assert!(
        !head.fields.contains_key("content-encoding") && !head.fields.contains_key("available-dictionary")
    );
    assert_eq!(
        (&head.fields["vary"], &head.fields["etag"]),
        (&HeaderValue::from_static("accept-encoding"), &HeaderValue::from_static("W/\"2\""))
    );
    while counted() == before {
        event(&mut told, |event| matches!(event, Event::Fetched { .. }).then_some(())).await;
    }
    assert!(counted() - before < script(2).len() as u64 / 5, "{}", counted() - before);
    // Of what its pattern does not name nothing is said.
    pair.get(&ask("/v2.css")).await;
    assert!(!origin.requests().last().unwrap().contains("available-dictionary"));
    // What is fetched unasked makes use of it as well.
    let reply = pair.get(&secured.ask(navigate(&origin, "/"))).await;
    assert_eq!(reply.promised_paths()[0], "/v2.js");
    loop {
        let (promise, push) = timeout(PATIENCE, support::pushed(&pair)).await.expect("the promise is kept");
        if promise == reply.promises[0].0 {
            assert!(push.whole && push.body == script(2));
            break;
        }
    }
    let asked = origin.requests();
    let unasked = asked.iter().rfind(|head| head.starts_with("get /v2.js")).unwrap();
    assert!(unasked.contains("available-dictionary"), "{unasked}");
}

#[tokio::test]
async fn an_origin_that_misuses_a_dictionary_is_asked_once_more_without_and_not_offered_it_again() {
    let origin = versions().await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    let ask = |path: &str| secured.ask(support::get(&origin, path));
    for path in ["/wrong.js", "/cut.js", "/twice.js"] {
        pair.get(&ask("/v1.js")).await;
        keeps(&pair, 1).await;
        for (round, requests) in [(0, 2), (1, 1)] {
            let before = origin.requests().len();
            let answer = pair.get(&ask(path)).await;
            assert!(answer.whole && answer.body == script(2), "{path} {round}");
            assert!(!answer.head().fields.contains_key("content-encoding"));
            let asked: Vec<_> = origin.requests()[before..]
                .iter()
                .map(|head| head.contains("available-dictionary"))
                .collect();
            assert_eq!(asked, [&[true, false][..], &[false][..]][2 - requests], "{path} {round}");
        }
        keeps(&pair, 0).await;
    }
}

#[tokio::test]
async fn a_dictionary_whose_origin_confirms_it_is_offered_again() {
    let origin = versions().await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    let ask = |path: &str| secured.ask(support::get(&origin, path));
    pair.get(&ask("/old.js")).await;
    keeps(&pair, 1).await;
    let is_offered = async || {
        pair.get(&ask("/v2.js")).await;
        origin.requests().last().unwrap().contains("available-dictionary")
    };
    while is_offered().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut conditional = ask("/old.js");
    conditional.fields.insert("if-none-match", HeaderValue::from_static("\"1\""));
    assert_eq!(pair.get(&conditional).await.head().status, 304);
    assert!(is_offered().await);
}

#[tokio::test]
async fn outside_of_tls_or_where_settings_say_so_no_dictionary_is_kept() {
    let origin = versions().await;
    let secured = Secured::before(&origin, "localhost").await;
    let roots = format!("origin.roots=[\"{}\"]", secured.root.path().display());
    let pair = Pair::new(&[&roots, "origin.dictionaries=0 B"]).await;
    pair.get(&secured.ask(support::get(&origin, "/v1.js"))).await;
    pair.get(&secured.ask(support::get(&origin, "/v2.js"))).await;
    let plain = Pair::new(&[]).await;
    plain.get(&support::get(&origin, "/v1.js")).await;
    plain.get(&support::get(&origin, "/v2.js")).await;
    assert!(origin.requests().iter().all(|head| !head.contains("available-dictionary")));
    assert_eq!(plain.ground.status()["origin_dictionaries"]["kept"], 0);
}

/// An origin that refuses the first request when some of its body is here, and sends the body of the next one back.
async fn refuses_first() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let mut refused = false;
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let (refuses, mut body) = (!std::mem::replace(&mut refused, true), request.into_body());
            tokio::spawn(async move {
                let mut taken = body.data().await.unwrap().unwrap().to_vec();
                if refuses {
                    return respond.send_reset(h2::Reason::REFUSED_STREAM);
                }
                while let Some(data) = body.data().await {
                    taken.extend(data.unwrap());
                }
                let mut echo = respond.send_response(http::Response::new(()), false).unwrap();
                echo.send_data(taken.into(), true).unwrap();
            });
        }
    });
    address
}

#[tokio::test]
async fn a_form_that_an_origin_has_refused_to_act_on_is_sent_again() {
    for length in [&[("content-length", "10000")][..], &[]] {
        let secured = Secured::speaking(&["h2"], refuses_first().await, "localhost").await;
        let pair = secured.pair().await;
        let head = secured.ask(request(Method::POST, "", "/", length));
        let (mut sender, mut receiver) = pair.ask(&head, None);
        let body: Vec<u8> = (0..10_000).map(|n| (n % 251) as u8).collect();
        for piece in body.chunks(3_000) {
            sender.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        sender.finish(None);
        let reply = timeout(PATIENCE, Reply::take(&mut receiver)).await.unwrap();
        assert_eq!((reply.failure.is_none(), reply.whole, reply.body == body), (true, true, true));
    }
}
