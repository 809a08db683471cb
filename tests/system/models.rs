//! Pages whose scripts ask for what no reading finds: from the third visit on it is on its way before it is asked for.

use std::net::SocketAddr;

use farhop_events::{Event, Subscription};
use farhop_testkit::{File, Site, SiteOrigin};
use http::Method;
use http_body_util::{BodyExt as _, Empty};
use serde_json::Value;

use crate::support::{InProcess, Pair, ask, request, send, until};

const AGENT: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";
const IMAGE: &str = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";

/// What a script asks for: the path, how it is accepted, who is told as referrer, and whether the origin is told.
struct Wanted {
    path: String,
    accept: &'static str,
    referer: &'static str,
    cors: bool,
}

/// A page, and what its scripts ask for one after the other. The page's mark-up names the first.
struct Page {
    path: &'static str,
    wanted: Vec<Wanted>,
}

/// A chain of modules, each of which computes the name of the next.
fn modules() -> Page {
    let first = Wanted { path: "/modules/0.js".into(), accept: "*/*", referer: "/modules/", cors: true };
    let chain = (1..8).map(|number| Wanted {
        path: format!("/modules/{number}.js"),
        accept: "*/*",
        referer: "/modules/0.js",
        cors: true,
    });
    Page { path: "/modules/", wanted: [first].into_iter().chain(chain).collect() }
}

/// A loader that puts script elements into the page.
fn amd() -> Page {
    let script = |path: String| Wanted { path, accept: "*/*", referer: "/amd/", cors: false };
    let files = (1..9).map(|number| script(format!("/amd/part/{number}.js")));
    Page { path: "/amd/", wanted: [script("/amd/require.js".into())].into_iter().chain(files).collect() }
}

/// A page that is made by its script of a list that it fetches.
fn rendered() -> Page {
    let of = |path: &str, accept| Wanted { path: path.into(), accept, referer: "/app/", cors: false };
    let mut wanted = vec![of("/app/app.js", "*/*"), of("/app/list.json", "application/json")];
    wanted.extend((0..12).map(|number| of(&format!("/app/photo/{number}.png"), IMAGE)));
    Page { path: "/app/", wanted }
}

fn pages() -> [Page; 3] {
    [modules(), amd(), rendered()]
}

/// The page's own text, which names the first of what is wanted.
fn html(page: &Page) -> String {
    let first = &page.wanted[0];
    let kind = if first.cors { " type=module" } else { "" };
    format!(
        "<!doctype html><link rel=icon href=data:,><script{kind} src={}></script><p>{}</p>",
        first.path,
        "text ".repeat(200)
    )
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript",
        Some("json") => "application/json",
        _ => "image/png",
    }
}

/// Nothing of it may be kept, so that all of it is needed at each visit.
async fn site() -> SiteOrigin {
    let mut site = Site::new();
    let file = |kind, body: String| File::new(kind, body).field("cache-control", "no-store");
    for page in pages() {
        site = site.file(page.path, file("text/html", html(&page)));
        for Wanted { path, .. } in &page.wanted {
            site = site.file(path, file(kind(path), "0123456789".repeat(40)));
        }
    }
    site.serve().await
}

/// Loads a page as a browser does that keeps nothing, through the proxy there; gives what came of what it asks for.
async fn load(proxy: SocketAddr, site: &SiteOrigin, page: &Page) -> Vec<Vec<u8>> {
    let document = request(Method::GET, &site.url(page.path))
        .header("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8")
        .header("upgrade-insecure-requests", "1")
        .header("user-agent", AGENT)
        .body(Empty::new().boxed())
        .unwrap();
    assert!(send(proxy, document).await.whole);
    let mut given = Vec::new();
    for Wanted { path, accept, referer, cors } in &page.wanted {
        let mut asked = request(Method::GET, &site.url(path))
            .header("accept", *accept)
            .header("user-agent", AGENT)
            .header("referer", site.url(referer));
        if *cors {
            asked = asked.header("origin", site.url("").trim_end_matches('/'));
        }
        let answer = send(proxy, asked.body(Empty::new().boxed()).unwrap()).await;
        assert!(answer.whole && answer.status == 200, "{path}: {answer:?}");
        given.push(answer.bytes.to_vec());
    }
    given
}

/// Waits until ground has heard of so many uses of promises.
async fn heard(pair: &Pair, uses: u64) {
    let control = pair.control("ground");
    until("ground has heard what was used", async || {
        (ask(&control, "status").await?["models"]["uses"].as_u64()? >= uses).then_some(())
    })
    .await;
}

