//! Drives an HTTP/2 connection to its end: its windows grow with what fits, and where it is gone without a word it ends. When to
//! ask, and how long to wait, is `core/tuning`'s.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use farhop_front::windows::Given;
use farhop_tuning::Liveness;
use h2::Ping;
use h2::client::Connection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

use crate::settings::Settings;

/// What has gone and come on a connection. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    answers: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    /// A request is about to leave.
    pub(crate) fn request(&self) {
        self.0.requests.fetch_add(1, Relaxed);
    }

    /// So many heads of responses have come.
    pub(crate) fn answers(&self, count: u64) {
        self.0.answers.fetch_add(count, Relaxed);
    }

    /// So many bytes have come.
    pub(crate) fn bytes(&self, count: usize) {
        self.0.bytes.fetch_add(count as u64, Relaxed);
    }

    /// Whether the origin has answered any request on it.
    pub(crate) fn has_answers(&self) -> bool {
        self.0.answers.load(Relaxed) > 0
    }
}

/// Completes when the connection, to an origin to which the round trip is `trip`, has ended or is given up as gone. Its errors reach
/// the exchanges as well.
pub(crate) async fn drive<T: AsyncRead + AsyncWrite + Unpin>(
    mut connection: Connection<T, Bytes>,
    mut given: Given,
    traffic: Traffic,
    settings: Arc<Settings>,
    trip: Option<Duration>,
) {
    let start = Instant::now();
    let mut ping = connection.ping_pong();
    let mut liveness = Liveness::new(Duration::ZERO);
    let (mut came, mut asked) = (0, 0);
    let mut overdue = pin!(sleep_until(start));
    poll_fn(|cx| {
        given.grow(settings.room(trip), &mut connection);
        if Pin::new(&mut connection).poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let (now, trips) = (start.elapsed(), settings.ways.trips());
        if std::mem::replace(&mut came, traffic.0.bytes.load(Relaxed)) != came {
            liveness.handle_word(now);
        }
        if let Some(ping) = &mut ping {
            // What it answers counts as any word does; the next one can be sent once it is taken.
            let _ = ping.poll_pong(cx);
            let leaves = std::mem::replace(&mut asked, traffic.0.requests.load(Relaxed)) != asked;
            if leaves && liveness.handle_request(now, &trips) {
                // One that is under way still is as good.
                let _ = ping.send_ping(Ping::opaque());
            }
        }
        let Some(due) = liveness.next_wakeup(&trips) else { return Poll::Pending };
        overdue.as_mut().reset(start + due);
        let gone = overdue.as_mut().poll(cx);
        if gone.is_ready() {
            tracing::debug!("an origin says nothing on a connection that was open: it is left");
        }
        gone
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::http2::Http2;
    use tokio::io::DuplexStream;
    use tokio::time::{sleep, timeout};

    const MINUTES: Duration = Duration::from_secs(600);

    /// An origin that answers so many requests, each as long after it as that, and then reads no more.
    async fn origin(stream: DuplexStream, answers: usize, after: Duration) {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        for _ in 0..answers {
            let (_, mut respond) = connection.accept().await.unwrap().unwrap();
            let mut waiting = pin!(sleep(after));
            poll_fn(|cx| {
                let _ = connection.poll_closed(cx);
                waiting.as_mut().poll(cx)
            })
            .await;
            respond.send_response(http::Response::new(()), true).unwrap();
        }
        // Its last answer leaves.
        let _ = timeout(Duration::from_millis(10), poll_fn(|cx| connection.poll_closed(cx))).await;
        sleep(10 * MINUTES).await;
    }

    async fn connected(answers: usize, after: Duration) -> Http2 {
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(origin(far, answers, after));
        Http2::start(near, &Arc::new(Settings::default()), None, None).await.unwrap()
    }

    /// Whether a request was answered, and how long that took to be clear.
    async fn ask(connection: &Http2) -> (bool, Duration) {
        let begun = Instant::now();
        let progress = crate::upload::Progress::new();
        let body = crate::upload::Upload::empty().into_body(progress.clone());
        let request = http::Request::get("https://site.test/").body(()).unwrap();
        let Ok((answer, _upload)) = connection.send(request, body, &progress).await else {
            return (false, begun.elapsed());
        };
        let answered = timeout(MINUTES, crate::http2::answer(answer, |_| Ok::<_, Error>(()))).await;
        (answered.is_ok_and(|head| head.is_ok()), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_gone_without_a_word_is_left_within_the_time_that_its_origin_has() {
        let connection = connected(1, Duration::ZERO).await;
        assert!(ask(&connection).await.0);
        sleep(Duration::from_secs(20)).await;
        let (answered, took) = ask(&connection).await;
        assert!(!answered && !connection.is_open());
        assert_eq!(took.as_secs(), 60, "nothing was measured");
    }

    #[tokio::test(start_paused = true)]
    async fn an_origin_that_computes_for_long_is_waited_for() {
        let long = Duration::from_secs(240);
        let connection = connected(2, long).await;
        for _ in 0..2 {
            // The second time it is asked, and answers that.
            let (answered, took) = ask(&connection).await;
            assert!(answered && took.as_secs() == long.as_secs(), "{took:?}");
            sleep(Duration::from_secs(20)).await;
        }
    }
}
