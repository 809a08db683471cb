//! A second visit when nothing is fresh any more: ground asks the origin about all that the page names, along with the page
//! itself, and only the answers to that cross.

use farhop_orbit::Way;
use farhop_testkit::{File, Site, SiteOrigin};
use http::Method;
use http_body_util::{BodyExt as _, Empty};

use crate::support::{Answer, InProcess, request, send, until};

const PAGE: &str = "<!doctype html><title>t</title><link rel=icon href=data:,><link rel=stylesheet href=/site.css>\
                    <script src=/check.js></script><img src=/logo.png>";
/// What the page names, each with what its origin lets be done with it: all is stale at once, or to be validated always.
const NAMED: [(&str, &str, &str); 3] = [
    ("/site.css", "text/css", "max-age=0"),
    ("/check.js", "text/javascript", "no-cache"),
    ("/logo.png", "image/png", "private, max-age=0"),
];
const DOCUMENT: [(&str, &str); 2] =
    [("accept", "text/html,application/xhtml+xml,*/*;q=0.8"), ("upgrade-insecure-requests", "1")];
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36";

fn file(kind: &'static str, body: String, cache: &str) -> File {
    File::new(kind, body).field("cache-control", cache)
}

/// Text that does not get small.
fn content(path: &str, version: u32) -> String {
    let mut state = version;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 16) as u8 % 26)
    };
    format!("/* {path} {version} */{}", (0..20_000).map(|_| next()).collect::<String>())
}

async fn site() -> SiteOrigin {
    let to_page = File::new("text/html", "").field("cache-control", "no-store").field("location", "/page");
    let site = Site::new().file("/page", file("text/html", PAGE.into(), "no-cache")).file("/old", to_page);
    let named = NAMED.into_iter();
    let site =
        named.fold(site, |site, (path, kind, cache)| site.file(path, file(kind, content(path, 1), cache)));
    site.serve().await
}

async fn get(ends: &InProcess, url: &str, fields: &[(&str, &str)]) -> Answer {
    let asked = request(Method::GET, url).header("user-agent", AGENT);
    let asked = fields.iter().fold(asked, |asked, (name, value)| asked.header(*name, *value));
    send(ends.proxy, asked.body(Empty::new().boxed()).unwrap()).await
}

/// Opens the page as a browser does whose cache is empty, with all that it names; gives what came of that, in order.
async fn visit(ends: &InProcess, site: &SiteOrigin) -> Vec<String> {
    let url = site.url("/page");
    assert_eq!(get(ends, &url, &DOCUMENT).await.text(), PAGE);
    let mut given = Vec::new();
    for (path, kind, _) in NAMED {
        let accept = match kind {
            "text/css" => "text/css,*/*;q=0.1",
            "image/png" => "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
            _ => "*/*",
        };
        let answer = get(ends, &site.url(path), &[("accept", accept), ("referer", &url)]).await;
        assert!(answer.whole && answer.status == 200, "{path}: {answer:?}");
        given.push(answer.text());
    }
    given
}

/// Waits until ground knows of the page and of all that it names by what they can be validated.
async fn known(ends: &InProcess) {
    until("ground has heard what the remote holds", async || {
        let status = ends.ground.status();
        (status["carriers"].as_array()?.last()?["validators"].as_u64()? == 4).then_some(())
    })
    .await;
}

