//! A page that means harm to whoever reads it ahead of the browser: endless imports, a hundred thousand hints, redirects in
//! circles, megabytes of attributes, pictures that unpack to gigabytes, names of machines that are nobody's business. Among
//! all that stand a few ordinary resources, which have to load all the same.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

/// Hints to small pictures.
pub const HINTS: usize = 100_000;
/// Bytes of attributes in one tag.
pub const ATTRIBUTES: usize = 10_000_000;
/// Bytes of one `data:` URL.
pub const DATA_URL: usize = 4_000_000;

/// What an honest page would have had, and two pictures whose heads promise gigabytes: as bytes they are as good as others.
pub const ORDINARY: [&str; 6] =
    ["/good.css", "/good.js", "/good.png", "/last.png", "/gigabyte.png", "/gigabyte.jpg"];
/// Bytes of such a picture: short ones are not looked into.
const PICTURE: usize = 20_000;

/// The page and its origin, on a loopback port of its own until it is dropped.
#[derive(Debug)]
pub struct HostilePage {
    address: SocketAddr,
    document: Bytes,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
    forbidden: StdListener,
    task: AbortHandle,
}

impl HostilePage {
    /// Serves it at 127.0.0.1. Its private addresses include a listener at 127.0.0.2, which nobody may reach.
    ///
    /// # Panics
    /// Loopback has no free ports.
    pub async fn serve() -> HostilePage {
        let forbidden = StdListener::bind(("127.0.0.2", 0)).expect("loopback has free ports");
        forbidden.set_nonblocking(true).expect("sockets can be made nonblocking");
        let private = forbidden.local_addr().expect("a bound listener has an address");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound listener has an address");
        let document = document(private);
        let asked: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let task = tokio::spawn(accept(listener, document.clone(), asked.clone(), private)).abort_handle();
        HostilePage { address, document, asked, forbidden, task }
    }

    /// `http://127.0.0.1:PORT` and the path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The document's bytes.
    pub fn document(&self) -> &[u8] {
        &self.document
    }

    /// The bytes of one of [`ORDINARY`].
    pub fn ordinary(path: &str) -> Vec<u8> {
        match path {
            "/gigabyte.png" => gigabyte_png(),
            "/gigabyte.jpg" => gigabyte_jpeg(),
            path => format!("/* the whole of {path} */").into_bytes(),
        }
    }

    /// How many requests for paths that begin so have reached the origin.
    pub fn asked(&self, prefix: &str) -> usize {
        let asked = self.asked.lock().expect("no holder of this lock panics");
        asked.iter().filter(|(path, _)| path.starts_with(prefix)).map(|(_, times)| times).sum()
    }

    /// Whether somebody connected where nobody may.
    pub fn reached_private(&self) -> bool {
        self.forbidden.accept().is_ok()
    }
}

impl Drop for HostilePage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn document(private: SocketAddr) -> Bytes {
    let mut page = String::with_capacity(ATTRIBUTES + DATA_URL + HINTS * 32);
    page.push_str("<!doctype html><title>hostile</title>\n<link rel=stylesheet href=/good.css>");
    page.push_str("<script src=/good.js></script><img src=/good.png>\n");
    page.push_str("<link rel=stylesheet href=/imports/0.css>\n");
    for number in 0..20 {
        page.push_str(&format!("<img src=/circle/{number}>"));
    }
    for host in
        ["10.0.0.1", "192.168.0.1", "172.16.0.1", "169.254.169.254", "[::1]", "[fe80::1]", "localhost"]
    {
        page.push_str(&format!("<img src=http://{host}/private.png>"));
    }
    page.push_str(&format!("<img src=http://{private}/private.png><img src=/to-private>\n"));
    page.push_str("<img src=/gigabyte.png><img src=/gigabyte.jpg>\n");
    for number in 0..HINTS {
        page.push_str(&format!("<img src=/many/{number}.png>\n"));
    }
    for (before, after) in [
        ("<img src=\"data:image/png;base64,", "\">\n"),
        ("<link rel=stylesheet href=\"data:text/css,", "\">\n"),
        ("<iframe src=\"data:text/html,", "\"></iframe>\n"),
        ("<style>.a { background: url(\"data:image/png;base64,", "\") }</style>\n"),
    ] {
        page.push_str(before);
        page.push_str(&"A".repeat(DATA_URL));
        page.push_str(after);
    }
    page.push_str("<div");
    let start = page.len();
    for number in 0.. {
        if page.len() - start >= ATTRIBUTES {
            break;
        }
        page.push_str(&format!(" data-a{number}=\"{number} is of no use to anyone\""));
    }
    page.push_str(">\n");
    page.push_str("<img src=/last.png></div>");
    page.into()
}

