//! Clients that stop reading, break off, talk nonsense or never end, and a user beside them, through both ends: the pages
//! of that user come as ever, who reads on gets the right bytes, and what nobody wants any more ends at the origin.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use farhop_testkit::{File, Site, SiteOrigin, pattern};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::{InProcess, PATIENCE, get};

/// Clients that begin a download and read no more of it than its beginning: together they leave unread many times what a
/// carrier has room for that counts on its streams being read.
const SLOW: u8 = 24;
/// Pages in a row in which nothing more of any download moves: all that stand between it and its client are full.
const STILL: u32 = 10;

/// An origin whose every answer is a pattern without end.
struct Endless {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
    open: watch::Receiver<usize>,
}

impl Endless {
    async fn start() -> Endless {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sent, (opened, open)) = (Arc::<AtomicU64>::default(), watch::channel(0));
        let count = Arc::clone(&sent);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (count, opened) = (Arc::clone(&count), opened.clone());
                tokio::spawn(async move {
                    opened.send_modify(|open| *open += 1);
                    serve(stream, &count).await;
                    opened.send_modify(|open| *open -= 1);
                });
            }
        });
        Endless { address, sent, open }
    }

    /// Bytes that connections of this machine have taken from it.
    fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Waits until so many downloads are under way.
    async fn under_way(&self, downloads: usize) {
        let mut open = self.open.clone();
        let open = open.wait_for(|open| *open == downloads);
        let waited = timeout(PATIENCE, open).await;
        waited
            .unwrap_or_else(|_| panic!("never {downloads} downloads, but {}", *self.open.borrow()))
            .unwrap();
    }
}

/// One answer, until the other side has had enough.
async fn serve(mut stream: TcpStream, sent: &AtomicU64) {
    const PIECE: usize = 64 * 1024;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let answer = b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: video/mp4\r\n\r\n";
    let mut written = stream.write_all(answer).await;
    let mut start = 0;
    while written.is_ok() {
        written = stream.write_all(&pattern::bytes_at(7, start, PIECE)).await;
        start += PIECE as u64;
        sent.fetch_add(PIECE as u64, Relaxed);
    }
}

/// A client at an address of its own, so that each is another user: it asks, with little room for what comes.
async fn client(proxy: SocketAddr, number: u8, request: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 1, number), 0).into()).unwrap();
    let mut stream = socket.connect(proxy).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream
}

fn download(endless: &Endless) -> Vec<u8> {
    let at = endless.address;
    format!("GET http://{at}/film HTTP/1.1\r\nHost: {at}\r\nAccept: */*\r\n\r\n").into_bytes()
}

