//! Pages that were visited before: what their scripts will ask for is on its way before the page is.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use farhop_htotp::RequestHead;
use farhop_htotp::frame::Priority;
use farhop_htotp::mirror::{Bound, Entry, Validators, Word, fingerprint};
use farhop_htotp::session::Ask;
use farhop_transport::hop::{Arrival, Receiver};
use http::{HeaderMap, header};
use serde_json::{Value, json};
use support::{Origin, Pair, Peer, Reply, get, navigate, pushed, site};
use tokio::sync::watch;

const PAGE: &str = "<!doctype html><link rel=icon href=data:,><script src=/loader.js></script><p>text</p>";
/// What its mark-up names, which may be promised as early where a page is as short as this.
const NAMED: &str = "/loader.js";
const IMAGES: usize = 8;

/// A loader that names what it loads in no way that a reader could follow.
async fn answer(mut peer: Peer) -> Option<Peer> {
    match peer.path() {
        "/loader.js" => {
            peer.answer("content-type: text/javascript | cache-control: no-store", "boot(7)").await
        }
        "/mod/a.js" | "/mod/b.js" => {
            peer.answer("content-type: text/javascript | cache-control: public, max-age=0", "define(1)")
                .await;
        }
        "/list.json" => {
            peer.answer("content-type: application/json | cache-control: no-store", "[1,2,3]").await
        }
        _ => peer.answer("content-type: image/png | cache-control: public, max-age=0", "an image").await,
    }
    Some(peer)
}

async fn gallery() -> Origin {
    site("content-type: text/html | cache-control: no-store", PAGE, answer).await
}

/// What the page asks for, in this order.
fn wanted() -> Vec<String> {
    let modules = ["/loader.js", "/mod/a.js", "/mod/b.js", "/list.json"].map(String::from);
    modules.into_iter().chain((0..IMAGES).map(|number| format!("/img/{number}.png"))).collect()
}

