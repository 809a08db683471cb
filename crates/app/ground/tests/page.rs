//! Pages through ground: what they need is promised ahead of the bytes that mention it, fetched and pushed.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_events::Event;
use farhop_htotp::frame::Coding;
use farhop_transport::hop::Arrival;
use futures_util::FutureExt;
use http::Method;
use support::{Origin, Pair, Peer, Reply, event, gzip, navigate, noise, pushed, site};
use tokio::sync::mpsc;
use tokio::task::yield_now;

const PAGE: &str = "<!doctype html><html><head><title>t</title><link rel=stylesheet href=/a.css><link rel=icon href=/i.svg>\
                    </head><body><script src='b.js?x=1&amp;y=2'></script><img src=/c.png><p>text</body></html>";

async fn echo_path(mut peer: Peer) -> Option<Peer> {
    let path = peer.path().to_string();
    let kind = if path.ends_with(".png") { "content-type: image/png" } else { "content-type: text/css" };
    peer.answer(kind, path.repeat(20)).await;
    Some(peer)
}

#[tokio::test]
async fn a_page_brings_what_it_needs_with_the_requests_that_its_browser_would_send() {
    let origin = site("content-type: text/html", PAGE, echo_path).await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert!(reply.whole && reply.body == PAGE.as_bytes());
    assert_eq!(reply.promised_paths(), ["/a.css", "/i.svg", "/b.js?x=1&y=2", "/c.png"], "as they are found");
    for _ in 0..4 {
        let (promise, push) = pushed(&pair).await;
        let (_, asked, _) = reply.promises.iter().find(|(number, ..)| *number == promise).unwrap();
        assert!(push.whole && push.body == asked.path.repeat(20).as_bytes());
        assert_eq!(asked.fields["cookie"], "session=1", "the document's own origin gets its cookie");
        assert_eq!(asked.fields["referer"], format!("http://{}/", origin.addr));
        let sent = origin
            .requests()
            .into_iter()
            .find(|head| head.starts_with(&format!("get {} ", asked.path)))
            .unwrap();
        for (name, value) in &asked.fields {
            let line = format!("{name}: {}\r\n", value.to_str().unwrap()).to_lowercase();
            assert!(sent.contains(&line), "{line} is not in {sent}");
        }
    }
    assert_eq!(origin.paths().len(), 5, "each once");
}

