//! Raw bytes between a client's connection and a stream of the hop, both ways at once: for tunnels and WebSockets. Each
//! side's end and reset is carried to the other, and the mark of a tunnel's urgent bytes; nothing is looked into and nothing
//! held back.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use farhop_front::{Socket as _, Tunnel};
use farhop_htotp::frame::{Class, Failure};
use farhop_transport::hop::{Arrival, Receiver, Sender};
use tokio::io::{AsyncWrite as _, ReadBuf};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Bytes read from the client at once; on the stack, so that a tunnel that is idle holds no buffer.
const CHUNK: usize = 32 * 1024;

/// Pieces written to the client at once, each of which came in a packet of its own.
const PIECES: usize = 64;

/// How long what a client said before it broke off may take to cross.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// What went through.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Bytes to the client.
    pub(crate) down: u64,
    /// Bytes from the client.
    pub(crate) up: u64,
    /// Ground had nothing to carry to or from.
    pub(crate) failed: bool,
}

/// What ground says of a tunnel.
pub(crate) enum Word<'a> {
    /// It stands.
    Opened,
    /// The far side has said this before the client said or ended anything.
    ServerFirst(&'a [u8]),
    /// There is none, for this reason.
    Failed(&'a Failure),
}

/// What passes a tunnel.
pub(crate) enum Passed<'a> {
    /// The client says this.
    Said(&'a [u8]),
    /// The far side says this.
    Heard(&'a [u8]),
}

/// How one direction ended.
enum End {
    /// In peace: the other direction may go on.
    Closed,
    /// Broken: the other is to be broken too.
    Reset,
    /// The client's connection is broken: the other is to be broken too.
    Left,
}

/// Carries until both sides have ended, one is broken, nothing moves for `idle`, or it is `over`. `hear` is told ground's word before the
/// client can notice anything of it; `judge` is shown all that passes, and says where that makes another class of it. A side that is broken leaves the client's connection reset: an orderly end would
/// say that all had arrived.
pub(crate) async fn carry(
    tunnel: Tunnel,
    mut sender: Sender,
    mut receiver: Receiver,
    idle: Duration,
    over: impl Future<Output = ()>,
    hear: impl Fn(Word<'_>),
    judge: impl Fn(Passed<'_>) -> Option<Class>,
) -> Carried {
    let active = Activity { moved: Notify::new(), client_spoke: AtomicBool::new(!tunnel.early().is_empty()) };
    let client = Client(Mutex::new(tunnel));
    let mut carried = Carried::default();
    let ended = {
        let up = upwards(&client, &mut sender, &mut carried.up, &active, &judge);
        let downwards =
            Downwards { client: &client, received: &mut carried.down, failed: &mut carried.failed };
        let down = downwards.run(&mut receiver, &active, hear, &judge);
        let quiet = async { while timeout(idle, active.moved.notified()).await.is_ok() {} };
        tokio::pin!(up, down, quiet, over);
        let (mut up_open, mut down_open) = (true, true);
        loop {
            if !up_open && !down_open {
                break End::Closed;
            }
            let end = tokio::select! {
                end = &mut up, if up_open => { up_open = false; end }
                end = &mut down, if down_open => { down_open = false; end }
                () = &mut quiet => End::Reset,
                () = &mut over => End::Reset,
            };
            if !matches!(end, End::Closed) {
                break end;
            }
        }
    };
    if matches!(ended, End::Left) {
        // What it said before, perhaps the Close frame of a WebSocket, is for the far side, as it is over plain TCP: the reset that
        // follows would overtake it. Writing to it may have failed before all of that was read.
        let last_words = async {
            while let Ok((bytes, _)) = client.read().await
                && !bytes.is_empty()
            {
                carried.up += bytes.len() as u64;
                if sender.write(bytes).await.is_err() {
                    return;
                }
            }
            sender.heard().await;
        };
        let _ = timeout(LAST_WORDS, last_words).await;
    }
    if !matches!(ended, End::Closed) {
        client.0.into_inner().unwrap_or_else(PoisonError::into_inner).reset();
    }
    carried
}

/// What both directions are told of each other.
struct Activity {
    moved: Notify,
    client_spoke: AtomicBool,
}

/// From the hop to the client.
struct Downwards<'a> {
    client: &'a Client,
    received: &'a mut u64,
    failed: &'a mut bool,
}

impl Downwards<'_> {
    async fn run(
        self,
        receiver: &mut Receiver,
        active: &Activity,
        hear: impl Fn(Word<'_>),
        judge: impl Fn(Passed<'_>) -> Option<Class>,
    ) -> End {
        let mut urgent = false;
        loop {
            match receiver.next().await {
                Arrival::TunnelOpened => hear(Word::Opened),
                Arrival::Urgent => urgent = true,
                Arrival::Body(bytes) => {
                    active.moved.notify_one();
                    if *self.received == 0 && !active.client_spoke.load(Ordering::Relaxed) {
                        hear(Word::ServerFirst(&bytes));
                    }
                    let mut pieces = vec![bytes];
                    receiver.take_bodies(&mut pieces, PIECES);
                    for piece in &pieces {
                        *self.received += piece.len() as u64;
                        if let Some(class) = judge(Passed::Heard(piece)) {
                            receiver.tell_class(class);
                        }
                    }
                    if self.client.write(&pieces, std::mem::take(&mut urgent)).await.is_err() {
                        return End::Left;
                    }
                }
                // Half-close: the client may still send.
                Arrival::Ended if self.client.end().await.is_ok() => return End::Closed,
                Arrival::Failed(why) => {
                    *self.failed = true;
                    hear(Word::Failed(&why));
                    return End::Reset;
                }
                _ => return End::Reset,
            }
        }
    }
}

/// From the client to the hop.
async fn upwards(
    client: &Client,
    sender: &mut Sender,
    sent: &mut u64,
    active: &Activity,
    judge: impl Fn(Passed<'_>) -> Option<Class>,
) -> End {
    loop {
        match client.read().await {
            Ok((bytes, _)) if bytes.is_empty() => {
                // What the far side says from now on may be an answer to that.
                active.client_spoke.store(true, Ordering::Relaxed);
                sender.finish(None);
                return End::Closed;
            }
            // Browsers close without TLS's own goodbye, Chromium always: whether a conversation is over, its frames have told
            // (RFC 6455 §7.1.1), and what came before, its last word, must not be lost to a reset.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                sender.finish(None);
                return End::Closed;
            }
            Ok((bytes, urgent)) => {
                active.moved.notify_one();
                active.client_spoke.store(true, Ordering::Relaxed);
                *sent += bytes.len() as u64;
                if let Some(class) = judge(Passed::Said(&bytes)) {
                    sender.tell_class(class);
                }
                if urgent {
                    sender.mark();
                }
                if sender.write(bytes).await.is_err() {
                    return End::Reset;
                }
            }
            Err(_) => return End::Left,
        }
    }
}

/// The client's connection, for both directions.
struct Client(Mutex<Tunnel>);

impl Client {
    fn lock(&self) -> MutexGuard<'_, Tunnel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is there, up to a chunk, and whether its first byte is urgent; nothing at the end. It owns just its bytes.
    async fn read(&self) -> io::Result<(Bytes, bool)> {
        poll_fn(|cx| {
            let mut memory = [MaybeUninit::uninit(); CHUNK];
            let mut read = ReadBuf::uninit(&mut memory);
            let urgent = ready!(Pin::new(&mut *self.lock()).poll_read_marked(cx, &mut read))?;
            Poll::Ready(Ok((Bytes::copy_from_slice(read.filled()), urgent)))
        })
        .await
    }

    /// Writes all of them, the first byte as an urgent one where it is.
    async fn write(&self, pieces: &[Bytes], mut urgent: bool) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut left = &mut slices[..];
        // Empty ones at the front go.
        IoSlice::advance_slices(&mut left, 0);
        poll_fn(|cx| {
            let mut tunnel = self.lock();
            while let Some(first) = left.first().and_then(|slice| slice.first()) {
                let writer = Pin::new(&mut *tunnel);
                let written = if urgent {
                    writer.poll_write_urgent(cx, *first)
                } else {
                    writer.poll_write_vectored(cx, left)
                };
                let count = ready!(written)?;
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                IoSlice::advance_slices(&mut left, count);
                urgent = false;
            }
            Pin::new(&mut *tunnel).poll_flush(cx)
        })
        .await
    }

    /// Ends this side of it.
    async fn end(&self) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *self.lock()).poll_shutdown(cx)).await
    }
}
