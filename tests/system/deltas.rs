//! A page that has changed crosses as what differs, a short one with what it has in common with others of its site; and a
//! client's own dictionaries (RFC 9842) pass as they are.

use farhop_testkit::{File, HostileOrigin, Site, SiteOrigin, Step};
use http::Method;
use http_body_util::{BodyExt as _, Empty};

use crate::support::{Answer, Pair, ask, request, send, until};

/// Words as people write them: a few hundred, some far oftener than others, in sentences.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn word(&mut self) -> String {
        let rank = (self.next() % 40) * (self.next() % 40);
        let mut letters = Words(rank);
        (0..3 + rank % 7).map(|_| char::from(b'a' + (letters.next() % 26) as u8)).collect()
    }

    fn sentence(&mut self) -> String {
        let count = 8 + self.next() % 9;
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

/// So many sentences in this form, of which every twentieth is another in each version.
fn text(kind: u64, sentences: u64, version: u64, form: impl Fn(u64, &str) -> String) -> String {
    let sentence = |number: u64| {
        let version = if number % 20 == 7 { version } else { 0 };
        Words(number * 1_000 + version * 1_000_003 + kind).sentence()
    };
    (0..sentences).map(|number| form(number, &sentence(number))).collect()
}

/// A page whose text is of this version, a stylesheet, a script and what that asks for: path, type and content.
fn contents(version: u64) -> [(&'static str, &'static str, String); 4] {
    let page = text(1, 700, version, |number, words| format!("<p id=p{number}>{words}.</p>\n"));
    let style = text(2, 200, version, |number, words| format!(".c{number} {{ content: \"{words}\" }}\n"));
    let script = text(3, 200, version, |number, words| format!("say({number}, '{words}');\n"));
    let list = text(4, 200, version, |number, words| format!("{{\"id\":{number},\"text\":\"{words}\"}},\n"));
    [
        ("/", "text/html; charset=utf-8", format!("<!doctype html><title>page</title>{page}")),
        ("/a.css", "text/css", style),
        ("/a.js", "text/javascript", script),
        ("/list.json", "application/json", format!("[{list}0]")),
    ]
}
const TEXTS: u64 = 4;

async fn get(pair: &Pair, url: &str) -> Answer {
    let browser = "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36";
    let asked = request(Method::GET, url).header("user-agent", browser).header("accept-encoding", "gzip, br");
    send(pair.proxy, asked.body(Empty::new().boxed()).unwrap()).await
}

/// The origin changes to this version, and all of it is asked for; gives the bytes of bodies that crossed.
async fn load(pair: &Pair, site: &SiteOrigin, version: u64) -> u64 {
    let before = crossed(pair).await;
    for (path, kind, content) in contents(version) {
        site.put(path, File::new(kind, content.clone()).field("cache-control", "no-cache"));
        let came = get(pair, &site.url(path)).await;
        assert!(came.whole && came.text() == content, "{path} is not what the origin has");
    }
    // It is counted when all is sent, which may be a moment after all has come.
    until("all is counted", async || (counted(pair, "fetches").await >= before.0 + TEXTS).then_some(()))
        .await;
    crossed(pair).await.1 - before.1
}

async fn counted(pair: &Pair, counter: &str) -> u64 {
    pair.counters("ground").await[counter].as_u64().unwrap()
}

/// Responses that ground has sent, and the bytes of their bodies as they crossed.
async fn crossed(pair: &Pair) -> (u64, u64) {
    let fetches = counted(pair, "fetches").await;
    (fetches, counted(pair, "bytes_from_origins").await - counted(pair, "bytes_squeezed").await)
}

/// Waits until ground knows of so many texts that the remote holds them.
async fn held(pair: &Pair, count: u64) {
    let control = pair.control("ground");
    until("ground has heard what the remote holds", async || {
        (ask(&control, "status").await?["texts"]["held"].as_u64()? == count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_5_percent_of_its_text_changed_a_page_takes_at_most_10_percent_of_the_bytes() {
    let mut pair = Pair::start().await;
    let site = Site::new().serve().await;
    let cold = load(&pair, &site, 1).await;
    held(&pair, TEXTS).await;
    let changed = load(&pair, &site, 2).await;
    assert!(changed * 10 <= cold, "{changed} of {cold} bytes");
    assert_eq!(counted(&pair, "deltas").await, TEXTS);
    // And so on with what has come so.
    held(&pair, TEXTS).await;
    let again = load(&pair, &site, 3).await;
    assert!(again * 10 <= cold, "{again} of {cold} bytes");
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ground_that_was_restarted_sends_whole_texts_and_then_what_differs_again() {
    let mut pair = Pair::start().await;
    let site = Site::new().serve().await;
    load(&pair, &site, 1).await;
    held(&pair, TEXTS).await;
    pair.ground.kill();
    pair.restart_ground();
    until("the remote has noticed", async || {
        (pair.counters("remote").await["carriers_down"].as_u64() > Some(0)).then_some(())
    })
    .await;
    pair.await_carrier().await;
    load(&pair, &site, 2).await;
    assert_eq!(counted(&pair, "deltas").await, 0);
    held(&pair, TEXTS).await;
    load(&pair, &site, 3).await;
    assert_eq!(counted(&pair, "deltas").await, TEXTS);
    pair.assert_both_run();
}

/// A short page of a site whose pages have most in common; its path is like no other's.
fn alike(number: u64) -> (String, String) {
    let name: String =
        [number / 26 / 26, number / 26, number].iter().map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    let common = text(5, 40, 0, |number, words| format!("<li id=l{number}><a href=/{number}>{words}</a>\n"));
    let own = text(6 + number, 6, 0, |_, words| format!("<p>{words}\n"));
    (format!("/{name}/{name}"), format!("<!doctype html><title>{name}</title>{common}{own}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_short_pages_of_a_site_have_in_common_crosses_once() {
    let mut pair = Pair::start().await;
    let site = Site::new().serve().await;
    let fetch = async |number| {
        let (path, content) = alike(number);
        site.put(&path, File::new("text/html", content.clone()).field("cache-control", "max-age=600"));
        let came = get(&pair, &site.url(&path)).await;
        assert!(came.whole && came.text() == content, "{path} is not what the origin has");
    };
    let mut number = 0;
    // Trained aside, offered when it has paid, taken behind all else: until then pages cross by themselves.
    while counted(&pair, "bodies_taught").await == 0 {
        fetch(number).await;
        number += 1;
        assert!(number < 2_000, "no dictionary is used");
    }
    assert_eq!((counted(&pair, "dictionaries_sent").await, counted(&pair, "deltas").await), (1, 0));
    let spared = counted(&pair, "bytes_spared_by_dictionaries").await;
    assert!(spared > alike(0).1.len() as u64 / 10, "{spared}");
    pair.assert_both_run();
}

/// RFC 9842: what an origin codes with a dictionary that this client has reaches it as it is, and no other client.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_coded_with_a_clients_dictionary_is_that_clients_alone() {
    let pair = Pair::start().await;
    let varies = ["Vary: Accept-Encoding, Available-Dictionary\r\n", ""];
    for (coding, vary) in ["dcz", "dcb"].into_iter().flat_map(|coding| varies.map(|vary| (coding, vary))) {
        let coded = b"\x5e\x2a\x4d\x18 what only a dictionary makes sense of";
        let play = |head: String, body: &[u8]| {
            let head = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: text/javascript\r\nContent-Length: {}\r\nConnection: close\r\n{head}\r\n",
                body.len()
            );
            vec![Step::ReadHead, Step::Send([head.as_bytes(), body].concat().into()), Step::Close]
        };
        let origin = HostileOrigin::playing(vec![
            play(format!("Content-Encoding: {coding}\r\n{vary}"), coded),
            play(vary.into(), b"in plain words"),
        ])
        .await;
        let url = origin.url("/app.js");
        let asked = request(Method::GET, &url)
            .header("accept-encoding", "gzip, br, zstd, dcb, dcz")
            .header("available-dictionary", ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:")
            .header("dictionary-id", "\"/app.js\"");
        let given = send(pair.proxy, asked.body(Empty::new().boxed()).unwrap()).await;
        assert_eq!((given.field("content-encoding"), &given.bytes[..]), (coding, &coded[..]));
        let head = origin.heads()[0].to_ascii_lowercase();
        assert!(
            head.contains("available-dictionary: :pzgm1av0iebkarczz7exknyszb8lzamrv7j32a2ffg4=:"),
            "{head}"
        );
        assert!(head.contains("dcb, dcz") && head.contains("dictionary-id: \"/app.js\""), "{head}");
        // Not even with the same Accept-Encoding.
        let asked = request(Method::GET, &url).header("accept-encoding", "gzip, br, zstd, dcb, dcz");
        let given = send(pair.proxy, asked.body(Empty::new().boxed()).unwrap()).await;
        assert_eq!((given.field("content-encoding"), given.text()), ("", "in plain words".into()), "{vary}");
    }
}

/// RFC 9842 §2.1.1: what a client may use as a dictionary reaches it as its origin made it, with the origin's word on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dictionary_reaches_the_client_as_it_is() {
    let pair = Pair::start().await;
    let text = contents(1)[2].2.clone();
    let offer = "match=\"/a.*\", id=\"v1\"";
    let file = File::new("text/javascript", text.clone()).field("use-as-dictionary", offer);
    let site = Site::new().file("/a.js", file.field("cache-control", "max-age=600")).serve().await;
    for _ in 0..2 {
        let given = get(&pair, &site.url("/a.js")).await;
        assert_eq!((given.field("use-as-dictionary"), given.text()), (offer, text.clone()));
    }
    assert_eq!(site.times("/a.js"), 1, "it is held");
}
