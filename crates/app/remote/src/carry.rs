//! Raw bytes between a client's connection and a stream of the hop, both ways at once: for tunnels and WebSockets. Each
//! side's end and reset is carried to the other; nothing is looked into and nothing held back.

use std::time::Duration;

use bytes::BytesMut;
use farhop_front::Tunnel;
use farhop_htotp::frame::Failure;
use farhop_transport::hop::{Arrival, Receiver, Sender};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Bytes read from the client at once.
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

/// Carries until both sides have ended, one is broken, or nothing moves for `idle`. `hear` is told ground's word before the
/// client can notice anything of it. A side that is broken leaves the client's connection reset: an orderly end would
/// say that all had arrived.
pub(crate) async fn carry(
    tunnel: Tunnel,
    sender: Sender,
    receiver: Receiver,
    idle: Duration,
    hear: impl Fn(Word<'_>),
) -> Carried {
    let (mut reader, mut writer) = tokio::io::split(tunnel);
    let mut carried = Carried::default();
    let active = Notify::new();
    let reset = {
        let up = upwards(&mut reader, sender, &mut carried.up, &active);
        let downwards =
            Downwards { writer: &mut writer, received: &mut carried.down, failed: &mut carried.failed };
        let down = downwards.run(receiver, &active, hear);
        let quiet = async { while timeout(idle, active.notified()).await.is_ok() {} };
        tokio::pin!(up, down, quiet);
        let (mut up_open, mut down_open) = (true, true);
        loop {
            if !up_open && !down_open {
                break false;
            }
            let end = tokio::select! {
                end = &mut up, if up_open => { up_open = false; end }
                end = &mut down, if down_open => { down_open = false; end }
                () = &mut quiet => End::Reset,
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

/// From the hop to the client.
struct Downwards<'a> {
    writer: &'a mut WriteHalf<Tunnel>,
    received: &'a mut u64,
    failed: &'a mut bool,
}

impl Downwards<'_> {
    async fn run(self, mut receiver: Receiver, active: &Notify, hear: impl Fn(Word<'_>)) -> End {
        loop {
            match receiver.next().await {
                Arrival::TunnelOpened => hear(Word::Opened),
                Arrival::Body(bytes) => {
                    active.notify_one();
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
async fn upwards(reader: &mut ReadHalf<Tunnel>, mut sender: Sender, sent: &mut u64, active: &Notify) -> End {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK);
        match reader.read_buf(&mut buffer).await {
            Ok(0) => {
                sender.finish(None);
                return End::Closed;
            }
            Ok(count) => {
                active.notify_one();
                *sent += count as u64;
                if sender.write(small(&mut buffer).freeze()).await.is_err() {
                    return End::Reset;
                }
            }
            Err(_) => return End::Reset,
        }
    }
}

/// A few bytes must not hold a whole buffer while they wait.
fn small(buffer: &mut BytesMut) -> BytesMut {
    if buffer.len() >= CHUNK / 4 {
        return buffer.split();
    }
    let few = BytesMut::from(&buffer[..]);
    buffer.clear();
    few
}
