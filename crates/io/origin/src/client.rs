//! One exchange with an origin: a connection of this user's, the request on it, and the response under watch.

use crate::connect::{Connector, Destination};
use crate::error::Error;
use crate::guard::Guard;
use crate::hop::strip_hop_by_hop;
use crate::pool::{Connection, Partition, Pool, Slot};
use crate::resolve::Resolve;
use crate::response::{Lease, Response, ResponseBody, check_head, io_cause};
use crate::settings::Settings;
use crate::upload::{Progress, Upload, UploadBody, upload_error};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, TE, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{Method, StatusCode, Uri};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// A request to an origin over plain HTTP.
#[derive(Debug)]
pub struct Request {
    /// Whose connections to use.
    pub partition: Partition,
    /// The method; CONNECT is [`Client::connect`]'s.
    pub method: Method,
    /// The origin. Host is written from it.
    pub destination: Destination,
    /// Path and query; `*` for OPTIONS of the server as a whole.
    pub path: PathAndQuery,
    /// End-to-end fields. Those of the connection are taken out, those of framing are set from `upload`.
    pub fields: HeaderMap,
    /// The body.
    pub upload: Upload,
}

/// Fetches from origins. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    connector: Connector,
    pool: Arc<Pool>,
    settings: Arc<Settings>,
}

impl Client {
    /// A client that asks `resolver` for names and connects to what `guard` lets through.
    pub fn new(settings: Settings, guard: Guard, resolver: Arc<dyn Resolve>) -> Client {
        let settings = Arc::new(settings);
        let connector = Connector::new(guard, resolver, settings.clone());
        Client { connector, pool: Pool::new(settings.clone()), settings }
    }

    /// A plain TCP connection for a tunnel, past the same guard.
    ///
    /// # Errors
    /// The name, the addresses or the connection; never anything about a request.
    pub async fn connect(&self, destination: &Destination) -> Result<TcpStream, Error> {
        self.connector.connect(destination).await
    }

    /// Sends a request and waits for the head of the final response; informational heads go to `informational`, from
    /// another task. Redirects are responses like any other. Dropping the future gives the exchange up.
    ///
    /// A request without body whose method is idempotent is sent once more when a kept connection turns out to have
    /// been closed (RFC 9112 §9.3.1); nothing else is ever sent twice.
    ///
    /// # Errors
    /// Whatever keeps a whole, unambiguous response head from arriving.
    pub async fn fetch(
        &self,
        request: Request,
        informational: impl Fn(StatusCode, HeaderMap) + Send + Sync + 'static,
    ) -> Result<Response, Error> {
        if request.method == Method::CONNECT {
            return Err(Error::InvalidRequest("CONNECT opens a tunnel".into()));
        }
        let slot = self.pool.slot(request.partition.clone(), &request.destination).await?;
        let mut attempt = Attempt::new(request, Arc::new(informational), &self.settings)?;
        if let Some(connection) = slot.kept() {
            match attempt.run(connection).await {
                Ok((connection, response)) => return attempt.finish(slot, connection, response),
                Err(Failed::Stale) => {}
                Err(Failed::For(error)) => return Err(error),
            }
        }
        let connection = self.open(&attempt.destination).await?;
        match attempt.run(connection).await {
            Ok((connection, response)) => attempt.finish(slot, connection, response),
            Err(Failed::Stale) => Err(Error::Closed),
            Err(Failed::For(error)) => Err(error),
        }
    }

    /// Opens a connection that speaks HTTP/1. TLS and HTTP/2 will branch off here.
    async fn open(&self, destination: &Destination) -> Result<Connection, Error> {
        let stream = self.connector.connect(destination).await?;
        let head = usize::try_from(self.settings.head.0).unwrap_or(usize::MAX);
        let handshake = http1::Builder::new()
            .title_case_headers(true)
            .max_headers(self.settings.fields)
            .max_header_size(head)
            // hyper refuses less than 8 KiB; the head bound above still holds then.
            .max_buf_size(head.max(8 * 1024))
            .handshake(TokioIo::new(stream));
        let (sender, driver) = handshake.await.map_err(|error| Error::Malformed(error.to_string()))?;
        // Its errors reach the exchange as well.
        let driver = tokio::spawn(async move { drop(driver.await) });
        Ok(Connection::new(sender, driver.abort_handle()))
    }
}

/// Why an attempt gave no response.
enum Failed {
    /// A kept connection was closed before the origin can have acted on the request: it may be sent again.
    Stale,
    /// For good.
    For(Error),
}

type Informational = Arc<dyn Fn(StatusCode, HeaderMap) + Send + Sync>;

/// A request on its way, with what is needed to send it once more.
struct Attempt {
    destination: Destination,
    method: Method,
    /// The request as sent, for bodiless idempotent ones.
    again: Option<http::Request<()>>,
    /// Taken by the attempt that sends it.
    request: Option<http::Request<UploadBody>>,
    progress: Arc<Progress>,
    informational: Informational,
    settings: Arc<Settings>,
}

impl Attempt {
    fn new(request: Request, informational: Informational, settings: &Arc<Settings>) -> Result<Self, Error> {
        let progress = Progress::new();
        let repeatable = request.upload.is_empty() && request.method.is_idempotent();
        let mut head = http::Request::new(());
        *head.method_mut() = request.method.clone();
        *head.uri_mut() = Uri::from(request.path);
        *head.headers_mut() =
            fields_to_send(&request.method, &request.destination, request.fields, &request.upload)?;
        let again = repeatable.then(|| head.clone());
        let body = request.upload.into_body(progress.clone());
        Ok(Attempt {
            destination: request.destination,
            method: request.method,
            again,
            request: Some(head.map(|()| body)),
            progress,
            informational,
            settings: settings.clone(),
        })
    }

