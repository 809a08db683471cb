//! HTTP/2 on one connection to an origin: requests within the limit of streams, pushes as the settings want them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{PushPromise, PushPromises, PushedResponseFuture, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Method, Request, Response};
use tokio::sync::{Semaphore, watch};
use url::Url;

use crate::body::Body;
use crate::course::{Course, Origin};
use crate::fields;
use crate::graph::{Object, upload_body};
use crate::open::open;
use crate::settings::Push;

/// One connection from its beginning to its end.
pub(crate) async fn work(course: Arc<Course>, origin: Origin, push: Push) {
    let (place, stream) = match open(&course, &origin).await {
        Ok(opened) => opened,
        Err(fault) => return course.unreachable(&origin, &fault),
    };
    let settings = &course.settings;
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(settings.windows.stream)
        .initial_connection_window_size(settings.windows.connection)
        .enable_push(push != Push::Off)
        // What was refused still comes for as long as its server has it under way. A stream that is forgotten meanwhile would
        // make each frame of it an error, and enough of them the end of the connection.
        .max_concurrent_reset_streams(usize::MAX)
        .reset_stream_duration(settings.patience)
        .max_local_error_reset_streams(None);
    let (mut requests, connection) = match builder.handshake::<_, Bytes>(stream).await {
        Ok(made) => made,
        Err(error) => return course.unreachable(&origin, &format!("HTTP/2: {error}")),
    };
    let (end, mut ended) = tokio::sync::oneshot::channel();
    course.spawn(async move {
        let fault = connection.await.err().map(|error| format!("HTTP/2: {error}"));
        let _ = end.send(fault); // nobody waits for it once it stood idle for too long
    });
    let streams = Arc::new(Semaphore::new(settings.streams.max(1)));
    let (under_way, watched) = watch::channel(0usize);
    let idle = rest(watched, settings.idle);
    tokio::pin!(idle);
    let (mut brought, lost) = (false, Arc::new(AtomicBool::new(false)));
    let fault = loop {
        let next = async {
            let permit = streams.clone().acquire_owned().await.ok(); // it is never closed
            (permit, course.take(&origin, 1).await)
        };
        let (permit, batch) = tokio::select! {
            biased;
            fault = &mut ended => break fault.ok().flatten(),
            next = next => next,
            () = &mut idle => break None,
        };
        course.rest(&origin); // one connection is enough, however much is under way on it
        let Some(object) = batch.into_iter().next() else { continue };
        match ask(&course, &mut requests, object, place).await {
            Ok((response, pushes)) => {
                brought = true;
                under_way.send_modify(|count| *count += 1);
                let (under_way, lost) = (under_way.clone(), lost.clone());
                let answer = Answer { course: course.clone(), object, place, push };
                course.spawn(async move {
                    if !answer.read(response, pushes).await {
                        lost.store(true, Ordering::Relaxed);
                    }
                    under_way.send_modify(|count| *count -= 1);
                    drop(permit);
                });
            }
            Err(fault) => course.failed(object, &fault),
        }
    };
    // One that ends while nothing is under way is no loss, however it ends.
    let is_loss = lost.load(Ordering::Relaxed) || *under_way.borrow() > 0;
    match fault {
        Some(fault) if !brought => course.unreachable(&origin, &fault),
        fault if is_loss => {
            let fault = fault.as_deref().unwrap_or("it ended before its answers");
            course.broke(&origin, place, fault);
        }
        _ => course.gone(&origin),
    }
}

/// Waits until nothing was under way for so long; for ever without a limit.
pub(crate) async fn rest(mut under_way: watch::Receiver<usize>, idle: Option<Duration>) {
    let Some(idle) = idle else { return std::future::pending().await };
    loop {
        if under_way.wait_for(|count| *count == 0).await.is_err() {
            return;
        }
        tokio::select! {
            biased;
            changed = under_way.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(idle) => return,
        }
    }
}

/// Sends the request for an object.
async fn ask(
    course: &Arc<Course>,
    requests: &mut SendRequest<Bytes>,
    object: usize,
    place: usize,
) -> Result<(ResponseFuture, PushPromises), String> {
    let request = request(&course.graph.objects[object])?;
    let ready = std::future::poll_fn(|context| requests.poll_ready(context)).await;
    ready.map_err(|error| format!("HTTP/2: {error}"))?;
    course.asked(object, place);
    let upload = course.graph.objects[object].upload;
    let (mut response, stream) =
        requests.send_request(request, upload.is_none()).map_err(|error| format!("HTTP/2: {error}"))?;
    if let Some(bytes) = upload {
        // A server that stops reading says why in its answer.
        course.spawn(async move { drop(send(stream, Bytes::from(upload_body(bytes))).await) });
    }
    let pushes = response.push_promises();
    Ok((response, pushes))
}

