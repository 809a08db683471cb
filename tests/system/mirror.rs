//! A second page of one site: ground pushes nothing of it that the remote holds fresh, on a new carrier neither.

use std::net::SocketAddr;

use farhop_testkit::{File, Site, SiteOrigin};
use http::Method;
use http_body_util::{BodyExt as _, Empty};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::{Answer, Pair, Relay, ask, get, request, send, until};

const SHARED: &str = "<link rel=icon href=data:,><link rel=stylesheet href=/site.css><img src=/logo.png><script src=/check.js></script>";
/// What can be held of it; the script may not be.
const HELD: u64 = 2;

async fn site() -> SiteOrigin {
    let page = |own: &str| {
        File::new("text/html", format!("<!doctype html><title>{own}</title>{SHARED}<img src=/{own}.png>"))
            .field("cache-control", "no-store")
    };
    let fresh = |kind, body: &'static str| File::new(kind, body).field("cache-control", "max-age=3600");
    Site::new()
        .file("/first", page("first"))
        .file("/second", page("second"))
        .file("/third", page("third"))
        .file("/site.css", fresh("text/css", "body { color: navy }"))
        .file("/logo.png", fresh("image/png", "a logo"))
        .file("/first.png", fresh("image/png", "the first"))
        .file("/second.png", fresh("image/png", "the second"))
        .file("/third.png", fresh("image/png", "the third"))
        .file("/check.js", File::new("text/javascript", "check()").field("cache-control", "no-store"))
        .serve()
        .await
}

/// Loads a page as a browser does, and waits until ground knows that the remote holds `held` responses.
async fn load(pair: &Pair, url: &str, held: u64) {
    let asked = request(Method::GET, url)
        .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
        .header("upgrade-insecure-requests", "1")
        .header("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36")
        .body(Empty::new().boxed())
        .unwrap();
    assert!(send(pair.proxy, asked).await.whole);
    mirror(pair, held).await;
}

/// Waits until ground's mirror holds so many entries.
async fn mirror(pair: &Pair, held: u64) {
    let control = pair.control("ground");
    until("ground has heard what the remote holds", async || {
        let status = ask(&control, "status").await?;
        (status["carriers"].as_array()?.first()?["mirror"].as_u64()? == held).then_some(())
    })
    .await;
}

async fn promised(pair: &Pair) -> Value {
    pair.counters("ground").await["promised"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_page_pushes_nothing_that_the_remote_holds_fresh_and_after_a_reconnect_neither() {
    let mut pair = Pair::start().await;
    let site = site().await;
    load(&pair, &site.url("/first"), HELD + 1).await;
    assert_eq!(promised(&pair).await, HELD + 2, "all that the page names");
    load(&pair, &site.url("/second"), HELD + 2).await;
    assert_eq!(promised(&pair).await, HELD + 4, "its own image, and the script that may not be held");

    pair.ground.kill();
    pair.restart_ground();
    until("the remote has noticed", async || {
        (pair.counters("remote").await["carriers_down"].as_u64() > Some(0)).then_some(())
    })
    .await;
    pair.await_carrier().await;
    mirror(&pair, HELD + 2).await;
    load(&pair, &site.url("/third"), HELD + 3).await;
    assert_eq!(promised(&pair).await, 2, "the new ground has promised the image and the script only");

    for path in ["/site.css", "/logo.png"] {
        assert_eq!(site.times(path), 1, "{path} was fetched again");
    }
    let refused = pair.counters("remote").await["promise_ends"]["cancelled"].clone();
    assert_eq!(refused, 0, "nothing had to be refused");
    pair.assert_both_run();
}

/// An origin whose page names two images; it answers what is asked for as `/late` or with POST when it is let, all else at once.
struct Patient {
    address: SocketAddr,
    waiting: watch::Receiver<usize>,
    lets: watch::Sender<bool>,
    _serving: JoinSet<()>,
}

impl Patient {
    async fn start() -> Patient {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (waits, waiting) = watch::channel(0);
        let lets = watch::Sender::new(false);
        let let_in = lets.subscribe();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(stream, waits.clone(), let_in.clone()));
            }
        });
        Patient { address, waiting, lets, _serving: serving }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn answer(mut stream: TcpStream, waits: watch::Sender<usize>, mut let_in: watch::Receiver<bool>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let (method, path) = head.split_once(' ').unwrap();
    if method == "POST" || path.starts_with("/late") {
        waits.send_modify(|count| *count += 1);
        let_in.wait_for(|open| *open).await.unwrap();
    }
    let (fields, body) = match path.starts_with("/page") {
        true => (
            "text/html\r\nCache-Control: no-store",
            "<!doctype html><link rel=icon href=data:,><img src=/early.png><img src=/late/1.png><img src=/late/2.png>",
        ),
        false => ("image/png\r\nCache-Control: max-age=3600", "an image"),
    };
    let length = body.len();
    let text = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {fields}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // Who asked may have gone.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn ask_for(proxy: SocketAddr, method: Method, url: String) -> Answer {
    send(proxy, request(method, &url).body(Empty::new().boxed()).unwrap()).await
}

