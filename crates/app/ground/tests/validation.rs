//! What the remote holds and has to have validated: ground asks the origin about it along with the page that names it.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use farhop_htotp::RequestHead;
use farhop_htotp::mirror::{Bound, Entry, Validators, Word, fingerprint};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use support::{Origin, Pair, Peer, Reply, navigate, pushed};
use tokio::sync::Notify;
use tokio::time::{Duration, sleep};

const PAGE: &str = "<!doctype html><title>t</title><link rel=icon href=data:,><link rel=stylesheet href=/a.css>\
                    <img src=/c.png><img src=/d.png>";
const FRESH_AGAIN: &str = "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\ncache-control: max-age=600\r\n\r\n";

/// The page, and files whose tag is `"1"`: asked with that, they are confirmed. `/changed` files have another by now.
async fn answer(mut peer: Peer) -> Option<Peer> {
    let confirmed = peer.head.contains("if-none-match: \"1\"\r\n");
    match peer.path().to_owned().as_str() {
        "/" if !confirmed => {
            peer.answer("content-type: text/html | etag: \"1\" | cache-control: no-cache", PAGE).await;
        }
        "/c.png" if confirmed => {
            peer.answer("content-type: image/png | etag: \"2\" | cache-control: max-age=600", "a new one")
                .await;
        }
        "/d.png" if confirmed => {
            peer.say(FRESH_AGAIN.replace("\r\n\r\n", "\r\nset-cookie: a=b\r\n\r\n")).await;
        }
        _ if confirmed => peer.say(FRESH_AGAIN).await,
        path => peer.answer("content-type: text/css | etag: \"1\" | cache-control: max-age=0", path).await,
    }
    Some(peer)
}

fn entry(origin: &Origin, number: u64, user: Option<u64>, path: &str) -> Entry {
    let bound = Bound::to([&header::ORIGIN]).unwrap();
    let url = format!("http://{}{path}", origin.addr);
    let fingerprint = fingerprint(user, &url, bound, &HeaderMap::new());
    Entry { number, user, bound, fresh_s: 0, fingerprint }
}

/// Tells that these are held, stale, with the tag `"1"`, and waits until ground has heard it.
async fn hold(pair: &Pair, entries: Vec<Entry>) {
    let count = entries.len();
    hold_besides(pair, entries, count).await;
}

/// The same where that makes so many in all.
async fn hold_besides(pair: &Pair, entries: Vec<Entry>, count: usize) {
    let validators =
        entries.iter().map(|entry| Validators { number: entry.number, tag: "\"1\"".into(), modified: 0 });
    let validators = validators.collect();
    pair.hop.tell_mirror(Word::Stored(entries));
    pair.hop.tell_mirror(Word::Validators(validators));
    while pair.ground.status()["carriers"][0]["validators"] != count {
        sleep(Duration::from_millis(5)).await;
    }
}

/// The pushes of a page, by number.
async fn pushes(pair: &Pair, count: usize) -> BTreeMap<u64, Reply> {
    let mut all = BTreeMap::new();
    while all.len() < count {
        let (number, reply) = pushed(pair).await;
        all.insert(number, reply);
    }
    all
}

/// The page asked for with the tag of what the remote holds of it.
fn again(origin: &Origin) -> RequestHead {
    let mut head = navigate(origin, "/");
    head.fields.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"1\""));
    head
}

