//! Files that a page's scripts only name: pushed while they are short, or once the browser has asked.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::sync::Arc;

use farhop_htotp::frame::Priority;
use support::{Origin, Pair, Peer, navigate, noise, pushed, site};
use tokio::sync::{Notify, mpsc};

#[tokio::test]
async fn a_guess_that_is_long_is_withdrawn_before_any_of_it_crosses() {
    async fn answer(mut peer: Peer) -> Option<Peer> {
        let length = if peer.path() == "/long.png" { 40_000 } else { 400 };
        peer.answer("content-type: image/png", noise(length)).await;
        Some(peer)
    }
    let page =
        "<!doctype html><link rel=icon href=data:,><script>var both = ['/long.png', '/short.png']</script>";
    let origin = site("content-type: text/html", page, answer).await;
    let pair = Pair::new(&[]).await;
    let mut asked = navigate(&origin, "/");
    // Guesses are never made with cookies.
    asked.fields.remove("cookie");
    let reply = pair.get(&asked).await;
    assert_eq!(reply.promised_paths(), ["/long.png", "/short.png"]);
    for _ in &reply.promises {
        let (promise, push) = pushed(&pair).await;
        if promise == reply.promises[0].0 {
            assert_eq!((&*push.failure().token, push.head.is_none()), ("promise_withdrawn", true));
        } else {
            assert!(push.whole && push.body == noise(400));
        }
    }
}

#[tokio::test]
async fn short_guesses_are_all_fetched_though_each_has_room_for_a_long_one_set_aside() {
    async fn answer(mut peer: Peer) -> Option<Peer> {
        peer.answer("content-type: text/css", noise(250)).await;
        Some(peer)
    }
    let files = |kind: &str| (0..6).map(|at| format!("'/{at}.{kind}',")).collect::<String>();
    let names = ["js", "css", "png"].map(files).concat();
    let page = format!("<!doctype html><link rel=icon href=data:,><script>var all = [{names}]</script>");
    let origin = site("content-type: text/html", page, answer).await;
    let pair = Pair::new(&[]).await;
    let mut asked = navigate(&origin, "/");
    asked.fields.remove("cookie");
    assert_eq!(pair.get(&asked).await.promises.len(), 18);
    for _ in 0..18 {
        assert!(pushed(&pair).await.1.whole);
    }
}

#[tokio::test]
async fn guesses_end_with_the_bytes_that_they_may_take_and_what_is_promised_is_withdrawn() {
    async fn answer(mut peer: Peer) -> Option<Peer> {
        peer.answer("content-type: font/woff2", noise(31_000)).await;
        Some(peer)
    }
    let files = |kind: &str| (0..6).map(|at| format!("'/{at}.{kind}',")).collect::<String>();
    let names = ["woff2", "png"].map(files).concat();
    let page = format!("<!doctype html><link rel=icon href=data:,><script>var all = [{names}]</script>");
    let origin = site("content-type: text/html", page, answer).await;
    let pair = Pair::new(&[]).await;
    let mut asked = navigate(&origin, "/");
    asked.fields.remove("cookie");
    let reply = pair.get(&asked).await;
    assert_eq!(reply.promises.len(), 12);
    let mut whole = 0;
    for _ in &reply.promises {
        let push = pushed(&pair).await.1;
        whole += usize::from(push.whole);
        assert!(push.whole || push.head.is_none() && &*push.failure().token == "promise_withdrawn");
    }
    assert_eq!(whole, 8, "256 KB");
    assert_eq!(origin.paths().len(), 1 + 8, "what is withdrawn is not asked for");
}

/// A page whose script names these two files, asked for as guesses are made: without cookies.
async fn guessing(pair: &Pair, origin: &Origin) -> [u64; 2] {
    let mut asked = navigate(origin, "/");
    asked.fields.remove("cookie");
    let reply = pair.get(&asked).await;
    assert_eq!(reply.promised_paths(), ["/js/a.js", "/js/b.js"]);
    [reply.promises[0].0, reply.promises[1].0]
}