fn versions(all: [u32; 3]) -> Vec<String> {
    NAMED.iter().zip(all).map(|((path, ..), version)| content(path, version)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_visit_when_nothing_is_fresh_brings_the_origins_word_and_no_body() {
    let (ends, site) = (InProcess::start("none").await, site().await);
    assert_eq!(visit(&ends, &site).await, versions([1, 1, 1]));
    known(&ends).await;

    let crossed = ends.events.counters().snapshot()["requests_crossed"].as_u64().unwrap();
    let before = site.asked().len();
    ends.link.take_counters(Way::Forward);
    assert_eq!(visit(&ends, &site).await, versions([1, 1, 1]));
    let counters = ends.events.counters().snapshot();
    assert_eq!(counters["requests_crossed"].as_u64().unwrap(), crossed + 1, "the page alone");
    let asked = site.asked();
    assert_eq!(asked.len(), before + 4, "each once");
    for asked in &asked[before..] {
        assert!(asked.fields.contains_key("if-none-match"), "{asked:?}");
    }
    assert_eq!(ends.ground_events.counters().snapshot()["confirmed"], 3);
    let forward = ends.link.counters(Way::Forward).delivered.bytes.0;
    assert!(forward < 8_000, "{forward} bytes crossed, where the bodies have 60,000");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_changed_meanwhile_is_there_in_its_new_version() {
    let (ends, site) = (InProcess::start("none").await, site().await);
    visit(&ends, &site).await;
    known(&ends).await;
    for path in ["/check.js", "/logo.png"] {
        let (_, kind, cache) = NAMED.into_iter().find(|(own, ..)| *own == path).unwrap();
        site.put(path, file(kind, content(path, 2), cache));
    }
    assert_eq!(visit(&ends, &site).await, versions([1, 2, 2]));
    let counters = ends.ground_events.counters().snapshot();
    assert_eq!((&counters["confirmed"], &counters["outdated"]), (&1.into(), &2.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_behind_a_redirect_is_validated_in_the_flight_of_the_redirect() {
    let (ends, site) = (InProcess::start("none").await, site().await);
    visit(&ends, &site).await;
    known(&ends).await;
    let crossed = || ends.events.counters().snapshot()["requests_crossed"].as_u64().unwrap();
    let before = crossed();
    let led = get(&ends, &site.url("/old"), &DOCUMENT).await;
    assert_eq!((led.status, led.field("location")), (302, "/page"));
    assert_eq!(visit(&ends, &site).await, versions([1, 1, 1]));
    assert_eq!(crossed(), before + 1, "the redirect alone");
    assert_eq!(ends.ground_events.counters().snapshot()["confirmed"], 4);
    assert_eq!(ends.ground_events.counters().snapshot()["outdated"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_and_what_it_needs_are_validated_in_the_flight_of_their_page() {
    let page = "<!doctype html><link rel=icon href=data:,><iframe src=/frame.html></iframe>";
    let frame = "<!doctype html><img src=/in-frame.png>";
    let site = Site::new()
        .file("/page", file("text/html", page.into(), "no-cache"))
        .file("/frame.html", file("text/html", frame.into(), "max-age=0"))
        .file("/in-frame.png", file("image/png", content("/in-frame.png", 1), "max-age=0"));
    let (ends, site) = (InProcess::start("none").await, site.serve().await);
    let visit = async || {
        assert_eq!(get(&ends, &site.url("/page"), &DOCUMENT).await.text(), page);
        // Over plain HTTP browsers ask for it like for a page.
        let from = ("referer", &*site.url("/page"));
        let shown = get(&ends, &site.url("/frame.html"), &[DOCUMENT[0], DOCUMENT[1], from]).await;
        assert_eq!((shown.status, shown.text()), (200, frame.to_owned()));
        let accept = ("accept", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8");
        let from = ("referer", &*site.url("/frame.html"));
        assert_eq!(
            get(&ends, &site.url("/in-frame.png"), &[accept, from]).await.text(),
            content("/in-frame.png", 1)
        );
    };
    visit().await;
    until("ground has heard what the remote holds", async || {
        let status = ends.ground.status();
        (status["carriers"].as_array()?.last()?["validators"].as_u64()? == 3).then_some(())
    })
    .await;
    let crossed = || ends.events.counters().snapshot()["requests_crossed"].as_u64().unwrap();
    let (before, asked_before) = (crossed(), site.asked().len());
    visit().await;
    assert_eq!(crossed(), before + 1, "the page alone");
    let asked = site.asked();
    assert_eq!(asked.len(), asked_before + 3, "each once");
    assert!(asked[asked_before..].iter().all(|asked| asked.fields.contains_key("if-none-match")));
    assert_eq!(ends.ground_events.counters().snapshot()["confirmed"], 2);
}
