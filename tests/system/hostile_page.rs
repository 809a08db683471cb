//! A page that means harm to whoever reads ahead: it loads, and costs no more than any page may.

use farhop_testkit::HostilePage;
use farhop_testkit::hostile_page::ORDINARY;

use http::Method;
use http_body_util::{BodyExt as _, Empty};

use crate::support::{Local, get, request, send};

/// Unasked requests that one page may cause (`ground.bundle.hints`).
const HINTS: usize = 2_000;
/// What both ends together may grow by.
const MEMORY: u64 = 50_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_page_loads_within_bounds_of_memory_and_fetches_and_reaches_nothing_private() {
    let page = HostilePage::serve().await;
    let hints = format!("ground.bundle.hints={HINTS}");
    let mut local = Local::start(&["--allow", "127.0.0.1/32", "--set", &hints]).await;
    let before = local.program.peak_memory();
    // Only what a browser asks for is read ahead for.
    let asked = request(Method::GET, &page.url("/"))
        .header("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0")
        .header("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
        .header("upgrade-insecure-requests", "1");
    let document = send(local.proxy, asked.body(Empty::new().boxed()).unwrap()).await;
    assert!(document.whole && document.bytes == page.document(), "the document is not whole");
    for path in ORDINARY {
        let answer = get(local.proxy, &page.url(path)).await;
        assert_eq!((answer.status, answer.bytes), (200, HostilePage::ordinary(path)), "{path}");
    }
    let grown = local.program.peak_memory() - before;
    local.program.assert_runs();
    assert!(grown < MEMORY, "the ends together have grown by {grown} bytes");
    // The document and what this test asked for itself.
    let asked = page.asked("/");
    assert!(asked <= HINTS + 1 + ORDINARY.len(), "{asked} requests reached the origin");
    assert!(page.asked("/many/") > 0, "nothing was fetched ahead: this proves nothing");
    assert!(!page.reached_private(), "a private address was reached");
}
