//! Origins made of raw bytes, and a client that may reach them. Only for the tests beside it.

#![allow(clippy::unwrap_used, dead_code)] // helpers of tests fail by panicking, and not each test uses all
#![allow(unreachable_pub)] // a module of each test, of no crate's interface

pub mod h2raw;
pub mod judging;
pub mod tls;

use bytes::Bytes;
use farhop_origin::{
    Client, Destination, Error, FixedResolver, Guard, Partition, Request, Response, Scheme, Settings, Trust,
    Upload,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::future::Future;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// An origin under test's control.
pub struct Origin {
    pub port: u16,
    accepted: watch::Receiver<usize>,
}

impl Origin {
    /// Runs `serve` for each connection; it also gets the connection's number.
    pub async fn start<F, Fut>(serve: F) -> Origin
    where
        F: Fn(TcpStream, usize) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (counter, accepted) = watch::channel(0);
        tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                counter.send_replace(number + 1);
                tokio::spawn(serve(stream, number));
            }
        });
        Origin { port, accepted }
    }

    /// Reads one request head, sends `answer` and closes.
    pub async fn answering(answer: impl Into<Vec<u8>>) -> Origin {
        let answer: Arc<[u8]> = answer.into().into();
        Origin::start(move |mut stream, _| {
            let answer = answer.clone();
            async move {
                read_head(&mut stream).await;
                // The client may have had enough before the end.
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        })
        .await
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        *self.accepted.borrow()
    }

    /// Waits until so many connections have been made.
    pub async fn connected(&self, connections: usize) {
        self.accepted.clone().wait_for(|accepted| *accepted >= connections).await.unwrap();
    }

    pub fn destination(&self) -> Destination {
        Destination::new("127.0.0.1", self.port)
    }

    pub fn get(&self, path: &'static str) -> Request {
        self.request(Method::GET, path, Upload::empty())
    }

    pub fn request(&self, method: Method, path: &'static str, upload: Upload) -> Request {
        Request {
            partition: Partition::new("user"),
            scheme: Scheme::Http,
            method,
            destination: self.destination(),
            path: PathAndQuery::from_static(path),
            fields: HeaderMap::new(),
            upload,
            patience: None,
        }
    }
}

/// Reads up to the end of one head; what came of it, empty at the end of the connection.
pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// From now on nothing but a timer is waited for, so time jumps to it. A clock that is paused while bytes are under way does
/// not wait for them: a busy system delivers them late, even to itself.
pub fn let_time_fly() {
    tokio::time::pause();
}

/// Makes the close of `stream` a reset.
pub fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
}

pub fn client_with(settings: Settings) -> Client {
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    Client::new(settings, guard, Arc::new(FixedResolver::default()), nobody())
}

/// Trusts no certificate.
pub fn nobody() -> Trust {
    Trust::only(&[], &[]).unwrap()
}

pub fn client() -> Client {
    client_with(Settings::default())
}

pub async fn fetch(client: &Client, request: Request) -> Result<Response, Error> {
    client.fetch(request, |_, _, _| {}).await
}

/// The whole body.
pub async fn whole(response: &mut Response) -> Result<Bytes, Error> {
    let mut whole = Vec::new();
    while let Some(data) = response.body.data().await? {
        whole.extend_from_slice(&data);
    }
    Ok(whole.into())
}

/// Fetches `answer` from an origin that sends it and closes: the body, or what failed.
pub async fn body_of(answer: &str) -> Result<Bytes, Error> {
    let origin = Origin::answering(answer).await;
    let mut response = fetch(&client(), origin.get("/")).await?;
    whole(&mut response).await
}

/// Waits for all of them at once.
pub async fn join_all<F: Future + Unpin>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in waiting.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = std::pin::Pin::new(future).poll(cx) {
                *done = Some(output);
            }
        }
        if waiting.iter().all(|(_, done)| done.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    waiting.into_iter().filter_map(|(_, done)| done).collect()
}

/// A section of such fields.
pub fn header_fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}