/// The request with which the browser of [`navigate`] asks for this in the page.
fn asked(origin: &Origin, path: &str) -> RequestHead {
    let mut head = get(origin, path);
    let document = navigate(origin, "/");
    for name in ["user-agent", "accept-language", "cookie"] {
        if let Some(value) = document.fields.get(name) {
            head.fields.insert(name.parse::<http::HeaderName>().unwrap(), value.clone());
        }
    }
    let accept = match path {
        "/list.json" => "application/json",
        path if path.ends_with(".png") => "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        _ => "*/*",
    };
    head.fields.insert("accept", accept.parse().unwrap());
    head.fields.insert("referer", document.url().parse().unwrap());
    if path.starts_with("/mod/") {
        head.fields.insert("origin", format!("http://{}", origin.addr).parse().unwrap());
    }
    head
}

fn next_exchange() -> u64 {
    static EXCHANGES: AtomicU64 = AtomicU64::new(1);
    EXCHANGES.fetch_add(1, Relaxed)
}

/// A browser that loads the page, and the remote that it asks through.
struct Browser<'a> {
    pair: &'a Pair,
    origin: &'a Origin,
    user: u64,
}

/// What became of a load.
#[derive(Debug, Default)]
struct Load {
    /// Promised before the document was there, though its mark-up does not name it.
    ahead: Vec<String>,
    /// Of what was asked for.
    crossed: Vec<String>,
}

impl Browser<'_> {
    async fn take(&self, head: &RequestHead) -> Reply {
        Reply::take(&mut self.ask(head)).await
    }

    fn ask(&self, head: &RequestHead) -> Receiver {
        self.ask_as(next_exchange(), head)
    }

    fn ask_as(&self, exchange: u64, head: &RequestHead) -> Receiver {
        let ask = Ask { exchange, user: self.user, ..Ask::default() };
        let (mut sender, receiver) = self.pair.hop.ask(ask, head);
        sender.finish(None);
        receiver
    }

    /// Asks for a page: what is promised on its stream, and whether that was before its response.
    async fn open(&self, document: &RequestHead) -> Vec<(u64, RequestHead, bool)> {
        let mut receiver = self.ask(document);
        let (mut promises, mut answered) = (Vec::new(), false);
        loop {
            match receiver.next().await {
                Arrival::Promised { promise, head, .. } => promises.push((promise, head, !answered)),
                Arrival::Answered { .. } => answered = true,
                Arrival::Ended => return promises,
                Arrival::Body(_) | Arrival::Informed(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Loads the page and all that it needs; what is promised answers only what is asked in the same words.
    async fn load(&self, document: &RequestHead) -> Load {
        self.load_with(document, document).await
    }

    /// The same where the remote says this to ground when its browser asks for the page.
    async fn load_with(&self, said: &RequestHead, document: &RequestHead) -> Load {
        let mut load = Load::default();
        let mut promised: BTreeMap<String, (u64, HeaderMap)> = BTreeMap::new();
        for (number, head, ahead) in self.open(said).await {
            if ahead && head.path != NAMED {
                load.ahead.push(head.path.clone());
            }
            promised.insert(head.path, (number, head.fields));
        }
        let mut arrived: BTreeMap<u64, Reply> = BTreeMap::new();
        for path in wanted() {
            let mut head = asked(self.origin, &path);
            if !document.fields.contains_key("cookie") {
                head.fields.remove("cookie");
            }
            let Some((number, fields)) = promised.get(&path) else {
                load.crossed.push(path);
                assert!(self.take(&head).await.failure.is_none());
                continue;
            };
            assert_eq!(fields, &head.fields, "{path} is promised as the browser asks for it");
            self.pair.hop.want(*number, Priority::default());
            while !arrived.contains_key(number) {
                let (number, push) = pushed(self.pair).await;
                assert!(push.failure.is_none(), "{push:?}");
                arrived.insert(number, push);
            }
            self.pair.hop.tell_used(*number..=*number);
        }
        load
    }
}

/// A pair whose remote has introduced itself.
async fn pair(sets: &[&str]) -> Pair {
    let pair = Pair::new(sets).await;
    while pair.ground.status()["carriers"][0]["agent"].is_null() {
        tokio::task::yield_now().await;
    }
    pair
}

fn browser<'a>(pair: &'a Pair, origin: &'a Origin, user: u64) -> Browser<'a> {
    Browser { pair, origin, user }
}

fn known(pair: &Pair, user: Option<&str>) -> Vec<Value> {
    let told = pair.ground.models(json!({ "site": "127.0.0.1" })).unwrap();
    let models = told["models"].as_array().unwrap().clone();
    models.into_iter().filter(|model| model["user"].as_str() == user).collect()
}

#[tokio::test]
async fn from_the_third_visit_on_what_scripts_ask_for_is_on_its_way_before_the_page_is() {
    let (origin, pair) = (gallery().await, pair(&[]).await);
    let browser = browser(&pair, &origin, 7);
    let document = navigate(&origin, "/");
    let first = browser.load(&document).await;
    assert!(
        first.ahead.is_empty() && first.crossed.len() == wanted().len() - 1,
        "the mark-up names one: {first:?}"
    );
    let second = browser.load(&document).await;
    assert_eq!(second.crossed, [""; 0], "all is promised at least");
    let third = browser.load(&document).await;
    assert_eq!(third.crossed, [""; 0]);
    let mut ahead = third.ahead.clone();
    ahead.sort();
    let mut all = wanted();
    all.retain(|path| path != NAMED);
    all.sort();
    assert_eq!(ahead, all, "before the first byte of the page");
    let models = known(&pair, Some("ship/7"));
    let resources = models[0]["resources"].as_array().unwrap();
    assert!(resources.iter().all(|one| one["means"] == "push"), "{resources:?}");
    assert!(
        known(&pair, None).iter().all(|model| model["resources"] == json!([])),
        "one user's serves no other"
    );
}

#[tokio::test]
async fn what_follows_a_page_that_the_remote_answers_is_on_its_way_too_and_its_visits_teach() {
    let (origin, pair) = (gallery().await, pair(&[]).await);
    let browser = browser(&pair, &origin, 7);
    let document = navigate(&origin, "/");
    let mut held = document.clone();
    held.fields.insert("farhop-held", 1.into());
    // Of the first nothing is known; what is asked for crosses.
    for _ in 0..2 {
        browser.load(&document).await;
    }
    let pages = origin.paths().iter().filter(|path| *path == "/").count();
    for visit in 3..=5 {
        let load = browser.load_with(&held, &document).await;
        assert_eq!(load.crossed, [""; 0], "visit {visit}");
        let models = known(&pair, Some("ship/7"));
        assert_eq!(models[0]["visits"], visit - 1);
        assert_eq!(models[0]["resources"].as_array().unwrap().len(), wanted().len());
    }
    assert_eq!(origin.paths().iter().filter(|path| *path == "/").count(), pages, "the page does not cross");
}

#[tokio::test]
async fn a_page_whose_mark_up_has_nothing_told_of_it_is_told_to_nobody_ahead_either() {
    let html = "<!doctype html><meta name=referrer content=no-referrer><link rel=icon href=data:,>\
        <script src=/loader.js></script>";
    let origin = site("content-type: text/html | cache-control: no-store", html, answer).await;
    let pair = pair(&[]).await;
    let browser = browser(&pair, &origin, 7);
    for visit in 1..=4 {
        let promises = browser.open(&navigate(&origin, "/")).await;
        assert!(!promises.is_empty(), "visit {visit}");
        for (number, head, _) in promises {
            assert_eq!(head.fields.get(header::REFERER), None, "visit {visit}");
            pushed(&pair).await;
            pair.hop.tell_used(number..=number);
        }
    }
    let models = known(&pair, Some("ship/7"));
    assert_eq!(models[0]["resources"][0]["means"], "push", "{models:?}");
}

#[tokio::test]
async fn what_three_users_have_shown_serves_a_fourth_without_cookies_and_nothing_else() {
    let (origin, pair) = (gallery().await, pair(&[]).await);
    let document = navigate(&origin, "/");
    for user in 1..=3 {
        for _ in 0..2 {
            browser(&pair, &origin, user).load(&document).await;
        }
    }
    // The visits of the third are over with the next one.
    browser(&pair, &origin, 3).load(&document).await;
    let promises = browser(&pair, &origin, 4).open(&document).await;
    let ahead = promises.iter().filter(|(_, head, ahead)| *ahead && head.path != NAMED);
    let ahead: Vec<_> = ahead.map(|(_, head, _)| head).collect();
    let paths: Vec<_> = ahead.iter().map(|head| head.path.as_str()).collect();
    assert_eq!(paths.len(), 2 + IMAGES, "neither what is fetched nor what may not be kept: {paths:?}");
    assert!(paths.contains(&"/mod/a.js") && paths.contains(&"/img/0.png"), "{paths:?}");
    assert!(ahead.iter().all(|head| !head.fields.contains_key("cookie")));
}

#[tokio::test]
async fn models_are_erased_by_host_or_all_and_nothing_is_learned_where_settings_say_so() {
    let (origin, pair) = (gallery().await, pair(&[]).await);
    let document = navigate(&origin, "/");
    for _ in 0..3 {
        browser(&pair, &origin, 7).load(&document).await;
    }
    assert!(!known(&pair, Some("ship/7")).is_empty());
    assert_eq!(pair.ground.models(json!({ "site": "else.test", "erase": true })).unwrap()["erased"], 0);
    assert!(
        pair.ground.models(json!({ "site": "127.0.0.1", "erase": true })).unwrap()["erased"].as_u64()
            > Some(0)
    );
    assert_eq!(pair.ground.models(Value::Null).unwrap()["sites"], json!({}));
    let promises = browser(&pair, &origin, 7).open(&document).await;
    assert!(promises.iter().all(|(_, head, _)| head.path == NAMED), "the mark-up's own");
    assert!(pair.ground.models(json!({ "sight": "x" })).unwrap_err().contains("sight"));

    let off = self::pair(&["models.enabled=false"]).await;
    for _ in 0..3 {
        assert!(browser(&off, &origin, 7).load(&document).await.ahead.is_empty());
    }
    assert_eq!(off.ground.status()["models"]["models"], 0);
}

#[tokio::test]
async fn what_may_be_written_down_outlives_ground_and_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ground.models");
    let set = format!("models.file={}", file.display());
    let origin = gallery().await;
    let document = navigate(&origin, "/");
    {
        let pair = pair(&[&set]).await;
        for user in 1..=3 {
            for _ in 0..3 {
                browser(&pair, &origin, user).load(&document).await;
            }
        }
        pair.ground.drain(std::time::Duration::from_millis(1)).await;
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("/mod/a.js") && !text.contains("list.json"), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let pair = pair(&[&set]).await;
    let promises = browser(&pair, &origin, 9).open(&document).await;
    assert!(promises.iter().any(|(_, head, ahead)| *ahead && head.path == "/mod/a.js"), "{promises:?}");
    pair.ground.models(json!({ "erase": true })).unwrap();
    assert!(!std::fs::read_to_string(&file).unwrap().contains("/mod/a.js"));
}

/// A page whose content policy is another from its fourth visit on; its images are answered once the test lets them.
async fn moody(let_in: watch::Receiver<bool>) -> Origin {
    let visits = Arc::new(AtomicU64::new(0));
    Origin::start(move |mut peer: Peer| {
        let (visits, mut let_in) = (Arc::clone(&visits), let_in.clone());
        async move {
            if peer.path() != "/" {
                if peer.path().ends_with(".png") {
                    let_in.wait_for(|open| *open).await.unwrap();
                }
                return answer(peer).await;
            }
            // As pages do that give each of their responses a nonce of its own.
            let visit = visits.fetch_add(1, Relaxed);
            let images = if visit < 3 { "'self'" } else { "'none'" };
            let policy = format!("script-src 'nonce-{visit}'; img-src {images}");
            let fields = format!(
                "content-type: text/html | cache-control: no-store | content-security-policy: {policy}"
            );
            let page = PAGE.replace("<script", &format!("<script nonce={visit}"));
            peer.answer(&fields, page).await;
            Some(peer)
        }
    })
    .await
}

#[tokio::test]
async fn what_the_page_forbids_now_is_not_sent_once_that_is_known() {
    let (lets, let_in) = watch::channel(true);
    let (origin, pair) = (moody(let_in).await, pair(&[]).await);
    let browser = browser(&pair, &origin, 7);
    let document = navigate(&origin, "/");
    for _ in 0..3 {
        browser.load(&document).await;
    }
    lets.send_replace(false);
    let promises = browser.open(&document).await;
    let images = promises.iter().filter(|(_, head, _)| head.path.ends_with(".png")).count();
    assert_eq!(images, IMAGES, "the page of the last visit had them: {promises:?}");
    lets.send_replace(true);
    for _ in &promises {
        let (number, push) = pushed(&pair).await;
        let (_, head, _) = promises.iter().find(|(promise, ..)| *promise == number).unwrap();
        match head.path.ends_with(".png") {
            true => assert_eq!(push.failure().token, "promise_withdrawn", "{}", head.path),
            false => assert!(push.failure.is_none(), "{}: {push:?}", head.path),
        }
    }
}

#[tokio::test]
async fn the_plan_of_a_page_tells_what_earlier_visits_have_taught() {
    let (origin, pair) = (gallery().await, pair(&[]).await);
    let document = navigate(&origin, "/");
    let url = document.url().parse().unwrap();
    let explained = async || pair.ground.explain(&url, document.fields.clone()).await.unwrap();
    assert_eq!(explained().await.learned, []);
    for _ in 0..3 {
        browser(&pair, &origin, 7).load(&document).await;
    }
    let learned = explained().await.learned;
    let own = learned.iter().find(|learned| learned.user.as_deref() == Some("ship/7")).unwrap();
    assert_eq!((&own.template, own.visits), (&None, 2), "the third is not over");
    let list = own.resources.iter().find(|one| one.url.ends_with("/list.json")).unwrap();
    assert_eq!((&*list.destination, list.means.as_deref()), ("fetch", Some("push")), "{own:?}");
    let all = learned.iter().find(|learned| learned.user.is_none()).unwrap();
    assert_eq!(all.resources, [], "one user's serves no other");
}

#[tokio::test]
async fn a_users_own_models_outlive_ground_where_the_settings_name_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ground.own");
    let set = format!("models.own_file={}", file.display());
    let origin = gallery().await;
    let document = navigate(&origin, "/");
    {
        let pair = pair(&[&set]).await;
        for _ in 0..3 {
            browser(&pair, &origin, 7).load(&document).await;
        }
        pair.ground.drain(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let pair = pair(&[&set]).await;
    assert_eq!(known(&pair, None), [] as [Value; 0], "what one has shown is not everyone's");
    let load = browser(&pair, &origin, 7).load(&document).await;
    assert_eq!((load.ahead.len(), load.crossed), (wanted().len() - 1, vec![]), "as if nothing had been");
    let other = browser(&pair, &origin, 8).open(&document).await;
    assert!(other.iter().all(|(_, head, _)| head.path == NAMED), "{other:?}");
    // What of it is held and stale is asked about, though nobody remembers what the page named.
    let held = entry(&origin, "/mod/b.js", 0);
    let validators = Validators { number: held.number, tag: "\"1\"".into(), modified: 0 };
    pair.hop.tell_mirror(Word::Stored(vec![held]));
    pair.hop.tell_mirror(Word::Validators(vec![validators]));
    while pair.ground.status()["carriers"][0]["validators"] != 1 {
        tokio::task::yield_now().await;
    }
    let mut asking = browser(&pair, &origin, 7).ask_as(next_exchange(), &document);
    let reply = Reply::take(&mut asking).await;
    assert_eq!(reply.validating.iter().map(|(_, entry)| *entry).collect::<Vec<_>>(), [5], "{reply:?}");
    pair.ground.models(json!({ "site": "127.0.0.1", "erase": true })).unwrap();
    assert!(!std::fs::read_to_string(&file).unwrap().contains("127.0.0.1"));
}

/// What the remote holds of this, for everyone, so many seconds fresh.
fn entry(origin: &Origin, path: &str, fresh_s: u64) -> Entry {
    let (head, bound) = (asked(origin, path), Bound::to([&header::ORIGIN]).unwrap());
    let fingerprint = fingerprint(None, &head.url(), bound, &head.fields);
    Entry { number: 5, user: None, bound, fresh_s, fingerprint }
}

#[tokio::test]
async fn what_the_remote_answers_by_itself_is_learned_from_its_word() {
    let (origin, pair) = (gallery().await, pair(&[]).await);
    let browser = browser(&pair, &origin, 7);
    let document = navigate(&origin, "/");
    browser.load(&document).await;
    pair.hop.tell_mirror(Word::Stored(vec![entry(&origin, "/mod/a.js", 3600)]));
    while pair.ground.status()["carriers"][0]["mirror"] != 1 {
        tokio::task::yield_now().await;
    }
    for visit in 1..=3 {
        let page = next_exchange();
        let reply = Reply::take(&mut browser.ask_as(page, &document)).await;
        assert!(!reply.promised_paths().contains(&"/mod/a.js"), "it is held: {reply:?}");
        // Of the others nobody knows what they are.
        pair.hop.tell_answered(page, &[(5, 300), (6, 400)]);
        while pair.ground.status()["models"]["answered"] != visit {
            tokio::task::yield_now().await;
        }
    }
    pair.hop.tell_answered(u64::MAX >> 2, &[(5, 300)]);
    let models = known(&pair, Some("ship/7"));
    let resources = models[0]["resources"].as_array().unwrap();
    let module = resources.iter().find(|one| one["url"].as_str().unwrap().ends_with("/mod/a.js")).unwrap();
    assert_eq!(
        (&module["visits"], &module["asked"]),
        (&3.into(), &3.into()),
        "the last is not over: {module}"
    );
}
