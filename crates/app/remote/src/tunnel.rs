//! CONNECT: a tunnel across the hop. The client hears of success only when ground has connected.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use farhop_events::{AnsweredFrom, Crossing, Event, ExchangeId, Side};
use farhop_front::{Departure, Head, Responder, Tunnel};
use farhop_htotp::frame::Class;
use farhop_transport::hop::{Arrival, Receiver, Sender};
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::Remote;
use crate::answers::Trouble;
use crate::users::User;

/// Bytes read from the client at once.
const CHUNK: usize = 32 * 1024;

/// A tunnel that is wanted.
pub(crate) struct Wish {
    pub(crate) id: ExchangeId,
    pub(crate) user: User,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) started: Instant,
}

/// What went through.
#[derive(Default)]
struct Carried {
    down: u64,
    up: u64,
}

impl Wish {
    /// Opens the tunnel and carries bytes both ways until both sides are done.
    pub(crate) async fn serve(self, remote: Arc<Remote>, responder: Responder) {
        let settings = remote.settings();
        if !settings.connect_ports.iter().any(|range| range.contains(self.port)) {
            let detail = format!("CONNECT to port {} is not allowed; add it to 'connect_ports'", self.port);
            let trouble = Trouble::new(StatusCode::FORBIDDEN, Side::Remote, "http_request_denied", detail);
            return self.fail(&remote, responder, trouble).await;
        }
        remote.bus().emit(Event::RequestCrossed {
            exchange: self.id,
            page: None,
            why: Crossing::Tunnel,
            field: None,
        });
        let Some(carrier) = remote.uplink().carrier(Instant::now() + settings.timeouts.outage).await else {
            return self.fail(&remote, responder, Trouble::no_carrier()).await;
        };
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let (sender, mut receiver) =
            carrier.hop.open_tunnel(self.id.0, self.user.id, Class::Web, host, self.port);
        let answer = tokio::select! {
            answer = receiver.next() => answer,
            // Nothing can be read by a client that is gone, and nothing was sent for it.
            Departure::Reset = responder.departure() => return,
        };
        match answer {
            Arrival::TunnelOpened => {}
            Arrival::Failed(failure) => {
                return self.fail(&remote, responder, Trouble::from_ground(&failure)).await;
            }
            _ => return self.fail(&remote, responder, Trouble::lost()).await,
        }
        let opened = Event::TunnelOpened { exchange: self.id, host: self.host.clone(), port: self.port };
        remote.bus().emit(opened);
        let head = Head { status: StatusCode::OK, fields: HeaderMap::new() };
        let Ok(tunnel) = responder.tunnel(head).await else { return };
        let carried = carry(tunnel, sender, receiver, settings.timeouts.tunnel_idle).await;
        self.ended(&remote, &carried);
    }

    async fn fail(self, remote: &Remote, responder: Responder, trouble: Trouble) {
        let (head, page) = trouble.page(self.id);
        // The client may be gone too; the event says what failed first.
        let _ = responder.respond(head, page).await;
        remote.bus().emit(Event::Failed {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: "CONNECT".into(),
            url: remote.bus().url(&format!("{}:{}", self.host, self.port)),
            side: trouble.side,
            error: trouble.detail,
            status: Some(trouble.status.as_u16()),
            bytes: 0,
        });
    }

    fn ended(&self, remote: &Remote, carried: &Carried) {
        remote.bus().emit(Event::Answered {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: "CONNECT".into(),
            url: remote.bus().url(&format!("{}:{}", self.host, self.port)),
            status: 200,
            from: AnsweredFrom::Asked,
            bytes: carried.down,
            upload_bytes: carried.up,
            first_byte_ms: 0,
            total_ms: self.started.elapsed().as_millis() as u64,
        });
    }
}

/// How one direction ended.
enum End {
    /// In peace: the other direction may go on.
    Closed,
    /// Broken: the other is to be broken too.
    Reset,
}

async fn carry(tunnel: Tunnel, sender: Sender, receiver: Receiver, idle: Duration) -> Carried {
    let (mut reader, mut writer) = tokio::io::split(tunnel);
    let mut carried = Carried::default();
    let active = Notify::new();
    let reset = {
        let up = upwards(&mut reader, sender, &mut carried.up, &active);
        let down = downwards(&mut writer, receiver, &mut carried.down, &active);
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

async fn downwards(
    writer: &mut WriteHalf<Tunnel>,
    mut receiver: Receiver,
    received: &mut u64,
    active: &Notify,
) -> End {
    loop {
        match receiver.next().await {
            Arrival::Body(bytes) => {
                active.notify_one();
                *received += bytes.len() as u64;
                if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
                    return End::Reset;
                }
            }
            // Half-close: the client may still send.
            Arrival::Ended if writer.shutdown().await.is_ok() => return End::Closed,
            _ => return End::Reset,
        }
    }
}

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
                if sender.write(buffer.split().freeze()).await.is_err() {
                    return End::Reset;
                }
            }
            Err(_) => return End::Reset,
        }
    }
}
