//! A page that is held fresh, and whose scripts ask for what is not, over a link with a long round trip.

use std::time::Duration;

use farhop_testkit::{File, Site, SiteOrigin};
use http::Method;
use http_body_util::{BodyExt as _, Empty};

use crate::support::{InProcess, request, send, until};

/// The page, and what its scripts ask for, each once the one before it is there. No text names any of it.
const CHAIN: [&str; 4] = ["/", "/one.js", "/two.json", "/three.json"];

/// The page may be kept for an hour, and nothing else at all. Its origin thinks for a moment, as origins do.
async fn site() -> SiteOrigin {
    CHAIN
        .into_iter()
        .fold(Site::new(), |site, path| {
            let (kind, caching) = match path {
                "/" => ("text/html", "max-age=3600"),
                "/one.js" => ("text/javascript", "no-store"),
                _ => ("application/json", "no-store"),
            };
            let file = File::new(kind, format!("what is at {path}")).field("cache-control", caching);
            site.file(path, file.field("etag", "\"1\"").delay(Duration::from_millis(100)))
        })
        .serve()
        .await
}

/// What `Cache-Status` says of each.
async fn visit(ends: &InProcess, site: &SiteOrigin) -> Vec<String> {
    let mut said = Vec::new();
    for path in CHAIN {
        let asked = request(Method::GET, &site.url(path))
            .header("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36")
            .header("accept-encoding", "gzip, deflate")
            .header("accept-language", "en");
        let asked = match path {
            "/" => asked.header("accept", "text/html,*/*;q=0.8").header("upgrade-insecure-requests", "1"),
            _ => asked.header("accept", "*/*").header("referer", site.url("/")),
        };
        let answer = send(ends.proxy, asked.body(Empty::new().boxed()).unwrap()).await;
        assert!(answer.whole && answer.text() == format!("what is at {path}"), "{answer:?}");
        said.push(answer.field("cache-status").to_owned());
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn what_scripts_of_a_held_page_ask_for_is_on_its_way_before_they_do() {
    let (ends, site) = (InProcess::start("geo-hylas2").await, site().await);
    let mut used = 0;
    for number in 0..4 {
        let said = visit(&ends, &site).await;
        assert_eq!(said[0].contains("hit"), number > 0, "the page is held: {said:?}");
        let collapsed = said.iter().filter(|said| said.contains("collapsed")).count() as u64;
        match number {
            0 => assert_eq!(collapsed, 0, "{said:?}"),
            3 => assert!(said[2..].iter().all(|said| said.contains("collapsed")), "{said:?}"),
            _ => {}
        }
        used += collapsed;
        // What was used of what was promised teaches the next visit.
        until("ground has heard what was used", async || {
            (ends.ground.status()["models"]["uses"].as_u64()? >= used).then_some(())
        })
        .await;
    }
}
