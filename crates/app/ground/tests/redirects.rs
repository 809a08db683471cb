//! Documents that lead elsewhere: the next step is promised on the redirect's stream and pushed, with all that it needs.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_events::Event;
use farhop_htotp::RequestHead;
use farhop_transport::hop::Arrival;
use http::Method;
use support::{Origin, Pair, Peer, Reply, event, navigate, pushed};
use tokio::sync::mpsc;

const CSS: &str = "content-type: text/css";

fn leads(status: &str, place: &str, more: &str) -> String {
    format!("HTTP/1.1 {status}\r\nlocation: {place}\r\n{more}content-length: 0\r\n\r\n")
}

/// A chain `/` → `/one` → `/en/`, which is a page.
async fn chain(mut peer: Peer) -> Option<Peer> {
    match peer.path() {
        "/" => {
            peer.say(leads(
                "301 Moved Permanently",
                "/one#top",
                "set-cookie: a=1\r\nset-cookie: in=1; path=/en\r\n",
            ))
            .await;
        }
        "/one" => peer.say(leads("307 Temporary Redirect", "en/?q=1", "set-cookie: a=2; path=/\r\n")).await,
        "/en/?q=1" => {
            peer.answer(
                "content-type: text/html",
                "<link rel=icon href=data:,><link rel=stylesheet href=a.css>",
            )
            .await;
        }
        _ => peer.answer(CSS, "a{}").await,
    }
    Some(peer)
}

async fn post(pair: &Pair, origin: &Origin, path: &str) -> Reply {
    let mut form = RequestHead { method: Method::POST, ..navigate(origin, path) };
    let own = format!("http://{}", origin.addr);
    for (name, value) in [("origin", own.as_str()), ("content-type", "text/plain"), ("content-length", "3")] {
        form.fields.insert(name, value.parse().unwrap());
    }
    let (mut sender, mut receiver) = pair.ask(&form, None);
    sender.write("q=1".into()).await.unwrap();
    sender.finish(None);
    Reply::take(&mut receiver).await
}

#[tokio::test]
async fn each_step_is_promised_on_the_stream_of_the_one_before_with_the_cookies_set_on_the_way() {
    let origin = Origin::start(chain).await;
    let pair = Pair::new(&[]).await;
    let first = pair.get(&navigate(&origin, "/")).await;
    assert_eq!((first.head().status.as_u16(), first.promised_paths()), (301, vec!["/one"]));
    let (promise, second) = pushed(&pair).await;
    let (number, asked, _) = &first.promises[0];
    assert_eq!((promise, &asked.fields["cookie"]), (*number, &"session=1; a=1".parse().unwrap()));
    assert_eq!((second.head().status.as_u16(), second.promised_paths()), (307, vec!["/en/?q=1"]));
    let (promise, third) = pushed(&pair).await;
    let (number, asked, _) = &second.promises[0];
    assert_eq!((promise, &asked.fields["cookie"]), (*number, &"in=1; session=1; a=2".parse().unwrap()));
    assert_eq!((third.whole, third.promised_paths()), (true, vec!["/en/a.css"]));
    let style = &third.promises[0].1;
    assert_eq!(style.fields["referer"], format!("http://{}/en/?q=1", origin.addr));
    assert_eq!(style.fields["cookie"], "in=1; session=1; a=2");
    assert!(pushed(&pair).await.1.whole);
    assert_eq!(origin.paths(), ["/", "/one", "/en/?q=1", "/en/a.css"], "each once");
    for (sent, asked) in origin.requests()[1..3].iter().zip([&first.promises[0].1, &second.promises[0].1]) {
        for (name, value) in &asked.fields {
            let line = format!("{name}: {}\r\n", value.to_str().unwrap()).to_lowercase();
            assert!(sent.contains(&line), "{line} is not in {sent}");
        }
    }
}

#[tokio::test]
async fn the_result_of_a_form_is_followed_with_a_get_and_what_it_sets() {
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/login" => peer.say(leads("303 See Other", "/home", "set-cookie: in=1; path=/\r\n")).await,
            "/kept" => peer.say(leads("307 Temporary Redirect", "/home", "")).await,
            _ => {
                peer.answer("content-type: text/html | set-cookie: seen=1", "<link rel=icon href=/i.png>")
                    .await
            }
        }
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    let reply = post(&pair, &origin, "/login").await;
    assert_eq!(reply.promised_paths(), ["/home"]);
    let asked = &reply.promises[0].1;
    assert_eq!((&asked.method, &asked.fields["cookie"]), (&Method::GET, &"session=1; in=1".parse().unwrap()));
    assert!(
        ["origin", "content-type", "content-length"].iter().all(|name| !asked.fields.contains_key(*name))
    );
    let (_, home) = pushed(&pair).await;
    assert_eq!(home.head().fields["set-cookie"], "seen=1", "the browser gets it like any answer");
    assert_eq!(home.promises[0].1.fields["cookie"], "session=1; in=1; seen=1");
    pushed(&pair).await;
    assert!(post(&pair, &origin, "/kept").await.promises.is_empty(), "it would be sent again");
    assert_eq!(origin.paths(), ["/login", "/home", "/i.png", "/kept"]);
}

