//! The origins over real sockets on loopback: both versions of HTTP, TLS from the throwaway CA, uploads, delay, DNS.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use farhop_workload::origins::{OriginSpec, OriginsSpec, Ready, serve, site::sha256_hex};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

struct Lab {
    folder: tempfile::TempDir,
    ready: Ready,
}

async fn lab(delay_ms: u64) -> Lab {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    std::fs::create_dir(&site).unwrap();
    std::fs::write(site.join("index.html"), "<p>hello</p>".repeat(200)).unwrap();
    std::fs::write(site.join("big.bin"), vec![5u8; 9 << 20]).unwrap();
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let origin = OriginSpec { delay_ms, ..OriginSpec::new("a.test", localhost, site) };
    let spec = OriginsSpec {
        dns: Some(SocketAddr::new(localhost, 0)),
        log: Some(folder.path().join("log")),
        ..OriginsSpec::on_free_ports(vec![origin], folder.path())
    };
    let ready = serve(&spec).await.unwrap();
    Lab { folder, ready }
}

impl Lab {
    async fn plain(&self) -> hyper::client::conn::http1::SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(self.ready.origins[0].http).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    async fn tls(&self, alpn: &[u8]) -> tokio_rustls::client::TlsStream<TcpStream> {
        use rustls::pki_types::{CertificateDer, pem::PemObject};
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.folder.path().join("ca.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        let stream = TcpStream::connect(self.ready.origins[0].https).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        connector.connect("a.test".try_into().unwrap(), stream).await.unwrap()
    }
}

fn get(uri: &str) -> Request<Full<Bytes>> {
    Request::get(uri).header("host", "a.test").body(Full::default()).unwrap()
}

#[tokio::test]
async fn one_connection_answers_several_requests_with_the_folders_bytes() {
    let lab = lab(0).await;
    let mut client = lab.plain().await;
    for (target, bytes) in [("/", "<p>hello</p>".repeat(200).into_bytes()), ("/big.bin", vec![5u8; 9 << 20])]
    {
        client.ready().await.unwrap();
        let answer = client.send_request(get(target)).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(body == bytes, "{target}");
    }
    client.ready().await.unwrap();
    let answer = client.send_request(get("/favicon.ico")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn http2_is_spoken_when_the_client_offers_it() {
    let lab = lab(0).await;
    let stream = lab.tls(b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let io = TokioIo::new(stream);
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let mut request = get("https://a.test/");
    request.headers_mut().remove("host");
    let answer = client.send_request(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-security-policy"], "upgrade-insecure-requests");
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 2400);
}

#[tokio::test]
async fn tls_records_stay_small() {
    let lab = lab(0).await;
    let mut stream = lab.tls(b"http/1.1").await;
    stream.write_all(b"GET /big.bin HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
    // Below rustls: the record headers as they cross the wire (RFC 8446 §5.1).
    let (mut raw, _) = stream.into_inner();
    let mut largest = 0;
    for _ in 0..20 {
        let mut header = [0; 5];
        raw.read_exact(&mut header).await.unwrap();
        let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
        largest = largest.max(len);
        raw.read_exact(&mut vec![0; len]).await.unwrap();
    }
    let overhead = 1 + 16; // inner content type and tag
    assert!(largest > 2048 && largest <= 4096 + overhead, "{largest}");
}

#[tokio::test]
async fn an_upload_is_answered_with_its_length_and_hash() {
    let lab = lab(0).await;
    let mut client = lab.plain().await;
    let body = Bytes::from(vec![9u8; 3 << 20]);
    let request = Request::post("/upload").header("host", "a.test").body(Full::new(body.clone())).unwrap();
    let answer = client.send_request(request).await.unwrap();
    let receipt = answer.into_body().collect().await.unwrap().to_bytes();
    let receipt: serde_json::Value = serde_json::from_slice(&receipt).unwrap();
    assert_eq!(receipt["bytes"], body.len());
    assert_eq!(receipt["sha256"], sha256_hex(&body));
}

#[tokio::test]
async fn a_request_for_another_name_is_misdirected() {
    let lab = lab(0).await;
    let mut client = lab.plain().await;
    for (host, status) in [("b.test", 421), ("A.TEST:80", 200), ("127.0.0.1:8080", 200), ("[::1]", 200)] {
        client.ready().await.unwrap();
        let request = Request::get("/").header("host", host).body(Full::default()).unwrap();
        let answer = client.send_request(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{host}");
        answer.into_body().collect().await.unwrap();
    }
}

#[tokio::test]
async fn an_origins_own_delay_comes_before_its_answer() {
    let lab = lab(80).await;
    let mut client = lab.plain().await;
    let start = Instant::now();
    client.send_request(get("/")).await.unwrap();
    assert!(start.elapsed().as_millis() >= 80);
}

#[tokio::test]
async fn the_settings_reported_are_the_kernels() {
    let lab = lab(0).await;
    assert_eq!(lab.ready.settings.congestion_control, "cubic");
    assert!(
        lab.ready
            .settings
            .to_string()
            .starts_with("cubic congestion control, text gzip -5, TLS records 4096")
    );
}

#[tokio::test]
async fn the_log_tells_requests_and_names_asked_for() {
    use hickory_proto::op::{Message, Query};
    use hickory_proto::rr::{Name, RecordType};
    let lab = lab(0).await;
    lab.plain().await.send_request(get("/x?y=1")).await.unwrap();
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut question = Message::query();
    question.add_query(Query::query(Name::from_ascii("a.test.").unwrap(), RecordType::A));
    socket.send_to(&question.to_vec().unwrap(), lab.ready.dns.unwrap()).await.unwrap();
    let mut reply = [0; 512];
    let len = socket.recv(&mut reply).await.unwrap();
    assert_eq!(Message::from_vec(&reply[..len]).unwrap().answers.len(), 1);
    let log = std::fs::read_to_string(lab.folder.path().join("log")).unwrap();
    assert!(log.contains(r#""request":"/x?y=1""#) && log.contains(r#""dns":"a.test""#), "{log}");
}

#[tokio::test]
async fn a_site_may_have_a_second_server_known_by_another_name_that_sends_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "hello").unwrap();
    let first = OriginSpec::new("a.test", Ipv4Addr::LOCALHOST, folder.path());
    // Reno is a part of every kernel.
    let second = OriginSpec {
        address: Ipv4Addr::new(127, 0, 0, 2).into(),
        dns_name: Some("reno.a.test".into()),
        congestion_control: "reno".into(),
        ..first.clone()
    };
    let spec = OriginsSpec {
        dns: Some((Ipv4Addr::LOCALHOST, 0).into()),
        ..OriginsSpec::on_free_ports(vec![first, second], folder.path())
    };
    let ready = serve(&spec).await.unwrap();
    let controls: Vec<&str> = ready.origins.iter().map(|origin| origin.congestion_control.as_str()).collect();
    assert_eq!(controls, ["cubic", "reno"]);
    assert!(
        ready.settings.to_string().starts_with("cubic and reno congestion control"),
        "{}",
        ready.settings
    );
    let stream = TcpStream::connect(ready.origins[1].http).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let answer = sender.send_request(get("/")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "it answers to the site's own name");
}

#[tokio::test]
async fn an_origin_says_of_the_caching_of_each_path_what_it_was_told() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a/b", "c"] {
        std::fs::create_dir_all(folder.path().join("site").join(name)).unwrap();
        std::fs::write(folder.path().join("site").join(name).join("f.txt"), "text").unwrap();
    }
    let mut origin = OriginSpec::new("a.test", IpAddr::V4(Ipv4Addr::LOCALHOST), folder.path().join("site"));
    origin.caching = [("/a/", "max-age=60"), ("/a/b/", "private")]
        .map(|(path, value)| (path.to_owned(), value.to_owned()))
        .into();
    let spec = OriginsSpec::on_free_ports(vec![origin], folder.path());
    let lab = Lab { ready: serve(&spec).await.unwrap(), folder };
    let mut sender = lab.plain().await;
    for (path, wanted) in [("/a/b/f.txt", Some("private")), ("/c/f.txt", None), ("/a/gone", None)] {
        sender.ready().await.unwrap();
        let answer = sender.send_request(get(path)).await.unwrap();
        let said = answer.headers().get("cache-control").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(said.as_deref(), wanted, "{path}");
        answer.into_body().collect().await.unwrap();
    }
}