/// Reads up to the end of the head.
async fn begun(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = timeout(PATIENCE, stream.read_u8()).await.expect("the download begins");
        head.push(byte.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
}

async fn site() -> SiteOrigin {
    let fresh = |media, content: Vec<u8>| File::new(media, content).field("cache-control", "no-store");
    let page = "<!doctype html><title>t</title><link rel=stylesheet href=/a.css><img src=/a.png>".to_owned();
    let site = Site::new()
        .file("/", fresh("text/html", page.into_bytes()))
        .file("/a.css", fresh("text/css", b"p { color: red }".to_vec()))
        .file("/a.png", fresh("image/png", pattern::bytes_at(3, 0, 100_000).to_vec()));
    site.serve().await
}

/// Loads a page with what it needs, as another user than any of the clients.
async fn page(ends: &InProcess, site: &SiteOrigin) {
    for (path, length) in [("/", 80), ("/a.css", 16), ("/a.png", 100_000)] {
        let answer = get(ends.proxy, &site.url(path)).await;
        assert_eq!((answer.status, answer.bytes.len(), answer.whole), (200, length, true), "{path}");
    }
}

/// Loads pages until nothing of the downloads moves any more.
async fn page_until_still(ends: &InProcess, site: &SiteOrigin, endless: &Endless) {
    let (mut before, mut still) = (endless.sent(), 0);
    while still < STILL {
        page(ends, site).await;
        let now = endless.sent();
        still = if now == before { still + 1 } else { 0 };
        before = now;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_come_beside_clients_that_read_nothing_of_their_downloads() {
    let (site, endless) = (site().await, Endless::start().await);
    let ends = InProcess::start("none").await;
    let mut slow = Vec::new();
    for number in 1..=SLOW {
        let mut stream = client(ends.proxy, number, &download(&endless)).await;
        begun(&mut stream).await;
        slow.push(stream);
        page(&ends, &site).await;
    }
    page_until_still(&ends, &site, &endless).await;

    // One goes on after all.
    let mut awake = slow.pop().unwrap();
    let mut got = vec![0; 8 << 20];
    timeout(PATIENCE, awake.read_exact(&mut got)).await.expect("it goes on").unwrap();
    // Its answer has no length, so it comes in chunks.
    assert!(unchunked(&got, 4 << 20) == pattern::bytes_at(7, 0, 4 << 20), "its bytes are not the origin's");
    page(&ends, &site).await;

    // Half of them break off, half just leave: nothing of theirs goes on.
    for (number, stream) in slow.into_iter().enumerate() {
        if number % 2 == 0 {
            stream.set_zero_linger().unwrap();
        }
    }
    drop(awake);
    endless.under_way(0).await;
    page(&ends, &site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_come_beside_clients_that_talk_nonsense_break_off_and_never_end() {
    // The latter begins to answer and takes nothing of an upload.
    let (site, endless, deaf) = (site().await, Endless::start().await, Endless::start().await);
    let ends = InProcess::start("none").await;
    let upload = |at: SocketAddr| {
        format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\nTransfer-Encoding: chunked\r\n\r\n")
    };
    let mut uploads = Vec::new();
    for number in 1..=SLOW {
        match number % 4 {
            0 => refused(client(ends.proxy, number, b"\x16\x03\x01\x02\x00\x01x\r\n\r\n").await).await,
            1 => {
                let broken = upload(site.address()) + "zz\r\n";
                refused(client(ends.proxy, number, broken.as_bytes()).await).await;
            }
            2 => {
                let mut stream = client(ends.proxy, number, &download(&endless)).await;
                begun(&mut stream).await;
                stream.set_zero_linger().unwrap();
            }
            _ => {
                let mut stream = client(ends.proxy, number, upload(deaf.address).as_bytes()).await;
                uploads.push(tokio::spawn(async move {
                    let chunk = [b"4000\r\n".as_slice(), &[b'x'; 0x4000], b"\r\n"].concat();
                    while stream.write_all(&chunk).await.is_ok() {}
                }));
            }
        }
        page(&ends, &site).await;
    }
    endless.under_way(0).await;
    deaf.under_way(uploads.len()).await;
    page_until_still(&ends, &site, &deaf).await;
    assert!(uploads.iter().all(|upload| !upload.is_finished()), "an upload was cut off");
    uploads.iter().for_each(tokio::task::JoinHandle::abort);
    deaf.under_way(0).await;
}

/// Reads to the end of the connection, which is said to be no good.
async fn refused(mut stream: TcpStream) {
    let mut said = Vec::new();
    // It may be reset once everything is said.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut said)).await.expect("nonsense is answered");
    assert!(said.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&said));
}

/// The first bytes of a body that comes in chunks, of which `coded` is the beginning.
fn unchunked(mut coded: &[u8], most: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < most {
        let end = coded.windows(2).position(|two| two == b"\r\n").expect("a size of a chunk");
        let size = usize::from_str_radix(std::str::from_utf8(&coded[..end]).unwrap(), 16).unwrap();
        let data = &coded[end + 2..];
        body.extend_from_slice(&data[..size.min(data.len())]);
        if data.len() < size + 2 {
            break;
        }
        coded = &data[size + 2..];
    }
    body.truncate(most);
    body
}