#[tokio::test]
async fn what_a_page_names_and_the_remote_holds_stale_is_asked_about_and_confirmed_in_a_few_bytes() {
    let (origin, pair) = (Origin::start(answer).await, Pair::new(&[]).await);
    hold(&pair, vec![entry(&origin, 7, None, "/a.css"), entry(&origin, 8, Some(6), "/c.png")]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    let [(word, 7)] = reply.validating[..] else { panic!("{:?}", reply.validating) };
    assert_eq!(reply.promised_paths(), ["/c.png", "/d.png"], "one is another user's, of one nothing is held");
    let pushes = pushes(&pair, 3).await;
    let confirmed = &pushes[&word];
    assert_eq!((confirmed.head().status, confirmed.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let fields: Vec<&str> = confirmed.head().fields.keys().map(|name| name.as_str()).collect();
    assert_eq!(fields, ["cache-control"], "the remote knows the rest");
    let asked = origin.requests();
    assert!(
        asked.iter().any(|head| head.starts_with("get /a.css ") && head.contains("if-none-match: \"1\""))
    );
    assert!(!asked.iter().any(|head| head.starts_with("get /c.png ") && head.contains("if-none-match")));
    assert_eq!(pair.bus.counters().snapshot()["confirmed"], 1);
}

#[tokio::test]
async fn what_has_changed_is_promised_and_pushed_whole() {
    let (origin, pair) = (Origin::start(answer).await, Pair::new(&[]).await);
    hold(&pair, vec![entry(&origin, 7, None, "/c.png")]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    let [(word, 7)] = reply.validating[..] else { panic!("{:?}", reply.validating) };
    let pushes = pushes(&pair, 4).await;
    let told = &pushes[&word];
    assert!(told.head.is_none() && told.failure.is_some());
    assert_eq!(told.promised_paths(), ["/c.png"]);
    let (promise, asked, _) = &told.promises[0];
    assert!(!asked.fields.contains_key(header::IF_NONE_MATCH), "it is the browser's request");
    assert_eq!(pushes[promise].body, b"a new one");
    assert_eq!(pair.bus.counters().snapshot()["outdated"], 1);
}

#[tokio::test]
async fn a_confirmation_that_sets_a_cookie_is_left_to_the_browser() {
    let (origin, pair) = (Origin::start(answer).await, Pair::new(&[]).await);
    hold(&pair, vec![entry(&origin, 7, None, "/d.png")]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    let [(word, 7)] = reply.validating[..] else { panic!("{:?}", reply.validating) };
    assert!(pushes(&pair, 3).await[&word].failure.is_some());
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert!(reply.validating.is_empty(), "it is not fetched unasked again");
}

#[tokio::test]
async fn a_page_that_has_not_changed_has_all_that_it_names_validated_in_the_same_flight() {
    let (origin, pair) = (Origin::start(answer).await, Pair::new(&[]).await);
    let first = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(first.promised_paths(), ["/a.css", "/c.png", "/d.png"]);
    pushes(&pair, 3).await;
    hold(&pair, vec![entry(&origin, 7, None, "/a.css")]).await;

    let reply = pair.get(&again(&origin)).await;
    assert_eq!((reply.head().status, reply.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let [(word, 7)] = reply.validating[..] else { panic!("{:?}", reply.validating) };
    assert_eq!(reply.promised_paths(), ["/c.png", "/d.png"], "these are not held");
    assert_eq!(pushes(&pair, 3).await[&word].head().status, StatusCode::NOT_MODIFIED);

    // And once more: it is remembered on.
    let reply = pair.get(&again(&origin)).await;
    assert_eq!((reply.validating.len(), reply.promises.len()), (1, 2));
}

#[tokio::test]
async fn what_a_sheet_named_is_asked_about_when_the_sheet_is_confirmed_on_a_page_that_has_changed() {
    let origin = Origin::start(|mut peer: Peer| async move {
        let confirmed = peer.head.contains("if-none-match: \"1\"\r\n");
        match peer.path().to_owned().as_str() {
            "/" => {
                let page = "<!doctype html><link rel=icon href=data:,><link rel=stylesheet href=/a.css>";
                peer.answer("content-type: text/html | etag: \"1\" | cache-control: no-cache", page).await;
            }
            _ if confirmed => peer.say(FRESH_AGAIN).await,
            "/a.css" => {
                let fields = "content-type: text/css | etag: \"1\" | cache-control: max-age=0";
                peer.answer(fields, "@import '/b.css';").await;
            }
            _ => peer.answer("content-type: text/css | etag: \"1\" | cache-control: max-age=0", "p {}").await,
        }
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    assert_eq!(pair.get(&navigate(&origin, "/")).await.promised_paths(), ["/a.css"]);
    pushes(&pair, 2).await;
    hold(&pair, vec![entry(&origin, 7, None, "/a.css"), entry(&origin, 8, None, "/b.css")]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    let [(sheet, 7)] = reply.validating[..] else { panic!("{:?}", reply.validating) };
    let pushes = pushes(&pair, 2).await;
    let [(named, 8)] = pushes[&sheet].validating[..] else { panic!("{:?}", pushes[&sheet]) };
    assert_eq!(pushes[&named].head().status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn what_a_page_named_is_known_of_its_user_alone() {
    let (origin, pair) = (Origin::start(answer).await, Pair::new(&[]).await);
    pair.get(&navigate(&origin, "/")).await;
    pushes(&pair, 3).await;
    let ask = farhop_htotp::session::Ask { exchange: 900, user: 8, ..Default::default() };
    let (mut sender, mut receiver) = pair.hop.ask(ask, &again(&origin));
    sender.finish(None);
    let reply = Reply::take(&mut receiver).await;
    assert_eq!(reply.head().status, StatusCode::NOT_MODIFIED);
    assert!(reply.promises.is_empty() && reply.validating.is_empty());
}

#[tokio::test]
async fn a_reload_that_passes_caches_by_gets_the_whole_page() {
    let (origin, pair) = (Origin::start(answer).await, Pair::new(&[]).await);
    hold(&pair, vec![entry(&origin, 7, None, "/a.css")]).await;
    let mut reload = navigate(&origin, "/");
    for (name, value) in [(header::CACHE_CONTROL, "no-cache"), (header::PRAGMA, "no-cache")] {
        reload.fields.insert(name, HeaderValue::from_static(value));
    }
    let reply = pair.get(&reload).await;
    assert_eq!(reply.promised_paths(), ["/a.css", "/c.png", "/d.png"]);
}

/// The same behind a redirect from `/old`.
async fn moved(mut peer: Peer) -> Option<Peer> {
    if peer.path() == "/old" {
        peer.say("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n").await;
        return Some(peer);
    }
    answer(peer).await
}

#[tokio::test]
async fn a_page_behind_a_redirect_is_asked_about_and_what_it_names_in_the_same_flight() {
    let (origin, pair) = (Origin::start(moved).await, Pair::new(&[]).await);
    pair.get(&navigate(&origin, "/")).await;
    pushes(&pair, 3).await;
    hold(&pair, vec![entry(&origin, 7, None, "/"), entry(&origin, 8, None, "/a.css")]).await;

    let reply = pair.get(&navigate(&origin, "/old")).await;
    assert_eq!((reply.validating.len(), reply.promises.len()), (1, 0), "{reply:?}");
    let (word, 7) = reply.validating[0] else { panic!("{:?}", reply.validating) };
    let pushes = pushes(&pair, 4).await;
    let page = &pushes[&word];
    assert_eq!((page.head().status, page.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(page.promised_paths(), ["/c.png", "/d.png"], "these are not held");
    let [(style, 8)] = page.validating[..] else { panic!("{:?}", page.validating) };
    assert_eq!(pushes[&style].head().status, StatusCode::NOT_MODIFIED);
    let asked = origin.requests();
    assert!(asked.iter().any(|head| head.starts_with("get / ") && head.contains("if-none-match: \"1\"")));
}

#[tokio::test]
async fn a_page_behind_a_redirect_that_has_changed_is_promised_and_pushed() {
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/old" => return moved(peer).await,
            _ => {
                let fields = "content-type: text/html | etag: \"2\" | cache-control: no-cache";
                peer.answer(fields, "<!doctype html><link rel=icon href=data:,>another").await;
            }
        }
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    hold(&pair, vec![entry(&origin, 7, None, "/")]).await;
    let reply = pair.get(&navigate(&origin, "/old")).await;
    let (word, 7) = reply.validating[0] else { panic!("{:?}", reply.validating) };
    let pushes = pushes(&pair, 2).await;
    let told = &pushes[&word];
    assert!(told.head.is_none() && told.failure.is_some());
    assert_eq!(told.promised_paths(), ["/"]);
    assert!(pushes[&told.promises[0].0].body.ends_with(b"another"));
    assert_eq!(pair.bus.counters().snapshot()["outdated"], 1);
}

/// A page with a frame, whose document needs an image and a document of its own; all have the tag `"1"`.
async fn framed(mut peer: Peer) -> Option<Peer> {
    let fields =
        |kind: &str, cache: &str| format!("content-type: {kind} | etag: \"1\" | cache-control: {cache}");
    match peer.path().to_owned().as_str() {
        _ if peer.head.contains("if-none-match: \"1\"\r\n") => peer.say(FRESH_AGAIN).await,
        "/" => {
            let page = "<!doctype html><link rel=icon href=data:,><iframe src=/frame.html></iframe>";
            peer.answer(&fields("text/html", "no-cache"), page).await;
        }
        "/frame.html" => {
            let frame = "<!doctype html><img src=/in-frame.png><iframe src=/deeper.html></iframe>";
            peer.answer(&fields("text/html", "max-age=0"), frame).await;
        }
        "/deeper.html" => peer.answer(&fields("text/html", "max-age=0"), "<!doctype html>deeper").await,
        _ => peer.answer(&fields("image/png", "max-age=0"), "an image").await,
    }
    Some(peer)
}

/// A ground whose user has read that page, and whose remote holds what is in it, stale.
async fn after_a_visit_with_frames() -> (Origin, Pair) {
    let (origin, pair) = (Origin::start(framed).await, Pair::new(&[]).await);
    let first = pair.get(&navigate(&origin, "/")).await;
    assert_eq!(first.promised_paths(), ["/frame.html"]);
    pushes(&pair, 3).await;
    let held = |number, path| entry(&origin, number, None, path);
    let all = vec![held(7, "/frame.html"), held(8, "/in-frame.png"), held(9, "/deeper.html")];
    hold(&pair, all).await;
    (origin, pair)
}

#[tokio::test]
async fn a_frame_of_a_page_that_has_not_changed_is_asked_about_and_what_it_needs_in_the_same_flight() {
    let (origin, pair) = after_a_visit_with_frames().await;
    // Twice: it is remembered on.
    for _ in 0..2 {
        let reply = pair.get(&again(&origin)).await;
        let [(frame, 7)] = reply.validating[..] else { panic!("{reply:?}") };
        assert!(reply.promises.is_empty());
        let pushes = pushes(&pair, 2).await;
        let told = &pushes[&frame];
        assert_eq!((told.head().status, told.body.len()), (StatusCode::NOT_MODIFIED, 0));
        // The frame within the frame is left to the browser: over plain HTTP the remote could not tell it from a page.
        let [(image, 8)] = told.validating[..] else { panic!("{told:?}") };
        assert!(told.promises.is_empty());
        assert_eq!(pushes[&image].head().status, StatusCode::NOT_MODIFIED);
    }
}

#[tokio::test]
async fn what_a_frame_needs_that_the_remote_holds_fresh_is_asked_about_with_its_page() {
    let (origin, pair) = after_a_visit_with_frames().await;
    let fresh = Entry { fresh_s: 600, ..entry(&origin, 7, None, "/frame.html") };
    pair.hop.tell_mirror(Word::Stored(vec![fresh]));
    // What is told before is heard before.
    hold_besides(&pair, vec![entry(&origin, 10, None, "/last")], 4).await;
    for head in [again(&origin), navigate(&origin, "/")] {
        let reply = pair.get(&head).await;
        let [(image, 8)] = reply.validating[..] else { panic!("{reply:?}") };
        assert!(reply.promises.is_empty());
        assert_eq!(pushes(&pair, 1).await[&image].head().status, StatusCode::NOT_MODIFIED);
    }
}

#[tokio::test]
async fn what_a_frame_of_another_version_needed_is_not_asked_about() {
    let (origin, pair) = after_a_visit_with_frames().await;
    let fresh = Entry { fresh_s: 600, ..entry(&origin, 7, None, "/frame.html") };
    let other = Validators { number: 7, tag: "\"2\"".into(), modified: 0 };
    pair.hop.tell_mirror(Word::Stored(vec![fresh]));
    pair.hop.tell_mirror(Word::Validators(vec![other]));
    // What is told before is heard before.
    hold_besides(&pair, vec![entry(&origin, 10, None, "/last")], 4).await;
    let reply = pair.get(&again(&origin)).await;
    assert!(reply.validating.is_empty() && reply.promises.is_empty(), "{reply:?}");
}

/// The page, which the remote answers by itself from this entry.
fn held(origin: &Origin, number: u64) -> RequestHead {
    let mut head = navigate(origin, "/");
    head.fields.insert("farhop-held", HeaderValue::from(number));
    head
}

/// A pair that has read the page, and whose remote holds it as entry 8, and a file of it, stale, as 7.
async fn read_and_held(sets: &[&str], origin: &Origin) -> Pair {
    let pair = Pair::new(sets).await;
    let promises = pair.get(&navigate(origin, "/")).await.promises.len();
    pushes(&pair, promises).await;
    hold(&pair, vec![entry(origin, 7, None, "/a.css"), entry(origin, 8, None, "/")]).await;
    pair
}

#[tokio::test]
async fn a_page_that_the_remote_answers_has_all_that_it_names_validated_in_one_flight() {
    let origin = Origin::start(answer).await;
    let pair = read_and_held(&[], &origin).await;
    let before = origin.paths().len();
    let reply = pair.get(&held(&origin, 8)).await;
    assert_eq!((reply.head().status, reply.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert!(reply.head().fields.is_empty(), "a word and no more: {:?}", reply.head());
    let [(word, 7)] = reply.validating[..] else { panic!("{:?}", reply.validating) };
    assert_eq!(reply.promised_paths(), ["/c.png", "/d.png"], "these are not held");
    assert!(reply.promises.iter().all(|(_, head, _)| !head.fields.contains_key("farhop-held")));
    assert_eq!(pushes(&pair, 3).await[&word].head().status, StatusCode::NOT_MODIFIED);
    assert!(origin.paths()[before..].iter().all(|path| path != "/"), "nobody asks for the page");
    assert!(origin.requests().iter().all(|head| !head.contains("farhop-held")));
}

#[tokio::test]
async fn nothing_goes_with_a_page_that_is_another_than_was_read_or_where_settings_say_so() {
    let origin = Origin::start(answer).await;
    let nothing = async |pair: &Pair, number| {
        let reply = pair.get(&held(&origin, number)).await;
        assert_eq!(reply.head().status, StatusCode::NOT_MODIFIED);
        assert!(reply.promises.is_empty() && reply.validating.is_empty(), "{reply:?}");
    };
    let pair = read_and_held(&[], &origin).await;
    nothing(&pair, 9).await;
    let other = Validators { number: 8, tag: "\"2\"".into(), modified: 0 };
    pair.hop.tell_mirror(Word::Validators(vec![other]));
    hold_besides(&pair, vec![entry(&origin, 9, None, "/e.css")], 3).await;
    nothing(&pair, 8).await;
    nothing(&read_and_held(&["bundle.enabled=false"], &origin).await, 8).await;
}

#[tokio::test]
async fn a_page_without_validators_is_known_by_its_date() {
    const DATED: &str =
        "content-type: text/html | cache-control: max-age=2147483648 | date: Sun, 06 Nov 1994 08:49:37 GMT";
    let origin = Origin::start(async |mut peer: Peer| {
        match peer.path() == "/" {
            true => peer.answer(DATED, PAGE).await,
            false => return answer(peer).await,
        }
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    let promises = pair.get(&navigate(&origin, "/")).await.promises.len();
    pushes(&pair, promises).await;
    hold(&pair, vec![entry(&origin, 7, None, "/a.css")]).await;
    for (said, count) in [("9;dated=784111778", 0), ("9", 0), ("9;dated=784111777", 1)] {
        let mut head = navigate(&origin, "/");
        head.fields.insert("farhop-held", said.parse().unwrap());
        let reply = pair.get(&head).await;
        assert_eq!(
            (reply.head().status, reply.validating.len()),
            (StatusCode::NOT_MODIFIED, count),
            "{said}"
        );
    }
}

#[tokio::test]
async fn an_icon_that_the_remote_holds_is_not_asked_for_again() {
    let page = PAGE.replace("<link rel=icon href=data:,>", "");
    let origin = Origin::start(move |mut peer: Peer| {
        let page = page.clone();
        async move {
            match peer.path() == "/" {
                true => {
                    peer.answer("content-type: text/html | etag: \"1\" | cache-control: max-age=600", page)
                        .await
                }
                false => return answer(peer).await,
            }
            Some(peer)
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&navigate(&origin, "/")).await;
    assert!(reply.promised_paths().contains(&"/favicon.ico"), "{:?}", reply.promised_paths());
    pushes(&pair, reply.promises.len()).await;
    let icon = Entry { fresh_s: 600, ..entry(&origin, 7, None, "/favicon.ico") };
    hold(&pair, vec![icon, entry(&origin, 8, None, "/")]).await;
    let reply = pair.get(&held(&origin, 8)).await;
    assert_eq!(reply.promised_paths(), ["/a.css", "/c.png", "/d.png"]);
    assert!(reply.validating.is_empty(), "{:?}", reply.validating);
}

#[tokio::test]
async fn what_the_browser_asks_for_while_it_is_promised_is_sent_once() {
    let (images, again) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let asked_again = Arc::clone(&again);
    let origin = Origin::start(move |peer: Peer| {
        // What is asked for once the page is opened again is never answered: the browser's own request is.
        let is_slow = peer.path() == "/c.png" && images.fetch_add(1, Relaxed) == 1;
        let asked_again = Arc::clone(&asked_again);
        async move {
            if is_slow {
                asked_again.notify_one();
                pending::<()>().await;
            }
            answer(peer).await
        }
    })
    .await;
    let pair = read_and_held(&[], &origin).await;
    let reply = pair.get(&held(&origin, 8)).await;
    let image = reply.promises.iter().find(|(_, head, _)| head.path == "/c.png");
    let (promise, asked, _) = image.unwrap();
    again.notified().await;
    assert_eq!(pair.get(asked).await.body, b"/c.png");
    let failure = pushes(&pair, 3).await.remove(promise).unwrap();
    assert!(failure.head.is_none() && failure.failure().detail.contains("has asked for it"), "{failure:?}");
}