const GUESSES: &str =
    "<!doctype html><link rel=icon href=data:,><script>var both = ['/js/a.js', '/js/b.js']</script>";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/javascript\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(body: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n"].concat()
}

#[tokio::test]
async fn a_guess_without_a_length_crosses_whole_unless_it_turns_out_to_be_long() {
    async fn answer(mut peer: Peer) -> Option<Peer> {
        let length = if peer.path() == "/js/a.js" { 200_000 } else { 20_000 };
        peer.say([CHUNKED.as_bytes(), &chunk(&noise(length)), b"0\r\n\r\n"].concat()).await;
        Some(peer)
    }
    let origin = site("content-type: text/html", GUESSES, answer).await;
    let pair = Pair::new(&[]).await;
    let [long, _] = guessing(&pair, &origin).await;
    for _ in 0..2 {
        let (promise, push) = pushed(&pair).await;
        if promise == long {
            assert_eq!((&*push.failure().token, push.whole), ("promise_withdrawn", false));
            assert!(push.crossed <= 32 * 1024, "{}", push.crossed);
        } else {
            assert!(push.whole && push.body == noise(20_000));
        }
    }
    assert_eq!(origin.paths().len(), 3, "each once");
}

#[tokio::test]
async fn a_guess_that_the_browser_asks_for_may_be_as_long_as_it_is() {
    let (told, mut tell) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let origin = Origin::start(move |mut peer: Peer| {
        let (told, gate) = (told.clone(), Arc::clone(&gate));
        async move {
            match peer.path() {
                "/" => peer.answer("content-type: text/html", GUESSES).await,
                "/js/a.js" => {
                    peer.say(CHUNKED).await;
                    gate.notified().await;
                    peer.say([&chunk(&noise(200_000)), &b"0\r\n\r\n"[..]].concat()).await;
                }
                _ => {
                    told.send("asked").unwrap();
                    peer.read().await;
                    told.send("left").unwrap();
                    return None;
                }
            }
            Some(peer)
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let [wanted, other] = guessing(&pair, &origin).await;
    assert_eq!(tell.recv().await, Some("asked"));
    // What the remote says comes in order: once the other is left, this is known to be wanted.
    pair.hop.want(wanted, Priority { urgency: 1, incremental: false });
    pair.hop.refuse_promises(other..=other);
    assert_eq!(tell.recv().await, Some("left"));
    go.notify_one();
    let (promise, push) = pushed(&pair).await;
    assert!(promise == wanted && push.whole && push.body == noise(200_000));
    assert_eq!(origin.paths().iter().filter(|path| *path == "/js/a.js").count(), 1, "asked once");
}

#[tokio::test]
async fn a_guess_that_the_page_names_by_itself_may_be_as_long_as_it_is() {
    const PAGE: &str = "<!doctype html><link rel=icon href=data:,><script>var s = ['/js/a.js', '/js/b.js']</script>\
        <script src=/js/a.js></script>";
    async fn answer(mut peer: Peer) -> Option<Peer> {
        peer.answer("content-type: text/javascript", noise(40_000)).await;
        Some(peer)
    }
    let origin = site("content-type: text/html", PAGE, answer).await;
    let pair = Pair::new(&[]).await;
    let mut asked = navigate(&origin, "/");
    asked.fields.remove("cookie");
    let reply = pair.get(&asked).await;
    assert_eq!(reply.promised_paths(), ["/js/a.js", "/js/b.js"], "each once");
    for _ in 0..2 {
        let (promise, push) = pushed(&pair).await;
        if promise == reply.promises[0].0 {
            assert!(push.whole && push.body == noise(40_000));
        } else {
            assert_eq!(&*push.failure().token, "promise_withdrawn");
        }
    }
}
