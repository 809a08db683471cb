//! What becomes of exchanges when ground dies or the link is cut under them: they go on where they stopped, or their
//! client is cut off. Never a mixed body, never a request sent twice that may change something.

use std::net::SocketAddr;
use std::time::Duration;

use farhop_events::Event;
use farhop_testkit::pattern::Checker;
use farhop_testkit::{File, HostileOrigin, Manners, Site, Step};
use http::{Method, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{InProcess, PATIENCE, Pair, ask, open, request, send, until};

const SIZE: u64 = 48 << 20;

/// A download on its way, checked byte by byte.
struct Download {
    body: Incoming,
    checker: Checker,
}

impl Download {
    async fn start(proxy: SocketAddr, url: &str, seed: u64) -> Download {
        let asked = request(Method::GET, url).body(Empty::new().boxed()).unwrap();
        let answer: Response<Incoming> = open(proxy, asked).await;
        assert_eq!(answer.status(), 200);
        Download { body: answer.into_body(), checker: Checker::new(seed) }
    }

    /// Takes bytes until there are `count` of them; false once the body is broken off.
    async fn take(&mut self, count: u64) -> bool {
        while self.checker.checked() < count {
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            match frame.unwrap_or_else(|_| panic!("nothing came after {} bytes", self.checker.checked())) {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.checker.check(&data).expect("every byte is the origin's");
                }
                Some(Err(_)) => return false,
                None => panic!("the body ended as if whole after {} bytes", self.checker.checked()),
            }
        }
        true
    }

    /// Takes the rest of a body of [`SIZE`] bytes and its end.
    async fn finish(mut self) {
        assert!(self.take(SIZE).await, "cut off after {} bytes", self.checker.checked());
        let end = self.body.frame().await;
        assert!(end.is_none(), "{end:?} after the last byte");
    }
}

/// Kills ground, does `meanwhile`, and brings it back.
async fn ground_dies(pair: &mut Pair, meanwhile: impl FnOnce()) {
    pair.ground.kill();
    meanwhile();
    // Over QUIC it is silence that tells; TCP says at once that nobody is there.
    remote_counts(pair, &["carriers_silent", "carriers_down"]).await;
    pair.restart_ground();
    remote_counts(pair, &["carriers_down"]).await;
    pair.await_carrier().await;
}

