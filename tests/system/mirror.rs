//! A second page of one site: ground pushes nothing of it that the remote holds fresh, on a new carrier neither.

use farhop_testkit::{File, Site, SiteOrigin};
use http::Method;
use http_body_util::{BodyExt as _, Empty};
use serde_json::Value;

use crate::support::{Pair, ask, request, send, until};

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
