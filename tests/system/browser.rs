//! A page in a real browser through `farhop local` on a satellite link. Needs node, Chromium and playwright-core
//! (`./run test` installs them); without them the test says so and passes over.

use std::path::Path;

use farhop_testkit::{File, Site};
use farhop_workload::browser::{Browser, Order};
use farhop_workload::origins::site::sha256_hex;

use crate::support::Local;

const PAGE: &str = "<!doctype html><link rel=icon href=icon.svg><link rel=stylesheet href=a.css>\
    <script src=a.js></script><p>hello<img src=1.svg><img src=2.svg><img srcset='3.svg 1x, 4.svg 2x'>";

fn svg(colour: &str) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9' fill='{colour}'/></svg>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_at_the_end_of_redirects_crosses_in_one_request_with_all_that_it_needs() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let page = "<!doctype html><link rel=icon href=data:,><link rel=stylesheet href=a.css><p>hello";
    let moved = |place: &str, cookie: &str| {
        File::new("text/html", "moved").field("location", place).field("set-cookie", cookie)
    };
    let site = Site::new()
        .file("/", moved("/start#here", "a=1"))
        .file("/start", moved("en/?q=%7C|", "b=1; path=/en"))
        .file("/en/?q=%7C|", File::new("text/html", page).field("set-cookie", "c=1"))
        .file("/en/a.css", File::new("text/css", "p { color: red }"));
    let origin = site.serve().await;
    let mut local = Local::allowed(&["--link", "geo-hylas2"]).await;
    let order = Order { proxy: Some(local.proxy.to_string()), ..Order::new(origin.url("/")) };
    let load = browser.load(&order).await.unwrap();
    assert!(load.errors.is_empty() && load.load_ms.is_some(), "{load:?}");
    let counted = local.counters().await;
    assert_eq!(counted["requests_crossed"], 1, "{counted}");
    let asked: Vec<_> = origin.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(asked, ["/", "/start", "/en/?q=%7C|", "/en/a.css"], "each once");
    local.program.assert_runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_crosses_in_one_request_and_every_file_is_right() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let pictures = ["icon", "1", "2", "3"]
        .map(|name| (format!("/{name}.svg"), "image/svg+xml", svg(&format!("#{name:0>3}"))));
    let mut files = vec![
        ("/a.css".to_owned(), "text/css", "p { color: red }".to_owned()),
        ("/a.js".to_owned(), "text/javascript", "document.title = 'run'".to_owned()),
    ];
    files.extend(pictures);
    let mut site = Site::new().file("/", File::new("text/html", PAGE));
    for (path, kind, text) in &files {
        site = site.file(path, File::new(kind, text.clone()));
    }
    let origin = site.serve().await;
    let mut local = Local::allowed(&["--link", "geo-hylas2"]).await;
    let order = Order { proxy: Some(local.proxy.to_string()), ..Order::new(origin.url("/")) };
    let load = browser.load(&order).await.unwrap();
    assert!(load.errors.is_empty() && load.load_ms.is_some(), "{load:?}");
    let counted = local.counters().await;
    assert_eq!(counted["requests_crossed"], 1, "{counted}");
    for (path, _, text) in files.iter().filter(|(path, ..)| path != "/icon.svg") {
        let got = load.resources.iter().find(|got| got.url == origin.url(path));
        let got = got.unwrap_or_else(|| panic!("{path} was not loaded: {load:?}"));
        assert_eq!(
            (got.status, got.sha256.clone()),
            (Some(200), Some(sha256_hex(text.as_bytes()))),
            "{path}"
        );
        assert_eq!(origin.times(path), 1, "{path}: {counted}");
    }
    local.program.assert_runs();
}
