//! Destinations that ground must not reach, however they are named: nobody there ever sees a connection.

use std::net::TcpListener;

use farhop_testkit::{File, HostileOrigin, Site, Step};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::support::{Local, get, raw};

/// A server that must not be reached.
struct Forbidden(TcpListener);

impl Forbidden {
    fn at(address: &str) -> Option<Forbidden> {
        let listener = TcpListener::bind((address, 0)).ok()?;
        listener.set_nonblocking(true).unwrap();
        Some(Forbidden(listener))
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    fn assert_unseen(&self, by: &str) {
        let error = self.0.accept().map(|(_, from)| from).expect_err(by);
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{by}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_in_every_spelling_and_by_name() {
    let mut local = Local::start(&["--set", "remote.connect_ports=1-65535"]).await;
    let forbidden = Forbidden::at("127.0.0.1").unwrap();
    let port = forbidden.port();
    let hosts = ["127.0.0.1", "localhost", "LOCALHOST.", "[::ffff:127.0.0.1]", "0.0.0.0"];
    for host in hosts {
        let answer = get(local.proxy, &format!("http://{host}:{port}/")).await;
        assert_eq!(answer.status, 403, "{host}: {answer:?}");
        assert_eq!(answer.reported(), "farhop-ground; error=destination_ip_prohibited", "{host}");
        forbidden.assert_unseen(host);
    }
    for host in
        ["10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "[fd00::1]", "[fe80::1]"]
    {
        let answer = get(local.proxy, &format!("http://{host}/")).await;
        assert_eq!(answer.reported(), "farhop-ground; error=destination_ip_prohibited", "{host}: {answer:?}");
    }
    if let Some(six) = Forbidden::at("::1") {
        let answer = get(local.proxy, &format!("http://[::1]:{}/", six.port())).await;
        assert_eq!(answer.status, 403, "{answer:?}");
        six.assert_unseen("[::1]");
    }
    for host in ["127.0.0.1", "localhost"] {
        // The first is cut off, since it was told 200 before ground had looked; the second is told why.
        let text = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        let mut first = TcpStream::connect(local.proxy).await.unwrap();
        let said = raw(&mut first, &text, |said| said.contains("\r\n\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
        assert!(first.read(&mut [0]).await.is_err(), "{host}: the tunnel is cut off");
        let mut second = TcpStream::connect(local.proxy).await.unwrap();
        let said = raw(&mut second, &text, |said| said.contains("</h1>")).await;
        assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
        forbidden.assert_unseen("CONNECT");
    }
    local.program.assert_runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_origin_leads_nobody_to_a_forbidden_one() {
    let mut local = Local::start(&["--allow", "127.0.0.1/32"]).await;
    let forbidden = Forbidden::at("127.0.0.2").unwrap();
    let target = format!("http://127.0.0.2:{}/secret.png", forbidden.port());
    let origin = Site::new()
        .file("/page", File::new("text/html", format!("<!doctype html><img src=\"{target}\"><p>a page")))
        .serve()
        .await;
    // By what a page mentions: ground does not fetch it unasked either.
    let page = get(local.proxy, &origin.url("/page")).await;
    assert_eq!(page.status, 200);
    // By a redirect: handed to the client, whose next request is refused.
    let redirect = format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n");
    let script = vec![Step::ReadHead, Step::Send(redirect.into()), Step::Close];
    let redirecting = HostileOrigin::playing(vec![script]).await;
    let moved = get(local.proxy, &redirecting.url("/")).await;
    assert_eq!((moved.status, moved.field("location")), (302, target.as_str()));
    let refused = get(local.proxy, &target).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(refused.reported(), "farhop-ground; error=destination_ip_prohibited");
    forbidden.assert_unseen("a page, a redirect, a request");
    local.program.assert_runs();
}
