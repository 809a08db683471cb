//! HTTP/3 on one QUIC connection to an origin: requests within the limit of streams. No pushes, which no server has, and no
//! proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use h3::client::{RequestStream, SendRequest};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint, EndpointConfig, TransportConfig, VarInt};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::body::Body;
use crate::course::{Course, Origin};
use crate::graph::upload_body;
use crate::multiplexed::{request, rest};
use crate::open::Traffic;

type Requests = SendRequest<h3_quinn::OpenStreams, Bytes>;
type Exchange = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// What the loader offers by ALPN (RFC 9114 §3.1).
pub(crate) const ALPN: &[u8] = b"h3";
/// A connection on which nothing comes for so long is lost; pages of the lab wait for less.
const LOST: Duration = Duration::from_secs(60);
/// Browsers give a handshake up after so long, and servers before that without a word: it is tried anew.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// One connection from its beginning to its end.
pub(crate) async fn work(course: Arc<Course>, origin: Origin) {
    let (place, traffic, connection) = match open(&course, &origin).await {
        Ok(opened) => opened,
        Err(fault) => return course.unreachable(&origin, &fault),
    };
    let mut builder = h3::client::builder();
    let made = builder.build::<_, _, Bytes>(h3_quinn::Connection::new(connection.clone())).await;
    let (mut driver, requests) = match made {
        Ok(made) => made,
        Err(error) => return course.unreachable(&origin, &format!("HTTP/3: {error}")),
    };
    let (end, mut ended) = tokio::sync::oneshot::channel();
    course.spawn(async move {
        let fault = std::future::poll_fn(|context| driver.poll_close(context)).await;
        let _ = end.send(format!("HTTP/3: {fault}")); // nobody waits for it once it stood idle for too long
    });
    let streams = Arc::new(Semaphore::new(course.settings.streams.max(1)));
    let (under_way, watched) = watch::channel(0usize);
    let idle = rest(watched, course.settings.idle);
    tokio::pin!(idle);
    let (mut brought, lost) = (false, Arc::new(AtomicBool::new(false)));
    let fault = loop {
        let next = async {
            let permit = streams.clone().acquire_owned().await.ok(); // it is never closed
            (permit, course.take(&origin, 1).await)
        };
        let (permit, batch) = tokio::select! {
            biased;
            fault = &mut ended => break fault.ok(),
            next = next => next,
            () = &mut idle => break None,
        };
        course.rest(&origin); // one connection is enough, however much is under way on it
        let Some(object) = batch.into_iter().next() else { continue };
        brought = true;
        under_way.send_modify(|count| *count += 1);
        let (under_way, requests, course_of_it) = (under_way.clone(), requests.clone(), course.clone());
        let (traffic, connection, lost) = (traffic.clone(), connection.clone(), lost.clone());
        course.spawn(async move {
            if let Err(fault) = exchange(&course_of_it, requests, object, place).await {
                lost.store(true, Ordering::Relaxed);
                course_of_it.failed(object, &fault);
            }
            count(&traffic, &connection);
            under_way.send_modify(|count| *count -= 1);
            drop(permit);
        });
    };
    count(&traffic, &connection);
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

/// Connects: one round trip for QUIC and TLS together.
async fn open(course: &Arc<Course>, origin: &Origin) -> Result<(usize, Arc<Traffic>, Connection), String> {
    let settings = &course.settings;
    if !origin.secure || settings.proxy.is_some() {
        return Err("HTTP/3 is https, and goes through no proxy".into());
    }
    let (place, traffic) = course.dialling(origin);
    let connected = async {
        let (socket, address) = course.connector.datagrams(&origin.host, origin.port).await?;
        let runtime = quinn::default_runtime().ok_or_else(|| std::io::Error::other("no runtime"))?;
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime)?;
        let tls = course.sessions.config(settings.handshake, ALPN);
        let tls = QuicClientConfig::try_from(tls).map_err(std::io::Error::other)?;
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(transport(course)?));
        let connecting =
            endpoint.connect_with(config, address, &origin.host).map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>(timeout(HANDSHAKE, connecting).await??)
    };
    let connection = connected
        .await
        .map_err(|error| format!("no connection to {}:{} by QUIC: {error}", origin.host, origin.port))?;
    course.ready(place, None);
    Ok((place, traffic, connection))
}

fn transport(course: &Course) -> std::io::Result<TransportConfig> {
    let windows = course.settings.windows;
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(windows.stream))
        .receive_window(VarInt::from_u32(windows.connection))
        .max_idle_timeout(Some(LOST.try_into().map_err(std::io::Error::other)?));
    Ok(transport)
}

/// The bytes of a connection so far, QUIC's own included.
fn count(traffic: &Traffic, connection: &Connection) {
    let stats = connection.stats();
    traffic.sent.store(stats.udp_tx.bytes, Ordering::Relaxed);
    traffic.received.store(stats.udp_rx.bytes, Ordering::Relaxed);
}

/// One request and its answer.
async fn exchange(
    course: &Arc<Course>,
    mut requests: Requests,
    object: usize,
    place: usize,
) -> Result<(), String> {
    let said = |error: h3::error::StreamError| format!("HTTP/3: {error}");
    let about = &course.graph.objects[object];
    let request = request(about)?;
    course.asked(object, place);
    let mut stream: Exchange = requests.send_request(request).await.map_err(said)?;
    if let Some(bytes) = about.upload {
        stream.send_data(Bytes::from(upload_body(bytes))).await.map_err(said)?;
    }
    stream.finish().await.map_err(said)?;
    let response = stream.recv_response().await.map_err(said)?;
    course.begun(object);
    let coding = response.headers().get(http::header::CONTENT_ENCODING);
    let mut body = Body::new(coding.and_then(|value| value.to_str().ok()))?;
    while let Some(mut data) = stream.recv_data().await.map_err(said)? {
        while data.has_remaining() {
            let piece = data.chunk().len();
            course.known(object, body.push(data.chunk())?);
            data.advance(piece);
        }
    }
    course.arrived(object, response.status().as_u16(), body);
    Ok(())
}
