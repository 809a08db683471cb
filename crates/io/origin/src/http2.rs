//! HTTP/2 connections to origins, and one exchange on them: head out, body out as far as the origin lets, heads in.
//! Knows nothing of who uses them.
//!
//! The `h2` crate keeps frames, windows and states; it also refuses what RFC 9113 §8 calls malformed, with the help of what stands
//! before it ([`crate::sieve`]).

use crate::driven::{Traffic, drive};
use crate::error::Error;
use crate::settings::Settings;
use crate::sieve::Sieve;
use crate::sieved::Sieved;
use crate::upload::{Progress, UploadBody};
use bytes::Bytes;
use farhop_front::windows::{Given, window};
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http_body_util::BodyExt;
use hyper::body::Body;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

/// The most of a request body that is handed to the connection at a time.
const PIECE: usize = 64 * 1024;

/// A connection, shared by whoever holds a clone. It ends when the last clone and the last exchange are gone.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    traffic: Traffic,
    /// How long the origin may take nothing of a request body.
    patience: Duration,
    settings: Arc<Settings>,
    /// The round trip to the origin, if it is known.
    trip: Option<Duration>,
}

impl Http2 {
    /// Speaks HTTP/2 on `io`, whose round trip is `trip`. Until the origin has said how many exchanges it lets be under way,
    /// they are no more than `streams`, if that is known.
    pub(crate) async fn start<T>(
        io: T,
        settings: &Arc<Settings>,
        trip: Option<Duration>,
        streams: Option<usize>,
    ) -> Result<Http2, Error>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (given, traffic) = (Given::new(settings.room(trip)), Traffic::default());
        let sieve = Sieve::new(usize::try_from(settings.head.0).unwrap_or(usize::MAX));
        let handshake = h2::client::Builder::new()
            .initial_max_send_streams(streams.unwrap_or(usize::MAX))
            .enable_push(false)
            .initial_window_size(window(given.room().stream))
            .initial_connection_window_size(window(given.room().connection))
            .max_header_list_size(u32::try_from(settings.head.0).unwrap_or(u32::MAX))
            .handshake(Sieved::new(io, sieve, traffic.clone()));
        let (sender, connection) = handshake.await.map_err(|error| Error::Malformed(error.to_string()))?;
        tokio::spawn(drive(connection, given, traffic.clone(), Arc::clone(settings), trip));
        let patience = settings.first_byte_timeout.max(settings.body_timeout);
        Ok(Http2 { sender, traffic, patience, settings: Arc::clone(settings), trip })
    }

    /// Whether further requests can be sent: it has neither ended nor been told to (RFC 9113 §6.8).
    pub(crate) fn is_open(&self) -> bool {
        let ready = self.sender.clone().poll_ready(&mut Context::from_waker(Waker::noop()));
        !matches!(ready, Poll::Ready(Err(_)))
    }

    /// How many exchanges may be under way: as many as the origin lets, and none of which another holds back.
    pub(crate) fn exchanges(&self) -> usize {
        self.streams().min(self.settings.room(self.trip).streams())
    }

    /// How many the origin lets, as far as it has said so (RFC 9113 §5.1.2).
    pub(crate) fn streams(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    /// What has gone and come on it.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Sends a request head, and starts sending the body if there is one.
    ///
    /// # Errors
    /// The body, untouched: nothing was sent.
    pub(crate) async fn send(
        &self,
        head: http::Request<()>,
        body: UploadBody,
        progress: &Arc<Progress>,
    ) -> Result<(ResponseFuture, Pump), (h2::Error, UploadBody)> {
        let mut sender = self.sender.clone();
        if let Err(error) = poll_fn(|cx| sender.poll_ready(cx)).await {
            return Err((error, body));
        }
        let ended = body.is_end_stream();
        self.traffic.request();
        match sender.send_request(head, ended) {
            Ok((answer, _)) if ended => Ok((answer, Pump(None))),
            Ok((answer, stream)) => Ok((answer, Pump::start(body, stream, progress.clone(), self.patience))),
            Err(error) => Err((error, body)),
        }
    }
}

/// Waits for the final head; informational ones go to `inform`, which may end the exchange.
pub(crate) async fn answer(
    mut answer: ResponseFuture,
    mut inform: impl FnMut(http::Response<()>) -> Result<(), Error>,
) -> Result<http::Response<RecvStream>, Unanswered> {
    loop {
        let informational = poll_fn(|cx| match answer.poll_informational(cx) {
            Poll::Ready(Some(head)) => Poll::Ready(Either::Informational(head)),
            // No more of them, or none yet: the final head may be there.
            Poll::Ready(None) | Poll::Pending => Pin::new(&mut answer).poll(cx).map(Either::Final),
        });
        match informational.await {
            Either::Informational(head) => inform(head?).map_err(Unanswered::Refused)?,
            Either::Final(head) => return Ok(head?),
        }
    }
}

enum Either {
    Informational(Result<http::Response<()>, h2::Error>),
    Final(Result<http::Response<RecvStream>, h2::Error>),
}

/// Why there is no final head.
pub(crate) enum Unanswered {
    /// The stream or the connection ended.
    Broken(h2::Error),
    /// What came is not wanted.
    Refused(Error),
}

impl From<h2::Error> for Unanswered {
    fn from(error: h2::Error) -> Self {
        Unanswered::Broken(error)
    }
}

/// A request body on its way. Dropped, it ends there, and the origin is told that it is not whole.
pub(crate) struct Pump(Option<AbortHandle>);

impl Pump {
    fn start(
        body: UploadBody,
        mut stream: SendStream<Bytes>,
        progress: Arc<Progress>,
        patience: Duration,
    ) -> Pump {
        let task = tokio::spawn(async move {
            let stalled = tokio::select! {
                () = pump(body, &mut stream, &progress) => false,
                () = progress.stalled(patience) => true,
            };
            if stalled {
                stream.send_reset(Reason::CANCEL);
            }
        });
        Pump(Some(task.abort_handle()))
    }

    /// Lets it go on to its end.
    pub(crate) fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

/// Sends a body as its giver gives it and the origin's windows take it.
async fn pump(mut body: UploadBody, stream: &mut SendStream<Bytes>, progress: &Progress) {
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            // RFC 9113 §8.1: the origin has answered and wants no more, or the exchange has failed.
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return,
        };
        // Errors below mean that the stream is over, and then its answer says why.
        let sent = match frame {
            None => stream.send_data(Bytes::new(), true).is_ok(),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => send(data, stream, &body, progress).await.is_some(),
                Err(frame) => match frame.into_trailers() {
                    Ok(trailers) => stream.send_trailers(trailers).is_ok(),
                    Err(_) => true,
                },
            },
            Some(Err(_)) => {
                // Never half a body for a whole one.
                stream.send_reset(Reason::CANCEL);
                return;
            }
        };
        if !sent || body.is_end_stream() {
            return;
        }
    }
}

/// Sends one piece; `None` once the origin takes no more.
async fn send(
    mut data: Bytes,
    stream: &mut SendStream<Bytes>,
    body: &UploadBody,
    progress: &Progress,
) -> Option<()> {
    while !data.is_empty() {
        stream.reserve_capacity(data.len().min(PIECE));
        let room = poll_fn(|cx| stream.poll_capacity(cx)).await?.ok()?;
        progress.touch();
        let piece = data.split_to(room.min(data.len()));
        stream.send_data(piece, data.is_empty() && body.is_end_stream()).ok()?;
    }
    Some(())
}