#[tokio::test]
async fn a_redirect_to_the_same_page_is_followed_once_it_has_set_a_cookie_and_loops_end() {
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/check" if peer.head.contains("seen=1") => peer.answer("content-type: text/plain", "in").await,
            "/check" => peer.say(leads("302 Found", "/check", "set-cookie: seen=1; path=/check\r\n")).await,
            "/a" => peer.say(leads("302 Found", "/b", "")).await,
            "/b" => peer.say(leads("302 Found", "/a", "")).await,
            path => {
                let next = format!("{path}x");
                peer.say(leads("302 Found", &next, "")).await;
            }
        }
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    assert_eq!(pair.get(&navigate(&origin, "/check")).await.promised_paths(), ["/check"]);
    assert_eq!(pushed(&pair).await.1.body, b"in");
    assert_eq!(pair.get(&navigate(&origin, "/a")).await.promised_paths(), ["/b"]);
    assert_eq!(pushed(&pair).await.1.promises.len(), 0, "/a was asked for like that");
    let mut events = pair.bus.subscribe();
    pair.get(&navigate(&origin, "/endless")).await;
    for _ in 0..9 {
        assert_eq!(pushed(&pair).await.1.promises.len(), 1);
    }
    assert_eq!(pushed(&pair).await.1.promises.len(), 0, "ten are enough");
    let last = event(&mut events, |told| match told {
        Event::Fetched { unasked: true, url, .. } if url.ends_with("xxxxxxxxxx") => Some(()),
        _ => None,
    });
    last.await;
    assert_eq!(origin.paths().len(), 2 + 2 + 11);
}

#[tokio::test]
async fn what_the_browser_does_not_follow_or_nobody_should_is_not_promised() {
    let origin = Origin::start(|mut peer: Peer| async move {
        let place = match peer.path() {
            "/private" => "http://10.0.0.1/",
            "/secure" => "https://127.0.0.1/",
            "/word" => "http://user:word@127.0.0.1/",
            "/mail" => "mailto:a@b.test",
            "/ticket" => "http://127.0.0.2/?ticket=1",
            _ => "/ok",
        };
        peer.say(leads("302 Found", place, "")).await;
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    let mut events = pair.bus.subscribe();
    for (path, why) in [
        ("/private", Some("its address is not of the public internet")),
        ("/secure", Some("this user's secure connections are not looked into")),
        ("/word", None),
        ("/mail", None),
        ("/ticket", Some("it is not sure how the browser goes on, or that it may be asked for twice")),
    ] {
        let reply = pair.get(&navigate(&origin, path)).await;
        assert!(reply.whole && reply.promises.is_empty(), "{path}: {:?}", reply.promises);
        let Some(why) = why else { continue };
        let told = event(&mut events, |told| match told {
            Event::PageRead { url, hints, skipped, .. } if url.ends_with(path) => {
                Some((hints["redirect"], skipped.clone()))
            }
            _ => None,
        });
        assert_eq!(told.await, (1, [(why.to_owned(), 1)].into()), "{path}");
    }
    let mut script = navigate(&origin, "/ok?");
    script.fields.insert("accept", "*/*".parse().unwrap());
    assert!(pair.get(&script).await.promises.is_empty(), "no document is asked for");
    let off = Pair::new(&["bundle.enabled=false"]).await;
    assert!(off.get(&navigate(&origin, "/any")).await.promises.is_empty());
}

#[tokio::test]
async fn what_is_no_page_and_has_no_end_in_sight_is_left_to_the_browser() {
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/" => peer.say(leads("302 Found", "/endless", "")).await,
            _ => {
                peer.say("HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
                    .await;
                peer.read().await;
                return None;
            }
        }
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(reply.promised_paths(), ["/endless"]);
    assert_eq!(&*pushed(&pair).await.1.failure().token, "promise_withdrawn");
}

#[tokio::test]
async fn a_step_that_the_remote_does_not_want_is_not_fetched_further() {
    let (told, mut tell) = mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer: Peer| {
        let told = told.clone();
        async move {
            if peer.path() == "/" {
                peer.say(leads("302 Found", "/slow", "")).await;
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
    let (mut sender, mut receiver) = pair.ask(&navigate(&origin, "/"), None);
    sender.finish(None);
    let Arrival::Promised { promise, .. } = receiver.next().await else {
        panic!("the step is promised first")
    };
    assert_eq!(tell.recv().await, Some("asked"));
    pair.hop.refuse_promises(promise..=promise);
    assert_eq!(tell.recv().await, Some("closed"));
}