/// Sends a body within the server's windows.
async fn send(mut stream: SendStream<Bytes>, mut body: Bytes) -> Result<(), h2::Error> {
    stream.reserve_capacity(body.len());
    while !body.is_empty() {
        let Some(room) = std::future::poll_fn(|context| stream.poll_capacity(context)).await else { break };
        let piece = body.split_to(room?.min(body.len()));
        let is_last = body.is_empty();
        stream.send_data(piece, is_last)?;
    }
    Ok(())
}

/// The request for an object, as HTTP/2 and HTTP/3 have it.
pub(crate) fn request(object: &Object) -> Result<Request<()>, String> {
    let method = if object.upload.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder().method(method).uri(object.url.as_str());
    for (name, value) in fields::of(object) {
        request = request.header(name, value);
    }
    if let Some(bytes) = object.upload {
        request = request.header("content-type", "application/octet-stream").header("content-length", bytes);
    }
    request.body(()).map_err(|error| error.to_string())
}

/// One answer, and what is promised with it.
struct Answer {
    course: Arc<Course>,
    object: usize,
    place: usize,
    push: Push,
}

impl Answer {
    /// Reads it; whether it came.
    async fn read(self, response: ResponseFuture, mut pushes: PushPromises) -> bool {
        tokio::pin!(response);
        let mut may_push = true;
        let response = loop {
            tokio::select! {
                biased;
                // Ahead of the bytes that name what is promised (RFC 9113 §8.4).
                promise = pushes.push_promise(), if may_push => may_push = self.promised(promise),
                response = &mut response => break response,
            }
        };
        let done = match response {
            Ok(response) => self.body(response, Some((pushes, may_push))).await,
            Err(error) => Err(format!("HTTP/2: {error}")),
        };
        if let Err(fault) = &done {
            self.course.failed(self.object, fault);
        }
        done.is_ok()
    }

    /// Reads a body, and takes what is promised meanwhile.
    async fn body(
        &self,
        response: Response<RecvStream>,
        pushes: Option<(PushPromises, bool)>,
    ) -> Result<(), String> {
        self.course.begun(self.object);
        let (head, mut stream) = response.into_parts();
        let coding = head.headers.get(http::header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
        let mut body = Body::new(coding)?;
        let (mut pushes, mut may_push) = pushes.map_or((None, false), |(pushes, may)| (Some(pushes), may));
        loop {
            let promise = async {
                match pushes.as_mut() {
                    Some(pushes) => pushes.push_promise().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                promise = promise, if may_push => may_push = self.promised(promise),
                data = stream.data() => {
                    let Some(data) = data else { break };
                    let data = data.map_err(|error| format!("HTTP/2: {error}"))?;
                    let released = stream.flow_control().release_capacity(data.len());
                    released.map_err(|error| format!("HTTP/2: {error}"))?;
                    self.course.known(self.object, body.push(&data)?);
                }
            }
        }
        self.course.arrived(self.object, head.status.as_u16(), body);
        Ok(())
    }

    /// A promise came: taken, or dropped, which resets it. Whether more may come.
    fn promised(&self, promise: Option<Result<PushPromise, h2::Error>>) -> bool {
        let Some(Ok(promise)) = promise else { return false };
        let (request, response) = promise.into_parts();
        if self.push != Push::Accepted {
            self.course.refused();
            return true;
        }
        let url = Url::parse(&request.uri().to_string()).ok();
        if let Some(object) = url.and_then(|url| self.course.promised(&url, self.place)) {
            let pushed = Answer { course: self.course.clone(), object, place: self.place, push: self.push };
            self.course.spawn(pushed.pushed(response));
        }
        true
    }

    async fn pushed(self, response: PushedResponseFuture) {
        let done = match response.await {
            Ok(response) => self.body(response, None).await,
            Err(error) => Err(format!("HTTP/2: {error}")),
        };
        if let Err(fault) = done {
            self.course.failed(self.object, &fault);
        }
    }
}