#[tokio::test]
async fn a_page_that_answers_a_form_brings_what_it_needs_without_the_fields_of_the_form() {
    let origin = site("content-type: text/html", PAGE, echo_path).await;
    let pair = Pair::new(&[]).await;
    let home = format!("http://{}", origin.addr);
    let mut form = navigate(&origin, "/");
    form.method = Method::POST;
    let referer = format!("{home}/form");
    for (name, value) in [
        ("origin", home.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-length", "3"),
        ("cache-control", "max-age=0"),
        ("referer", &referer),
    ] {
        form.fields.insert(name, value.parse().unwrap());
    }
    let (mut sender, mut receiver) = pair.ask(&form, None);
    sender.write("q=1".into()).await.unwrap();
    sender.finish(None);
    let reply = Reply::take(&mut receiver).await;
    assert_eq!(reply.promised_paths(), ["/a.css", "/i.svg", "/b.js?x=1&y=2", "/c.png"]);
    for (_, asked, _) in &reply.promises {
        assert_eq!(asked.method, Method::GET);
        assert_eq!(asked.fields["referer"], format!("{home}/"), "the document's URL");
        assert_eq!(asked.fields["cookie"], "session=1");
        for name in ["origin", "content-type", "content-length", "cache-control"] {
            assert!(!asked.fields.contains_key(name), "{name} is the form's");
        }
    }
    let mut script = form.clone();
    script.fields.remove("upgrade-insecure-requests");
    let (mut sender, mut receiver) = pair.ask(&script, None);
    sender.write("q=1".into()).await.unwrap();
    sender.finish(None);
    assert!(Reply::take(&mut receiver).await.promises.is_empty(), "what a script posts opens no page");
}

#[tokio::test]
async fn nothing_is_fetched_for_what_nobody_looks_at_as_a_page() {
    let origin = site("content-type: text/html", PAGE, echo_path).await;
    let pair = Pair::new(&[]).await;
    let mut part = navigate(&origin, "/");
    part.fields.remove("upgrade-insecure-requests");
    part.fields.insert("x-requested-with", "XMLHttpRequest".parse().unwrap());
    assert!(pair.get(&part).await.promises.is_empty(), "a script asks for it");
    for (name, value) in
        [("sec-purpose", "prefetch"), ("sec-purpose", "prefetch;prerender"), ("purpose", "prefetch")]
    {
        let mut prefetch = navigate(&origin, "/");
        prefetch.fields.insert(name, value.parse().unwrap());
        assert!(pair.get(&prefetch).await.promises.is_empty(), "{name}: {value}");
    }
    assert!(!pair.get(&navigate(&origin, "/")).await.promises.is_empty());
}

#[tokio::test]
async fn others_get_their_turn_while_a_page_is_read_that_is_megabytes_coded_as_a_few_bytes() {
    const IMAGES: usize = 40;
    let page: String =
        (0..IMAGES).map(|number| format!("<img src=/{number}.png>{}", " ".repeat(64 << 10))).collect();
    // It crosses as it is coded, so its reader has to decode it, all at once.
    let fields = "content-type: text/html | content-encoding: gzip | cache-control: no-transform";
    let origin = site(fields, gzip(page.as_bytes()), echo_path).await;
    let pair = Pair::new(&[]).await;
    let mut events = pair.bus.subscribe();
    // This test has one thread: what was promised between two turns of this task was promised in one go.
    let watching = tokio::spawn(async move {
        let (mut all, mut most) = (0, 0);
        while all < IMAGES {
            let mut at_once = 0;
            while let Some(Some(Ok(stamped))) = events.next().now_or_never() {
                at_once += usize::from(matches!(stamped.event, Event::Promised { .. }));
            }
            (all, most) = (all + at_once, most.max(at_once));
            yield_now().await;
        }
        most
    });
    assert!(pair.get(&navigate(&origin, "/")).await.whole);
    let most = watching.await.unwrap();
    assert!(most <= 2, "{most} promises in one go");
}

#[tokio::test]
async fn a_promise_stands_ahead_of_the_bytes_that_mention_it() {
    let (go, going) = mpsc::unbounded_channel::<()>();
    let going = std::sync::Arc::new(tokio::sync::Mutex::new(going));
    let origin = Origin::start(move |mut peer: Peer| {
        let going = going.clone();
        async move {
            if peer.path() != "/" {
                return echo_path(peer).await;
            }
            peer.say("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n")
                .await;
            for number in 0..50 {
                let text = format!("<p>{}</p><img src=/{number}.png>", "word ".repeat(number * 20));
                // Cut in the middle of a tag.
                let (first, second) = text.split_at(text.len() - 6);
                peer.say(format!("{:x}\r\n{first}\r\n", first.len())).await;
                going.lock().await.recv().await;
                peer.say(format!("{:x}\r\n{second}\r\n", second.len())).await;
            }
            peer.say("0\r\n\r\n").await;
            Some(peer)
        }
    })
    .await;
    for _ in 0..50 {
        go.send(()).unwrap();
    }
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert!(reply.whole);
    let text = String::from_utf8(reply.body.clone()).unwrap();
    let mut images = 0;
    for (_, head, before) in &reply.promises {
        let mention = text.find(&format!("src={}>", head.path));
        if let Some(mention) = mention {
            assert!(*before <= mention + head.path.len() + 4, "{} came after its mention", head.path);
            images += 1;
        }
    }
    assert_eq!(images, 50);
}

#[tokio::test]
async fn a_compressed_page_is_read_whether_it_is_recoded_or_not() {
    for fields in [
        "content-type: text/html | content-encoding: gzip",
        "content-type: text/html | content-encoding: gzip | cache-control: no-transform",
    ] {
        let origin = site(fields, gzip(PAGE.as_bytes()), echo_path).await;
        let pair = Pair::new(&[]).await;
        let reply = pair.get(&navigate(&origin, "/")).await;
        assert!(reply.whole);
        assert_eq!(reply.coding == Coding::Identity, fields.contains("no-transform"));
        assert_eq!(reply.promises.len(), 4, "{fields}");
    }
}

#[tokio::test]
async fn link_fields_and_early_hints_are_hints() {
    let origin = Origin::start(|mut peer: Peer| async move {
        if peer.path() != "/" {
            return echo_path(peer).await;
        }
        peer.say("HTTP/1.1 103 Early Hints\r\nlink: </early.js>; rel=preload; as=script\r\n\r\n").await;
        peer.answer("content-type: text/html | link: </linked.css>; rel=preload; as=style", "<p>").await;
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    let paths = reply.promised_paths();
    assert!(paths.contains(&"/early.js") && paths.contains(&"/linked.css"), "{paths:?}");
    assert!(reply.promises[..2].iter().all(|(.., before)| *before == 0));
}

/// An origin that sends a 103 response with these fields, and its answer only when `/early.css` was asked for.
async fn thinking(early: &'static str, fields: &'static str, page: &'static str) -> Origin {
    let asked = std::sync::Arc::new(tokio::sync::Notify::new());
    Origin::start(move |mut peer: Peer| {
        let asked = asked.clone();
        async move {
            match peer.path() {
                "/early.css" => {
                    asked.notify_one();
                    return echo_path(peer).await;
                }
                "/" => {}
                _ => return echo_path(peer).await,
            }
            peer.say(format!("HTTP/1.1 103 Early Hints\r\n{early}\r\n")).await;
            asked.notified().await;
            peer.answer(fields, page).await;
            Some(peer)
        }
    })
    .await
}

#[tokio::test]
async fn what_early_hints_name_is_fetched_while_the_origin_thinks_and_not_again() {
    let early = "link: </early.css>; rel=preload; as=style\r\n";
    let page = "<link rel=stylesheet href=/early.css><link rel=icon href=/c.png>";
    let fields = "content-type: text/html | link: </early.css>; rel=preload; as=style";
    let origin = thinking(early, fields, page).await;
    let pair = Pair::new(&[]).await;
    let mut events = pair.bus.subscribe();
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert!(reply.whole && reply.informed.len() == 1);
    assert_eq!(reply.promised_paths(), ["/early.css", "/c.png"]);
    let (mut kept, mut left) = (vec![pushed(&pair).await.0, pushed(&pair).await.0], Vec::new());
    kept.sort_unstable();
    left.extend(reply.promises.iter().map(|(promise, ..)| *promise));
    assert_eq!(kept, left);
    let promised = event(&mut events, |event| match event {
        Event::PageRead { promised, .. } => Some(*promised),
        _ => None,
    });
    assert_eq!(promised.await, 2, "one page, one plan");
}

#[tokio::test]
async fn early_hints_obey_the_policy_that_comes_with_them_and_the_page_obeys_its_own() {
    let early = "content-security-policy: script-src 'none'\r\n\
                 link: </early.css>; rel=preload; as=style, </early.js>; rel=preload; as=script\r\n";
    let page = "<script src=/late.js></script><img src=/c.png>";
    let fields = "content-type: text/html | content-security-policy: img-src 'none'";
    let origin = thinking(early, fields, page).await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(reply.promised_paths(), ["/early.css", "/late.js"]);
}

#[tokio::test]
async fn early_hints_of_what_is_no_page_bring_what_they_name_and_nothing_more() {
    let early = "link: </early.css>; rel=preload; as=style\r\n";
    let origin = thinking(early, "content-type: text/plain", "<img src=/c.png>").await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert!(reply.whole);
    assert_eq!(reply.promised_paths(), ["/early.css"]);
}

#[tokio::test]
async fn what_a_page_names_is_asked_for_with_the_cookie_that_it_sets() {
    let origin = site("content-type: text/html | set-cookie: a=b", PAGE, echo_path).await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(reply.promises.len(), 4);
    for (_, asked, _) in &reply.promises {
        assert_eq!(asked.fields["cookie"], "session=1; a=b", "{}", asked.path);
    }
}

/// Answers a chain: page → stylesheet → imported stylesheet, image and font; frame → its image.
async fn nested(mut peer: Peer) -> Option<Peer> {
    let css = "content-type: text/css";
    let (fields, body) = match peer.path() {
        "/moved.css" => {
            peer.say("HTTP/1.1 302 Found\r\nlocation: /css/main.css\r\ncontent-length: 0\r\n\r\n").await;
            return Some(peer);
        }
        "/css/main.css" => (
            css,
            "@import 'more.css'; .shown { background: url(../used.png) } .other { background: url(unused.png) }",
        ),
        "/css/more.css" => (
            css,
            "@font-face { font-family: F; src: url(f.woff2) format('woff2') } body { font-family: F } #none { background: url(none.png) }",
        ),
        "/frame" => ("content-type: text/html", "<img src=in-frame.png>"),
        "/unseen" => (
            "content-type: text/html",
            "<style>body{background:url(back.png)}</style><img src=in-unseen.png>",
        ),
        "/app.js" => ("content-type: text/javascript", "import './part.js'; console.log(1)"),
        _ => ("content-type: application/octet-stream", "x"),
    };
    peer.answer(fields, body).await;
    Some(peer)
}

#[tokio::test]
async fn what_promised_files_name_in_turn_is_promised_on_their_pushes() {
    const PAGE: &str = "<!doctype html><link rel=stylesheet href=/moved.css><p class=shown>text</p><iframe src=/frame></iframe>\
                        <iframe hidden src=/unseen></iframe><script type=module src=/app.js></script>";
    let origin = site("content-type: text/html", PAGE, nested).await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    let mut promised: Vec<_> =
        reply.promises.iter().map(|(number, head, _)| (*number, "/".to_owned(), head.clone())).collect();
    let mut kept = 0;
    while kept < promised.len() {
        let (number, push) = pushed(&pair).await;
        kept += 1;
        let by = promised.iter().find(|(promise, ..)| *promise == number).unwrap().2.path.clone();
        promised.extend(push.promises.into_iter().map(|(number, head, _)| (number, by.clone(), head)));
    }
    let mut paths: Vec<_> = promised.iter().map(|(_, by, head)| (by.as_str(), head.path.as_str())).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            ("/", "/app.js"),
            ("/", "/favicon.ico"),
            ("/", "/frame"),
            ("/", "/moved.css"),
            ("/", "/unseen"),
            ("/app.js", "/part.js"),
            ("/css/main.css", "/css/more.css"),
            ("/css/more.css", "/css/f.woff2"),
            ("/css/more.css", "/used.png"),
            ("/frame", "/in-frame.png"),
            ("/moved.css", "/css/main.css"),
            ("/unseen", "/in-unseen.png"),
        ],
        "what no element matches is left alone, and so is what nothing that is displayed needs"
    );
    let referer = |path: &str| {
        let (.., head) = promised.iter().find(|(.., head)| head.path == path).unwrap();
        head.fields["referer"].to_str().unwrap().rsplit_once(&origin.addr.to_string()).unwrap().1.to_owned()
    };
    assert_eq!(referer("/css/f.woff2"), "/css/more.css");
    assert_eq!(referer("/in-frame.png"), "/frame");
}

#[tokio::test]
async fn what_was_just_pushed_is_not_pushed_again() {
    let answer = |mut peer: Peer| async move {
        let kept = if peer.path() == "/c.png" { "no-store" } else { "max-age=600" };
        peer.answer(&format!("content-type: text/css | cache-control: {kept}"), "x").await;
        Some(peer)
    };
    let origin = site("content-type: text/html", PAGE, answer).await;
    let pair = Pair::new(&[]).await;
    let mut events = pair.bus.subscribe();
    let first = pair.get(&navigate(&origin, "/")).await;
    for _ in 0..first.promises.len() {
        pushed(&pair).await;
        // A push counts as held once ground has ended it.
        support::event(&mut events, |event| {
            matches!(event, Event::Fetched { unasked: true, .. }).then_some(())
        })
        .await;
    }
    let second = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(second.promised_paths(), ["/c.png"]);
    let mut reload = navigate(&origin, "/");
    reload.fields.insert("cache-control", "no-cache".parse().unwrap());
    assert_eq!(pair.get(&reload).await.promises.len(), 4, "a reload wants everything anew");
}

#[tokio::test]
async fn what_is_no_page_promises_nothing() {
    for fields in ["content-type: text/plain", "content-type: text/html | content-disposition: attachment"] {
        let origin = site(fields, PAGE, echo_path).await;
        let pair = Pair::new(&[]).await;
        let reply = pair.get(&navigate(&origin, "/")).await;
        assert!(reply.whole && reply.promises.is_empty(), "{fields}");
        assert_eq!(origin.paths(), ["/"], "{fields}");
    }
    let origin = site("content-type: text/html", PAGE, echo_path).await;
    let pair = Pair::new(&[]).await;
    let mut frame = navigate(&origin, "/");
    frame.fields.insert("sec-fetch-dest", "iframe".parse().unwrap());
    assert!(pair.get(&frame).await.promises.is_empty());
    let off = Pair::new(&["bundle.enabled=false"]).await;
    assert!(off.get(&navigate(&origin, "/")).await.promises.is_empty());
}

#[tokio::test]
async fn what_sets_a_cookie_is_not_pushed_and_not_fetched_unasked_again() {
    async fn cookie(mut peer: Peer) -> Option<Peer> {
        peer.answer("content-type: text/css | set-cookie: a=b", "x").await;
        Some(peer)
    }
    let origin = site(
        "content-type: text/html",
        "<link rel=icon href=data:,><link rel=stylesheet href=/a.css>",
        cookie,
    )
    .await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(reply.promised_paths(), ["/a.css"]);
    let (promise, push) = pushed(&pair).await;
    assert_eq!(promise, reply.promises[0].0);
    assert_eq!(&*push.failure().token, "promise_withdrawn");
    let again = pair.get(&navigate(&origin, "/")).await;
    assert!(again.promises.is_empty());
    assert_eq!(origin.paths(), ["/", "/a.css", "/"]);
}

#[tokio::test]
async fn a_promise_that_cannot_be_kept_is_withdrawn() {
    async fn close(_: Peer) -> Option<Peer> {
        None
    }
    let origin = site("content-type: text/html", PAGE, close).await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    for _ in &reply.promises {
        let (_, push) = pushed(&pair).await;
        assert!(push.head.is_none());
        assert_eq!(&*push.failure().token, "connection_terminated");
    }
}

#[tokio::test]
async fn answers_other_than_200_keep_a_promise_too() {
    async fn missing(mut peer: Peer) -> Option<Peer> {
        peer.say("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\ncontent-type: text/html\r\n\r\nnone").await;
        Some(peer)
    }
    let origin = site("content-type: text/html", PAGE, missing).await;
    let pair = Pair::new(&[]).await;
    pair.get(&navigate(&origin, "/")).await;
    let (_, push) = pushed(&pair).await;
    assert_eq!((push.head().status.as_u16(), &push.body[..]), (404, &b"none"[..]));
}

#[tokio::test]
async fn a_promise_that_the_remote_does_not_want_is_not_fetched_further() {
    let (told, mut tell) = mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer: Peer| {
        let told = told.clone();
        async move {
            if peer.path() == "/" {
                peer.answer("content-type: text/html", "<link rel=icon href=data:,><img src=/slow.png>")
                    .await;
                return Some(peer);
            }
            told.send("asked").unwrap();
            peer.read().await;
            told.send("closed").unwrap();
            None
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(tell.recv().await, Some("asked"));
    let unwanted = reply.promises[0].0;
    pair.hop.refuse_promises(unwanted..=unwanted);
    assert_eq!(tell.recv().await, Some("closed"));
}

#[tokio::test]
async fn a_page_is_not_sent_more_unasked_than_its_budgets_allow() {
    async fn big(mut peer: Peer) -> Option<Peer> {
        peer.answer("content-type: image/png", noise(400_000)).await;
        Some(peer)
    }
    let page: String = (0..5).map(|number| format!("<img src=/{number}.png>")).collect();
    let origin = site("content-type: text/html", format!("<link rel=icon href=data:,>{page}"), big).await;
    let pair = Pair::new(&["bundle.bytes=1 MB", "bundle.hints=4"]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(reply.promises.len(), 4);
    let mut kept = 0;
    for _ in 0..4 {
        let (_, push) = pushed(&pair).await;
        kept += usize::from(push.whole);
        assert!(push.whole || push.body.is_empty());
    }
    assert_eq!(kept, 2, "what does not fit whole is left to the browser");
}

#[tokio::test]
async fn what_is_fetched_is_told_with_its_sizes() {
    let body = "a { color: red } ".repeat(2_000);
    let origin = site(
        "content-type: text/html",
        "<link rel=icon href=data:,><link rel=stylesheet href=/a.css>",
        |mut peer| async move {
            peer.answer("content-type: text/css", "a { color: red } ".repeat(2_000)).await;
            Some(peer)
        },
    )
    .await;
    let pair = Pair::new(&[]).await;
    let mut events = pair.bus.subscribe();
    pair.get(&navigate(&origin, "/")).await;
    let (origin_bytes, crossed_bytes) = support::event(&mut events, |event| match event {
        Event::Fetched { unasked: true, origin_bytes, crossed_bytes, .. } => {
            Some((*origin_bytes, *crossed_bytes))
        }
        _ => None,
    })
    .await;
    assert_eq!(origin_bytes, body.len() as u64);
    assert!(crossed_bytes < 200);
    assert_eq!(pair.bus.counters().promised(), 1);
}

#[tokio::test]
async fn a_document_resumed_in_its_middle_promises_only_for_the_rest() {
    let page =
        format!("<link rel=icon href=data:,><img src=/a.png>{}<img src=/b.png>", "word ".repeat(40_000));
    let origin = site("content-type: text/html", page.clone(), echo_path).await;
    let pair = Pair::new(&[]).await;
    let prefix = *blake3::hash(&page.as_bytes()[..150_000]).as_bytes();
    let resume = farhop_htotp::frame::Resume { offset: 150_000, prefix };
    let reply = pair.get_from(&navigate(&origin, "/"), Some(resume)).await;
    assert!(reply.whole && reply.body == page.as_bytes()[150_000..]);
    assert_eq!(reply.promised_paths(), ["/b.png"]);
}

#[tokio::test]
async fn a_document_that_is_left_ends_its_fetch() {
    let (told, mut tell) = mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer: Peer| {
        let told = told.clone();
        async move {
            peer.say("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9999\r\n\r\n<p>").await;
            peer.read().await;
            told.send(()).unwrap();
            None
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&navigate(&origin, "/"), None);
    sender.finish(None);
    assert!(matches!(receiver.next().await, Arrival::Answered { .. }));
    drop(receiver);
    assert_eq!(tell.recv().await, Some(()));
}

#[tokio::test]
async fn an_address_that_is_not_of_the_public_internet_is_not_promised() {
    let page = "<img src=http://10.0.0.1/a.png><img src='http://[::ffff:192.168.0.1]/b.png'><img src=/c.png>";
    let origin = site("content-type: text/html", page, echo_path).await;
    let pair = Pair::new(&[]).await;
    assert_eq!(pair.get(&navigate(&origin, "/")).await.promised_paths(), ["/c.png", "/favicon.ico"]);
}

#[tokio::test]
async fn a_site_without_an_icon_is_asked_for_one_unasked_once() {
    let origin = site("content-type: text/html", "<img src=/c.png>", |mut peer: Peer| async move {
        if peer.path() != "/favicon.ico" {
            return echo_path(peer).await;
        }
        peer.say("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\ncontent-type: text/html\r\n\r\nnone").await;
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    assert_eq!(pair.get(&navigate(&origin, "/")).await.promised_paths(), ["/c.png", "/favicon.ico"]);
    for _ in 0..2 {
        pushed(&pair).await;
    }
    assert_eq!(pair.get(&navigate(&origin, "/")).await.promised_paths(), ["/c.png"]);
}
