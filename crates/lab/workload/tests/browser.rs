//! The browser drivers against the origins on loopback, through real Chromium and Firefox. Need node, the browser and for Chromium
//! playwright-core (`./run test` installs them); without them each test says so and passes over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use farhop_workload::browser::{Browser, BrowserError, Engine, Order};
use farhop_workload::origins::{OriginSpec, OriginsSpec, Ready, serve, site::sha256_hex};
use farhop_workload::programs;

async fn origins(folder: &Path, names: &[&str]) -> Ready {
    let origin = |(place, name): (usize, &&str)| {
        OriginSpec::new(*name, Ipv4Addr::new(127, 0, 0, 1 + place as u8), folder.join("site"))
    };
    let origins = names.iter().enumerate().map(origin).collect();
    let spec = OriginsSpec { log: Some(folder.join("log")), ..OriginsSpec::on_free_ports(origins, folder) };
    serve(&spec).await.unwrap()
}

fn site(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("site")).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join("site").join(name), bytes).unwrap();
    }
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_timed_and_every_resource_hashed_in_both_versions_of_http() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let (page, style) =
        (&b"<link rel=stylesheet href=a.css><p>hello<img src=missing.png>"[..], &b"p { color: red }"[..]);
    let folder = site(&[("index.html", page), ("a.css", style)]);
    let ready = origins(folder.path(), &["a.test"]).await;
    let tls = format!("https://{}/", ready.origins[0].https);
    let variants = [
        (format!("http://{}/", ready.origins[0].http), true, "HTTP/1.1"),
        (tls.clone(), false, "HTTP/1.1"),
        (tls, true, "HTTP/2.0"),
    ];
    for (url, http2, protocol) in variants {
        let order = Order { http2, spki: Some(ready.spki.clone()), ..Order::new(url) };
        let load = browser.load(&order).await.unwrap();
        assert!(
            load.load_ms.unwrap() > 0.0
                && load.first_paint_ms.unwrap() > 0.0
                && load.first_byte_ms.unwrap() > 0.0
        );
        let seen: Vec<_> = load.resources.iter().map(|r| (r.status, r.sha256.clone())).collect();
        assert_eq!(seen[0], (Some(200), Some(sha256_hex(page))), "{load:?}");
        assert_eq!(seen[1], (Some(200), Some(sha256_hex(style))));
        assert_eq!(seen[2].0, Some(404));
        assert!(load.resources.iter().all(|r| r.protocol.as_deref() == Some(protocol)), "{load:?}");
        for phases in load.resources.iter().map(|r| [r.start_ms, r.sent_ms, r.first_byte_ms, r.end_ms]) {
            let phases = phases.map(Option::unwrap);
            // The clocks of the page and of the browser's network part may differ by a little.
            assert!(phases.is_sorted_by(|earlier, later| *earlier <= later + 50.0), "{phases:?}");
        }
        // Nothing starts before the navigation, and an image that the load event waits for is there before it.
        assert!(load.resources.iter().all(|r| r.start_ms.unwrap() >= -1.0), "{load:?}");
        let last = load.last_resource_ms().unwrap();
        assert!(last > load.first_byte_ms.unwrap() && last <= load.load_ms.unwrap(), "{load:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_failures_and_pages_that_never_rest_are_told_not_hung_on() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let page = b"<script>setInterval(() => fetch('/tick'), 50); fetch('http://nowhere.invalid/x')</script>";
    let folder = site(&[]);
    std::fs::create_dir(folder.path().join("site/sub")).unwrap();
    std::fs::write(folder.path().join("site/sub/index.html"), page).unwrap();
    let ready = origins(folder.path(), &["a.test"]).await;
    let url = format!("http://{}/sub", ready.origins[0].http);
    let order = Order { idle: Duration::from_millis(200), ..Order::new(url.clone()) };
    let load = browser.load(&order).await.unwrap();
    assert_eq!(
        (load.resources[0].status, load.resources[0].redirected_to.clone()),
        (Some(301), Some(format!("{url}/")))
    );
    assert_eq!(load.url, format!("{url}/"));
    let lost = load.resources.iter().find(|r| r.url == "http://nowhere.invalid/x").unwrap();
    assert_eq!(lost.failure.as_deref(), Some("net::ERR_NAME_NOT_RESOLVED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_cannot_be_had_is_a_result_and_a_browser_that_cannot_be_had_an_error() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    // An address of its own: the port must not become another test's once it is free.
    let closed = std::net::TcpListener::bind("127.9.9.9:0").unwrap().local_addr().unwrap();
    let load = browser.load(&Order::new(format!("http://{closed}/"))).await.unwrap();
    assert_eq!(load.load_ms, None);
    assert!(load.errors[0].contains("ERR_CONNECTION_REFUSED"), "{load:?}");
    let absent = Browser { executable: "/nonexistent/chromium".into(), ..browser };
    let error = absent.load(&Order::new("http://a.test/")).await.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/chromium"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_made_the_browser_ask_is_told_and_the_picture_shows_the_page() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let page =
        b"<link rel=stylesheet href=a.css><body style='margin:0'><p>x<script>fetch('by-script')</script>";
    let style = b"p { height: 6000px; margin: 0; background: url(by-style.png) #fff }";
    let folder = site(&[("index.html", page), ("a.css", style)]);
    let ready = origins(folder.path(), &["a.test"]).await;
    let url = format!("http://{}/", ready.origins[0].http);
    let picture = folder.path().join("page.png");
    let order = Order { screenshot: Some(picture.clone()), initiators: true, ..Order::new(&url) };
    let load = browser.load(&order).await.unwrap();
    let initiator = |name: &str| {
        let found = load.resources.iter().find(|resource| resource.url == format!("{url}{name}"));
        found.unwrap_or_else(|| panic!("{name} in {load:?}")).initiator.clone().unwrap()
    };
    assert!(initiator("a.css").is_markup() && initiator("by-style.png").is_markup());
    assert_eq!(initiator("by-style.png").url, Some(format!("{url}a.css")));
    assert_eq!(initiator("by-script").kind, "script");
    let (_, height) = image::image_dimensions(picture).unwrap();
    assert_eq!(height, 4000, "a page of 6,000 pixels is pictured down to 4,000");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_whose_document_nobody_could_bring_is_not_in_the_picture() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let page = format!(
        "<!doctype html><body style='margin:0;background:#fff'><iframe src=http://{nobody}/></iframe>"
    );
    let folder = site(&[("index.html", page.as_bytes())]);
    let ready = origins(folder.path(), &["a.test"]).await;
    let picture = folder.path().join("page.png");
    let url = format!("http://{}/", ready.origins[0].http);
    let order = Order { screenshot: Some(picture.clone()), ..Order::new(&url) };
    browser.load(&order).await.unwrap();
    let picture = image::open(picture).unwrap().into_rgb8();
    assert!(picture.pixels().all(|pixel| pixel.0 == [255; 3]), "a browser's own error page is grey");
}

#[tokio::test(flavor = "multi_thread")]
async fn firefox_times_a_page_and_holds_every_body_in_both_versions_of_http() {
    if !programs::at_hand(&["firefox-esr", "node"]) {
        return;
    }
    let browser = Browser::of(Engine::Firefox, "/nonexistent/node");
    let page = &b"<link rel=stylesheet href=a.css><p>hello<img src=missing.png><iframe src=sub></iframe>"[..];
    let style = &b"p { color: red }"[..];
    let folder = site(&[("index.html", page), ("a.css", style)]);
    std::fs::create_dir(folder.path().join("site/sub")).unwrap();
    std::fs::write(folder.path().join("site/sub/index.html"), b"<p>within").unwrap();
    let ready = origins(folder.path(), &["a.test"]).await;
    let tls = format!("https://{}/", ready.origins[0].https);
    let variants = [
        (format!("http://{}/", ready.origins[0].http), true, "http/1.1"),
        (tls.clone(), false, "http/1.1"),
        (tls, true, "h2"),
    ];
    for (url, http2, protocol) in variants {
        let order = Order { http2, spki: Some(ready.spki.clone()), ..Order::new(url.clone()) };
        let load = browser.load(&order).await.unwrap();
        assert!(load.load_ms.unwrap() > 0.0 && load.first_paint_ms.unwrap() > 0.0, "{load:?}");
        assert!(load.browser.as_ref().unwrap().starts_with("Firefox "), "{load:?}");
        let seen = |end: &str| {
            let url = format!("{url}{end}");
            let found = load.resources.iter().find(|resource| resource.url == url);
            found.unwrap_or_else(|| panic!("{url} is not in {load:?}"))
        };
        for (end, bytes) in [("", page), ("a.css", style), ("sub/", b"<p>within")] {
            assert_eq!((seen(end).status, seen(end).sha256.clone()), (Some(200), Some(sha256_hex(bytes))));
        }
        assert_eq!(seen("missing.png").status, Some(404));
        let led = (seen("sub").status, seen("sub").redirected_to.clone());
        assert_eq!(led, (Some(301), Some(format!("{url}sub/"))));
        assert!(load.resources.iter().all(|r| r.protocol.as_deref() == Some(protocol)), "{load:?}");
        let style = seen("a.css");
        let phases = [style.start_ms, style.sent_ms, style.first_byte_ms, style.end_ms].map(Option::unwrap);
        assert!(phases.is_sorted_by(|earlier, later| *earlier <= later + 50.0), "{phases:?}");
        // Those of everyone in this network, which is the machine's.
        assert!(load.connections.unwrap() >= 1, "{load:?}");
    }
    // What it is not driven to do is refused, and what cannot be reached told.
    let pictured = Order { screenshot: Some("x.png".into()), ..Order::new("http://a.test/") };
    assert!(matches!(browser.prepare(&pictured), Err(BrowserError::Beyond { what: "take pictures", .. })));
    let load = browser.load(&Order::new("http://127.0.0.1:9/")).await.unwrap();
    assert!(
        load.load_ms.is_none() && load.document_failure().is_some() && !load.errors.is_empty(),
        "{load:?}"
    );
}