fn number(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_third_visit_on_what_scripts_ask_for_is_promised_before_it_is_asked_for() {
    let mut pair = Pair::start().await;
    let site = site().await;
    let mut uses = 0;
    for page in pages() {
        let all = page.wanted.len() as u64;
        load(pair.proxy, &site, &page).await;
        // What the mark-up names was promised at the first visit already; all of it is at the second.
        uses += 1;
        heard(&pair, uses).await;
        load(pair.proxy, &site, &page).await;
        uses += all;
        heard(&pair, uses).await;

        let before = pair.counters("remote").await;
        load(pair.proxy, &site, &page).await;
        ask(&pair.control("remote"), "settle").await.unwrap();
        let after = pair.counters("remote").await;
        let more = |name| number(&after, name) - number(&before, name);
        let crossed = more("requests_crossed") - 1;
        assert!(crossed * 10 <= all, "{}: {crossed} of {all} crossed all the same: {after}", page.path);
        let wasted = more("wasted_bytes");
        assert!(wasted * 10 <= more("bytes_to_users"), "{}: {wasted} bytes in vain: {after}", page.path);
        uses += all;
        heard(&pair, uses).await;
    }
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learned_is_shown_and_erased_by_the_program() {
    let pair = Pair::start().await;
    let site = site().await;
    let page = rendered();
    for uses in [1, 1 + page.wanted.len() as u64] {
        load(pair.proxy, &site, &page).await;
        heard(&pair, uses).await;
    }
    load(pair.proxy, &site, &page).await;
    let socket = pair.control("ground");
    let models = |arguments: &[&str]| {
        let made = crate::support::farhop()
            .arg("models")
            .arg(arguments[0])
            .arg(&socket)
            .args(&arguments[1..])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap()
    };
    let host = site.address().ip().to_string();
    assert!(models(&["list"]).contains(&host));
    let shown = models(&["show", &host]);
    assert!(
        shown.contains("/app/photo/3.png") && shown.contains("push") && shown.contains("of user ship/"),
        "{shown}"
    );
    assert!(models(&["erase", &host]).contains("models forgotten"));
    assert!(models(&["show", &host]).starts_with("nothing is known"));
    let wrong =
        crate::support::farhop().args(["models", "list"]).arg(pair.control("remote")).output().unwrap();
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        !wrong.status.success() && said.contains("not ground's socket") && said.lines().count() == 1,
        "{said}"
    );
}

/// How long each file of [`to_be_validated`] may be kept: all have to be validated at the next visit, if not at each use.
const STALE: [&str; 3] = ["no-cache", "max-age=0", "private, no-cache"];

/// What is at `path` in this version.
fn version_of(path: &str, version: u64) -> String {
    format!("{path} {version} ").repeat(40)
}

/// Puts this version of the page's files there.
fn put(site: &SiteOrigin, page: &Page, version: u64) {
    for (number, Wanted { path, .. }) in page.wanted.iter().enumerate() {
        let file = File::new(kind(path), version_of(path, version));
        let file = file.field("cache-control", STALE[number % STALE.len()]);
        site.put(path, file.field("etag", &format!("\"{version}\"")));
    }
}

/// A site with this page, all of which is held and stale at the next visit.
async fn to_be_validated(page: &Page) -> SiteOrigin {
    let file = File::new("text/html", html(page)).field("cache-control", "no-cache");
    let site = Site::new().file(page.path, file).serve().await;
    put(&site, page, 1);
    site
}

/// What the next visit to be learned has asked for.
async fn learned(events: &mut Subscription) -> u64 {
    loop {
        let stamped = events.next().await.expect("the bus lives").expect("none is missed");
        if let Event::VisitLearned { asked, .. } = stamped.event {
            return asked;
        }
    }
}

/// Waits until ground knows the page and all of its files by what they can be validated, and what of them was used.
async fn told(ends: &InProcess, files: u64, used: u64) {
    until("ground has heard what the remote holds and has used", async || {
        let status = ends.ground.status();
        let held = status["carriers"].as_array()?.last()?["validators"].as_u64()?;
        let models = &status["models"];
        (held > files && models["uses"].as_u64()? + models["answered"].as_u64()? >= used).then_some(())
    })
    .await;
}

/// Visits the page six times, with the files of such versions; gives how many of the files were confirmed, and had changed.
async fn visits(page: &Page, version: impl Fn(u64) -> u64) -> (u64, u64) {
    let (ends, site) = (InProcess::start("none").await, to_be_validated(page).await);
    let (all, mut events) = (page.wanted.len() as u64, ends.ground_events.subscribe());
    let crossed = || number(&ends.events.counters().snapshot(), "requests_crossed");
    for visit in 1..=6 {
        let before = crossed();
        put(&site, page, version(visit));
        let given = load(ends.proxy, &site, page).await;
        for (Wanted { path, .. }, bytes) in page.wanted.iter().zip(&given) {
            assert_eq!(bytes, version_of(path, version(visit)).as_bytes(), "{path}");
        }
        if visit > 1 {
            assert_eq!(learned(&mut events).await, all, "{} at visit {}", page.path, visit - 1);
            // Of what has come anew at the last visit ground may not have heard: then it asks about what is gone.
            if visit == 2 || version(visit) == version(visit - 1) {
                assert_eq!(crossed() - before, 1, "{} alone crosses at visit {visit}", page.path);
            }
        }
        told(&ends, all, 1 + (visit - 1) * all).await;
    }
    let counters = ends.ground_events.counters().snapshot();
    (number(&counters, "confirmed"), number(&counters, "outdated"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_validated_counts_as_asked_for_and_nothing_that_is_held_back_is_waited_for_in_vain() {
    for page in pages() {
        let all = page.wanted.len() as u64;
        assert_eq!(visits(&page, |_| 1).await, (5 * all, 0), "{}", page.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_about_and_has_changed_counts_as_asked_for() {
    for page in pages() {
        let all = page.wanted.len() as u64;
        let (confirmed, outdated) = visits(&page, |visit| visit).await;
        assert!(confirmed == 0 && outdated >= all, "{}: {confirmed} and {outdated}", page.path);
    }
}