async fn accept(
    listener: TcpListener,
    document: Bytes,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
    private: SocketAddr,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (document, asked) = (document.clone(), asked.clone());
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let path = request.uri().path().to_owned();
            *asked.lock().expect("no holder of this lock panics").entry(path.clone()).or_default() += 1;
            let answer = answer(&path, &document, private);
            async move { Ok::<_, Infallible>(answer) }
        });
        connections.spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}

fn answer(path: &str, document: &Bytes, private: SocketAddr) -> Response<Full<Bytes>> {
    let moved = |to: String| (StatusCode::FOUND, "text/plain", Some(to), Bytes::new());
    let found = |media_type, body: Vec<u8>| (StatusCode::OK, media_type, None, Bytes::from(body));
    let number = |prefix: &str, suffix: &str| -> Option<u64> {
        path.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok()
    };
    let (status, media_type, location, body) = if path == "/" {
        (StatusCode::OK, "text/html", None, document.clone())
    } else if ORDINARY.contains(&path) {
        let media_type = match path.rsplit('.').next() {
            Some("css") => "text/css",
            Some("js") => "text/javascript",
            Some("jpg") => "image/jpeg",
            _ => "image/png",
        };
        found(media_type, HostilePage::ordinary(path))
    } else if let Some(depth) = number("/imports/", ".css") {
        let next = depth + 1;
        let rules =
            format!("@import \"/imports/{next}.css\";\nimg {{ background: url(/imported/{depth}.png) }}\n");
        found("text/css", rules.into_bytes())
    } else if let Some(place) = number("/circle/", "") {
        moved(format!("/circle/{}", (place + 1) % 20))
    } else if path == "/to-private" {
        moved(format!("http://{private}/private.png"))
    } else if path.ends_with(".png") {
        found("image/png", b"small".to_vec())
    } else {
        (StatusCode::NOT_FOUND, "text/plain", None, Bytes::from_static(b"nothing"))
    };
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, media_type)
        .header(header::CACHE_CONTROL, "no-store");
    if let Some(location) = location {
        response = response.header(header::LOCATION, location);
    }
    response.body(Full::new(body)).expect("every field is valid")
}

/// A picture whose head promises 16,384 × 16,384 pixels of four bytes and whose body is of no use.
fn gigabyte_png() -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8; 4], data: &[u8]| {
        png.extend_from_slice(&(data.len() as u32).to_be_bytes());
        let at = png.len();
        png.extend_from_slice(kind);
        png.extend_from_slice(data);
        let sum = crc32(&png[at..]);
        png.extend_from_slice(&sum.to_be_bytes());
    };
    chunk(b"IHDR", b"\0\0\x40\0\0\0\x40\0\x08\x06\0\0\0");
    chunk(b"IDAT", &vec![b'x'; PICTURE]);
    chunk(b"IEND", b"");
    png
}

/// One of 30,000 × 30,000 pixels of three bytes (ITU-T T.81, annex B): tables, the frame's head, and a scan of nothing.
fn gigabyte_jpeg() -> Vec<u8> {
    let mut jpeg = b"\xff\xd8".to_vec();
    let mut segment = |marker: u8, data: &[u8]| {
        jpeg.extend_from_slice(&[0xff, marker]);
        jpeg.extend_from_slice(&(data.len() as u16 + 2).to_be_bytes());
        jpeg.extend_from_slice(data);
    };
    segment(0xdb, &[&[0u8][..], &[1; 64]].concat());
    segment(0xc0, b"\x08\x75\x30\x75\x30\x03\x01\x11\0\x02\x11\0\x03\x11\0");
    // One code, of one bit, in each table of codes.
    for table in [0x00, 0x10] {
        segment(0xc4, &[&[table, 1][..], &[0; 15], &[0]].concat());
    }
    segment(0xda, b"\x03\x01\0\x02\0\x03\0\0\x3f\0");
    jpeg.extend(std::iter::repeat_n(0, PICTURE));
    jpeg.extend_from_slice(b"\xff\xd9");
    jpeg
}

/// PNG's checksum (ISO/IEC 15948, annex D): with a wrong one nobody would look further.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8)
            .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (!(crc & 1)).wrapping_add(1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_png() {
        assert_eq!(crc32(b"IEND"), 0xae42_6082);
    }
}