/// Waits until the remote has counted one of these.
async fn remote_counts(pair: &Pair, counters: &[&str]) {
    until(counters[0], async || {
        let counted = pair.counters("remote").await;
        counters.iter().any(|counter| counted[counter].as_u64() > Some(0)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_outlives_the_death_of_ground() {
    a_download_goes_on(Pair::start_with(&["carrier=quic"]).await, "quic").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_outlives_the_death_of_ground_over_tcp_too() {
    a_download_goes_on(Pair::start_with(&["carrier=tcp"]).await, "tcp").await;
}

async fn a_download_goes_on(mut pair: Pair, over: &str) {
    for (end, place) in [("remote", "/carrier/over"), ("ground", "/carriers/0/over")] {
        // Ground may notice a moment after the remote that there is a carrier.
        let rides = until("the carrier is told", async || {
            ask(&pair.control(end), "status").await.and_then(|status| status.pointer(place).cloned())
        })
        .await;
        assert_eq!(rides, over, "{end}");
    }
    let site = Site::new().file("/big", File::pattern(1, SIZE)).serve().await;
    let mut download = Download::start(pair.proxy, &site.url("/big"), 1).await;
    assert!(download.take(SIZE / 16).await);
    ground_dies(&mut pair, || {}).await;
    download.finish().await;
    assert_eq!(pair.counters("remote").await["resumed"], 1);
    assert_eq!(site.times("/big"), 2);
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_changed_meanwhile_is_cut_off_and_never_mixed() {
    let mut pair = Pair::start().await;
    let site = Site::new().file("/big", File::pattern(1, SIZE)).serve().await;
    let mut download = Download::start(pair.proxy, &site.url("/big"), 1).await;
    assert!(download.take(SIZE / 16).await);
    ground_dies(&mut pair, || site.put("/big", File::pattern(2, SIZE))).await;
    // Whatever still comes is of the first body: the checker fails the test otherwise.
    assert!(!download.take(SIZE).await, "another body came as if it were the same");
    assert_eq!(pair.counters("remote").await["aborted"], 1);
    pair.assert_both_run();
}

/// An origin's answer: these fields, and a body of [`SIZE`] bytes.
fn script(fields: &str, seed: u64) -> Vec<Step> {
    let mut answer = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {SIZE}\r\n\r\n").into_bytes();
    answer.extend(farhop_testkit::pattern::bytes_at(seed, 0, SIZE as usize));
    vec![Step::ReadHead, Step::Send(answer.into()), Step::Close]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_any_validator_goes_on_since_its_beginning_is_the_same() {
    let mut pair = Pair::start().await;
    let origin = HostileOrigin::playing(vec![script("", 1), script("", 1)]).await;
    let mut download = Download::start(pair.proxy, &origin.url("/big"), 1).await;
    assert!(download.take(SIZE / 16).await);
    ground_dies(&mut pair, || {}).await;
    download.finish().await;
    assert_eq!(pair.counters("remote").await["resumed"], 1);
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_the_same_validator_and_other_bytes_is_cut_off_too() {
    let mut pair = Pair::start().await;
    // The origin lies: it says that nothing has changed.
    let script = |seed| script("ETag: \"same\"\r\n", seed);
    let origin = HostileOrigin::playing(vec![script(1), script(2)]).await;
    let mut download = Download::start(pair.proxy, &origin.url("/big"), 1).await;
    assert!(download.take(SIZE / 16).await);
    ground_dies(&mut pair, || {}).await;
    assert!(!download.take(SIZE).await, "another body came as if it were the same");
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_without_an_answer_yet_is_asked_again() {
    let mut pair = Pair::start().await;
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let origin = HostileOrigin::playing(vec![
        vec![Step::ReadHead, Step::Hang],
        vec![Step::ReadHead, Step::Send(answer.into()), Step::Close],
    ])
    .await;
    let asked = request(Method::GET, &origin.url("/")).body(Empty::new().boxed()).unwrap();
    let waiting = tokio::spawn(send(pair.proxy, asked));
    until("the origin has the request", async || (origin.heads().len() == 1).then_some(())).await;
    ground_dies(&mut pair, || {}).await;
    let answer = waiting.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_not_sent_twice() {
    let mut pair = Pair::start().await;
    let origin = HostileOrigin::with(Manners::Hangs).await;
    let asked = request(Method::POST, &origin.url("/order")).body(Full::from("one piano").boxed()).unwrap();
    let waiting = tokio::spawn(send(pair.proxy, asked));
    until("the origin has the request", async || (origin.heads().len() == 1).then_some(())).await;
    ground_dies(&mut pair, || {}).await;
    let answer = waiting.await.unwrap();
    assert_eq!(
        (answer.status, answer.reported().as_str()),
        (502, "farhop-remote; error=connection_terminated")
    );
    assert!(answer.text().contains("it was not sent again"), "{}", answer.text());
    assert_eq!(origin.heads().len(), 1);
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_rides_out_a_link_cut_of_30_seconds_and_is_asked_for_once() {
    const SIZE: u64 = 20 << 20;
    let ends = InProcess::start("geo-20m").await;
    let site = Site::new().file("/big", File::pattern(3, SIZE)).serve().await;
    let mut download = Download::start(ends.proxy, &site.url("/big"), 3).await;
    assert!(download.take(SIZE / 4).await);
    ends.link.cut();
    tokio::time::sleep(Duration::from_secs(30)).await;
    ends.link.restore();
    assert!(download.take(SIZE).await, "cut off after {} bytes", download.checker.checked());
    assert!(download.body.frame().await.is_none());
    assert_eq!(site.times("/big"), 1);
    let counted = ends.events.counters().snapshot();
    let of = |name: &str| counted[name].as_u64().unwrap();
    assert_eq!(
        [of("carriers_silent"), of("carriers_down"), of("resumed"), of("aborted")],
        [1, 0, 0, 0],
        "{counted}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_carrier_that_was_given_up_is_followed_by_one_that_needs_no_handshake_and_the_download_goes_on() {
    const SIZE: u64 = 8 << 20;
    let ends = InProcess::with("geo-20m", &["remote.probe.hold=3 s"]).await;
    let site = Site::new().file("/big", File::pattern(3, SIZE)).serve().await;
    let mut download = Download::start(ends.proxy, &site.url("/big"), 3).await;
    assert!(download.take(SIZE / 4).await);
    let mut events = ends.events.subscribe();
    let next = tokio::spawn(async move {
        loop {
            let stamped = events.next().await.unwrap().unwrap();
            if let Event::CarrierUp { early, .. } = stamped.event {
                return early;
            }
        }
    });
    ends.link.cut();
    until("the carrier is given up", async || {
        (ends.events.counters().snapshot()["carriers_down"].as_u64() > Some(0)).then_some(())
    })
    .await;
    ends.link.restore();
    assert!(download.take(SIZE).await, "cut off after {} bytes", download.checker.checked());
    assert!(download.body.frame().await.is_none());
    assert!(next.await.unwrap(), "ground was waited for");
    let counted = ends.events.counters().snapshot();
    // Ground has kept it all.
    assert_eq!(site.times("/big"), 1);
    let of = |name: &str| counted[name].as_u64().unwrap();
    assert_eq!([of("rejoined"), of("resumed"), of("aborted")], [1, 0, 0], "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_under_way_when_the_link_is_cut_is_sent_once_and_answered() {
    let ends = InProcess::start("geo-20m").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/order", listener.local_addr().unwrap());
    let asked = request(Method::POST, &url).body(Full::from("one piano").boxed()).unwrap();
    let waiting = tokio::spawn(send(ends.proxy, asked));
    let (mut origin, _) = listener.accept().await.unwrap();
    let mut order = Vec::new();
    while !order.ends_with(b"one piano") {
        assert_ne!(origin.read_buf(&mut order).await.unwrap(), 0);
    }
    // Its answer falls into the cut.
    ends.link.cut();
    origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbought").await.unwrap();
    until("the silence is noticed", async || {
        (ends.events.counters().snapshot()["carriers_silent"].as_u64() > Some(0)).then_some(())
    })
    .await;
    ends.link.restore();
    let answer = waiting.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "bought"));
    assert!(tokio::time::timeout(Duration::ZERO, listener.accept()).await.is_err(), "it was sent again");
    assert_eq!(ends.events.counters().snapshot()["carriers_down"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_path_loses_outlives_the_ends_at_a_contracted_rate_too() {
    let site = Site::new().file("/some", File::pattern(5, 1_000_000)).serve().await;
    let (mut pair, relay) = Pair::relayed_as("geo-20m", &["carrier=quic"]).await;
    relay.set(|way| way.loses = 40);
    let mut download = Download::start(pair.proxy, &site.url("/some"), 5).await;
    assert!(download.take(1_000_000).await);
    pair.remote.stop();
    pair.ground.stop();
    let lost: Vec<f64> = pair
        .paths("ground")
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').nth(3)?.split_once('@')?.0.parse().ok())
        .collect();
    // One packet in forty, seen through an estimate that began at none.
    assert!(matches!(lost[..], [lost] if (0.005..0.05).contains(&lost)), "{lost:?}");
}
