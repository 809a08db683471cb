//! What the browser asks for although nobody foresaw it, and what ground learns from that (record 0017).

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use support::{Pair, Peer, get, navigate, pushed, site};

#[tokio::test]
async fn what_the_browser_finds_of_a_scripts_names_tells_where_the_others_are() {
    async fn answer(mut peer: Peer) -> Option<Peer> {
        let script = "make(`<x-tool src=\"line.svg\"></x-tool><x-tool src=\"text.svg\">`), make('rect.svg')";
        match peer.path() {
            "/app.js" => peer.answer("content-type: text/javascript", script).await,
            _ => peer.answer("content-type: image/svg+xml", "<svg/>".repeat(20)).await,
        }
        Some(peer)
    }
    let origin = site("content-type: text/html", "<script src=/app.js></script>", answer).await;
    let pair = Pair::new(&[]).await;
    let mut page = navigate(&origin, "/");
    // What is asked for with cookies is not guessed at.
    page.fields.remove("cookie");
    pair.get(&page).await;
    // The script is read with its push.
    for _ in 0..2 {
        pushed(&pair).await;
    }
    let icon = |name: &str| {
        let mut icon = get(&origin, &format!("/icons/{name}"));
        icon.fields.insert("referer", page.url().parse().unwrap());
        icon
    };
    assert_eq!(pair.get(&icon("text.svg")).await.promised_paths(), [""; 0], "one may be chance");
    assert_eq!(pair.get(&icon("line.svg")).await.promised_paths(), ["/icons/rect.svg"]);
    assert_eq!(pushed(&pair).await.1.body, "<svg/>".repeat(20).as_bytes());
}

#[tokio::test]
async fn what_the_browser_asks_for_unforeseen_is_read_along_too() {
    async fn answer(mut peer: Peer) -> Option<Peer> {
        match peer.path() {
            "/app.js" => peer.answer("content-type: text/javascript", "load('extra' + '/one.js')").await,
            "/extra/one.js" => {
                peer.answer("content-type: text/javascript", "import './two.js'; go(1)").await;
            }
            "/extra/late.css" => peer.answer("content-type: text/css", "p { background: url(p.png) }").await,
            _ => peer.answer("content-type: text/javascript", "go(2)").await,
        }
        Some(peer)
    }
    let page = "<script src=/app.js></script><p>text</p>";
    let origin = site("content-type: text/html", page, answer).await;
    let pair = Pair::new(&[]).await;
    let page = navigate(&origin, "/");
    pair.get(&page).await;
    let asked_by = |path: &str, referer: String| {
        let mut asked = get(&origin, path);
        asked.fields.insert("referer", referer.parse().unwrap());
        asked
    };
    let script = pair.get(&asked_by("/extra/one.js", page.url() + "app.js")).await;
    assert_eq!(script.promised_paths(), ["/extra/two.js"]);
    let style = pair.get(&asked_by("/extra/late.css", page.url())).await;
    assert_eq!(style.promised_paths(), ["/extra/p.png"]);
    let stranger = pair.get(&asked_by("/extra/one.js", "http://else.test/".into())).await;
    assert_eq!(stranger.promised_paths(), [""; 0], "not of a page that was read");
}

#[tokio::test]
async fn the_document_of_a_frame_that_the_browser_asks_for_by_itself_is_read() {
    async fn answer(mut peer: Peer) -> Option<Peer> {
        let html = format!("<img src={}.png>", peer.path());
        let fields = match peer.path() {
            "/of-a-script.js" => {
                peer.answer("content-type: text/javascript", "import './imported.js'; go()").await;
                return Some(peer);
            }
            "/named" => "content-type: text/html | set-cookie: a=b",
            "/nowhere" => "content-type: text/html | x-frame-options: DENY",
            "/text" => "content-type: text/plain",
            _ => "content-type: text/html",
        };
        peer.answer(fields, html).await;
        Some(peer)
    }
    let page = "<link rel=icon href=data:,><iframe src=/named></iframe><iframe sandbox src=/alone></iframe>";
    let origin = site("content-type: text/html", page, answer).await;
    let pair = Pair::new(&[]).await;
    let go = |path: &str| {
        let mut request = navigate(&origin, path);
        request.fields.remove("cookie");
        request
    };
    let page = go("/");
    assert_eq!(pair.get(&page).await.promised_paths(), ["/named", "/alone"]);
    let asked_by = |path: &str, dest: &str, referer: &str| {
        let mut asked = go(path);
        asked.fields.insert("sec-fetch-dest", dest.parse().unwrap());
        asked.fields.insert("referer", referer.parse().unwrap());
        asked
    };
    let of_a_script = asked_by("/of-a-script", "iframe", &page.url());
    assert_eq!(pair.get(&of_a_script).await.promised_paths(), ["/of-a-script.png"]);
    // What its own scripts ask for is its.
    let its_script = pair.get(&asked_by("/of-a-script.js", "script", &of_a_script.url())).await;
    assert_eq!(its_script.promised_paths(), ["/imported.js"]);
    for (path, dest, referer) in [
        ("/alone", "iframe", &*page.url()),
        ("/nowhere", "iframe", &*page.url()),
        ("/text", "iframe", &*page.url()),
        ("/no-frame", "empty", &*page.url()),
        ("/elsewhere", "iframe", "http://else.test/"),
    ] {
        let reply = pair.get(&asked_by(path, dest, referer)).await;
        assert_eq!(reply.promised_paths(), [""; 0], "{path} {dest}");
    }
    // It was not sent unasked, since it sets a cookie.
    let named = asked_by("/named", "iframe", &page.url());
    let reply = pair.get(&named).await;
    assert_eq!(reply.promised_paths(), ["/named.png"]);
    let image = &reply.promises[0].1.fields;
    assert!(image["referer"] == *named.url() && image["cookie"] == "a=b", "{image:?}");
    // A frame that is sandboxed would ask for it without that cookie, and whether a script's is, nobody knows.
    let late = asked_by("/late", "iframe", &page.url());
    assert_eq!(pair.get(&late).await.promised_paths(), [""; 0]);
}