/// The carrier breaks off, with all that was on its way; waits for the next.
async fn next_carrier(pair: &mut Pair, relay: &Relay) {
    relay.sever();
    relay.set(|way| way.up_cut = false);
    until("the remote has noticed", async || {
        (pair.counters("remote").await["carriers_down"].as_u64() > Some(0)).then_some(())
    })
    .await;
    pair.await_carrier().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_unheard_before_a_cut_is_made_good_on_the_next_carrier() {
    let (mut pair, relay) = Pair::relayed(&["carrier=tcp"]).await;
    let mut origin = Patient::start().await;
    assert!(get(pair.proxy, &origin.url("/early.png")).await.whole);
    mirror(&pair, 1).await;

    let asked = [(Method::POST, "/early.png"), (Method::GET, "/late/1.png"), (Method::GET, "/late/2.png")];
    let mut answers = JoinSet::new();
    for (method, path) in asked {
        answers.spawn(ask_for(pair.proxy, method, origin.url(path)));
    }
    origin.waiting.wait_for(|count| *count == 3).await.unwrap();
    // From now on the remote hears, and is not heard: what it gives up and takes in, it tells nobody.
    relay.set(|way| way.up_cut = true);
    origin.lets.send_replace(true);
    while let Some(answer) = answers.join_next().await {
        assert!(answer.unwrap().whole);
    }
    let control = pair.control("ground");
    let known = ask(&control, "status").await.unwrap()["carriers"][0]["mirror"].clone();
    assert_eq!(known, 1, "what ground knows is not so any more");

    next_carrier(&mut pair, &relay).await;
    mirror(&pair, 2).await;
    load(&pair, &origin.url("/page"), 3).await;
    assert_eq!(promised(&pair).await, 1, "what was given up, and nothing that is held");
    assert_eq!(pair.counters("remote").await["promise_ends"]["cancelled"], 0);
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn that_all_was_given_up_before_a_cut_is_known_on_the_next_carrier() {
    // On disk, since there all of it goes at once.
    let folder = tempfile::tempdir().unwrap();
    let set =
        |name: &str, file: &str| format!("store.{name}={:?}", folder.path().join(file).display().to_string());
    let (directory, key) = (set("directory", "store"), set("key", "store.key"));
    let (mut pair, relay) = Pair::relayed(&["carrier=tcp", &directory, &key]).await;
    let site = site().await;
    load(&pair, &site.url("/first"), HELD + 1).await;
    let before = promised(&pair).await.as_u64().unwrap();
    relay.set(|way| way.up_cut = true);
    ask(&pair.control("remote"), "flush").await.unwrap();
    next_carrier(&mut pair, &relay).await;
    mirror(&pair, 0).await;
    load(&pair, &site.url("/first"), HELD + 1).await;
    assert_eq!(promised(&pair).await, before + HELD + 2, "all that the page names, again");
    assert_eq!(site.times("/site.css"), 2);
    pair.assert_both_run();
}
