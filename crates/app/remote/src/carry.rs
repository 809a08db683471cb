//! Raw bytes between a client's connection and a stream of the hop, both ways at once: for tunnels and WebSockets. Each
//! side's end and reset is carried to the other; nothing is looked into and nothing held back.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use farhop_front::Tunnel;
use farhop_htotp::frame::Failure;
use farhop_transport::hop::{Arrival, Receiver, Sender};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Bytes read from the client at once; on the stack, so that a tunnel that is idle holds no buffer.
const CHUNK: usize = 32 * 1024;

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
    /// The far side has spoken before the client did.
    ServerFirst,
    /// There is none, for this reason.
    Failed(&'a Failure),
}

/// How one direction ended.
enum End {
    /// In peace: the other direction may go on.
    Closed,
    /// Broken: the other is to be broken too.
    Reset,
}

/// Carries until both sides have ended, one is broken, nothing moves for `idle`, or it is `over`. `hear` is told ground's word before the
/// client can notice anything of it. A side that is broken leaves the client's connection reset: an orderly end would
/// say that all had arrived.
pub(crate) async fn carry(
    tunnel: Tunnel,
    sender: Sender,
    receiver: Receiver,
    idle: Duration,
    over: impl Future<Output = ()>,
    hear: impl Fn(Word<'_>),
) -> Carried {
    let active = Activity { moved: Notify::new(), client_spoke: AtomicBool::new(!tunnel.early().is_empty()) };
    let (mut reader, mut writer) = tokio::io::split(tunnel);
    let mut carried = Carried::default();
    let reset = {
        let up = upwards(&mut reader, sender, &mut carried.up, &active);
        let downwards =
            Downwards { writer: &mut writer, received: &mut carried.down, failed: &mut carried.failed };
        let down = downwards.run(receiver, &active, hear);
        let quiet = async { while timeout(idle, active.moved.notified()).await.is_ok() {} };
        tokio::pin!(up, down, quiet, over);
        let (mut up_open, mut down_open) = (true, true);
        loop {
            if !up_open && !down_open {
                break false;
            }
            let end = tokio::select! {
                end = &mut up, if up_open => { up_open = false; end }
                end = &mut down, if down_open => { down_open = false; end }
                () = &mut quiet => End::Reset,
                () = &mut over => End::Reset,
            };
            if matches!(end, End::Reset) {
                break true;
            }
        }
    };
    if reset {
        reader.unsplit(writer).reset();
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
    writer: &'a mut WriteHalf<Tunnel>,
    received: &'a mut u64,
    failed: &'a mut bool,
}

impl Downwards<'_> {
    async fn run(self, mut receiver: Receiver, active: &Activity, hear: impl Fn(Word<'_>)) -> End {
        loop {
            match receiver.next().await {
                Arrival::TunnelOpened => hear(Word::Opened),
                Arrival::Body(bytes) => {
                    active.moved.notify_one();
                    if *self.received == 0 && !active.client_spoke.load(Ordering::Relaxed) {
                        hear(Word::ServerFirst);
                    }
                    *self.received += bytes.len() as u64;
                    if self.writer.write_all(&bytes).await.is_err() || self.writer.flush().await.is_err() {
                        return End::Reset;
                    }
                }
                // Half-close: the client may still send.
                Arrival::Ended if self.writer.shutdown().await.is_ok() => return End::Closed,
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
    reader: &mut ReadHalf<Tunnel>,
    mut sender: Sender,
    sent: &mut u64,
    active: &Activity,
) -> End {
    loop {
        match read(reader).await {
            Ok(bytes) if bytes.is_empty() => {
                sender.finish(None);
                return End::Closed;
            }
            Ok(bytes) => {
                active.moved.notify_one();
                active.client_spoke.store(true, Ordering::Relaxed);
                *sent += bytes.len() as u64;
                if sender.write(bytes).await.is_err() {
                    return End::Reset;
                }
            }
            Err(_) => return End::Reset,
        }
    }
}

/// What is there, up to a chunk; nothing at the end. It owns just its bytes.
async fn read(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    poll_fn(|cx| {
        let mut memory = [MaybeUninit::uninit(); CHUNK];
        let mut read = ReadBuf::uninit(&mut memory);
        ready!(Pin::new(&mut *reader).poll_read(cx, &mut read))?;
        Poll::Ready(Ok(Bytes::copy_from_slice(read.filled())))
    })
    .await
}