    /// Sends the request and waits for the head of the final response.
    async fn run(
        &mut self,
        mut connection: Connection,
    ) -> Result<(Connection, http::Response<Incoming>), Failed> {
        let Some(mut request) = self.request.take() else { return Err(Failed::For(Error::Closed)) };
        let too_many = Arc::new(Notify::new());
        let seen = Arc::new(AtomicUsize::new(0));
        self.watch_informational(&mut request, too_many.clone(), seen.clone());
        self.progress.touch();
        let result = tokio::select! {
            // A flood can keep this from being polled until its time is up as well; what came first counts.
            biased;
            result = connection.sender.try_send_request(request) => result,
            () = too_many.notified() => return Err(Failed::For(Error::TooManyInformational)),
            () = self.progress.stalled(self.settings.first_byte_timeout) => {
                return Err(Failed::For(Error::FirstByteTimedOut));
            }
        };
        let mut failure = match result {
            Ok(response) => return Ok((connection, response)),
            Err(failure) => failure,
        };
        // Handed back unsent: any request may go on another connection.
        if let Some(request) = failure.take_message() {
            self.request = Some(request);
            return Err(Failed::Stale);
        }
        let error = exchange_error(&failure.into_error());
        let unanswered = error == Error::Closed && seen.load(Ordering::Relaxed) == 0;
        match self.again.take() {
            Some(again) if unanswered => {
                self.request = Some(again.map(|()| Upload::empty().into_body(self.progress.clone())));
                Err(Failed::Stale)
            }
            _ => Err(Failed::For(error)),
        }
    }

    /// Passes informational heads on, until there are too many of them.
    fn watch_informational(
        &self,
        request: &mut http::Request<UploadBody>,
        too_many: Arc<Notify>,
        seen: Arc<AtomicUsize>,
    ) {
        let (most, pass_on, progress) =
            (self.settings.informational, self.informational.clone(), self.progress.clone());
        hyper::ext::on_informational(request, move |head| {
            if seen.fetch_add(1, Ordering::Relaxed) >= most {
                too_many.notify_one();
                return;
            }
            progress.touch();
            let mut fields = head.headers().clone();
            strip_hop_by_hop(&mut fields);
            // RFC 9110 §8.6, RFC 9112 §6.1: neither means anything here.
            fields.remove(CONTENT_LENGTH);
            pass_on(head.status(), fields);
        });
    }

    /// Makes what hyper read a response, if it has one reading.
    fn finish(
        self,
        slot: Slot,
        connection: Connection,
        response: http::Response<Incoming>,
    ) -> Result<Response, Error> {
        let (head, incoming) = response.into_parts();
        if head.status.is_informational() {
            return Err(Error::UnaskedUpgrade);
        }
        let mut fields = head.headers;
        let closes = fields.get_all(CONNECTION).iter().any(|value| {
            value
                .as_bytes()
                .split(|&byte| byte == b',')
                .any(|item| item.trim_ascii().eq_ignore_ascii_case(b"close"))
        });
        let upload_unwanted = closes || head.status.is_client_error() || head.status.is_server_error();
        check_head(&self.method, head.status, head.version, &mut fields)?;
        let length = incoming.size_hint().exact();
        let lease =
            Lease { upload_unwanted, slot, connection, progress: self.progress, settings: self.settings };
        Ok(Response { status: head.status, fields, length, body: ResponseBody::new(incoming, lease) })
    }
}

/// The fields as they go on the wire.
fn fields_to_send(
    method: &Method,
    destination: &Destination,
    mut given: HeaderMap,
    upload: &Upload,
) -> Result<HeaderMap, Error> {
    strip_hop_by_hop(&mut given);
    let sized = given.contains_key(CONTENT_LENGTH);
    given.remove(CONTENT_LENGTH);
    given.remove(HOST);
    let authority = destination.authority(80);
    let host = HeaderValue::try_from(&authority)
        .map_err(|_| Error::InvalidRequest(format!("host '{authority}' is malformed")))?;
    // RFC 9110 §7.2: Host comes first.
    let mut fields = HeaderMap::with_capacity(given.len() + 3);
    fields.insert(HOST, host);
    fields.extend(given);
    if fields.contains_key(TE) {
        // RFC 9110 §10.1.4: TE is of this connection.
        fields.insert(CONNECTION, HeaderValue::from_static("TE"));
    }
    match upload.length() {
        // RFC 9110 §8.6: said for methods that usually have a body.
        Some(0) if !(sized || [Method::POST, Method::PUT, Method::PATCH].contains(method)) => {}
        Some(bytes) => {
            fields.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
        }
        None => {
            fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    Ok(fields)
}

/// What hyper found wrong before there was a response head.
fn exchange_error(error: &hyper::Error) -> Error {
    if error.is_parse_too_large() {
        return Error::HeadTooLarge;
    }
    if error.is_parse() {
        return Error::Malformed(error.to_string());
    }
    if error.is_user() {
        let cause = std::error::Error::source(error).unwrap_or(error);
        return upload_error(cause);
    }
    match io_cause(error) {
        Some(cause) if matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            Error::Malformed(cause.to_string())
        }
        _ => Error::Closed,
    }
}
