//! The loader over real sockets, against the origins of the lab: names by their DNS, gzip, both versions of HTTP over TLS.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use farhop_loader::{
    Connect, Connecting, Handshake, Loader, Names, Object, PageGraph, Persistence, Protocol, Push, Settings,
    SocketOptions, TcpConnector,
};
use farhop_workload::origins::{OriginSpec, OriginsSpec, Ready, serve};
use farhop_workload::pages::{Page, Site};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, pem::PemObject};

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    std::fs::create_dir(&site).unwrap();
    let text = "text and more text ".repeat(300);
    let images: String = (0..20).map(|number| format!("<img src={number}.png>")).collect();
    let html = format!("<!doctype html><link rel=stylesheet href=a.css><p>{text}{images}");
    std::fs::write(site.join("index.html"), html).unwrap();
    std::fs::write(site.join("a.css"), format!("p {{ color: red }} /* {text} */")).unwrap();
    for number in 0..20u8 {
        std::fs::write(site.join(format!("{number}.png")), vec![number; 30_000]).unwrap();
    }
    folder
}

async fn origins(folder: &Path) -> Ready {
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let spec = OriginsSpec {
        dns: Some(SocketAddr::new(localhost, 0)),
        ..OriginsSpec::on_free_ports(vec![OriginSpec::new("a.test", localhost, folder.join("site"))], folder)
    };
    serve(&spec).await.unwrap()
}

/// Asks the lab's DNS, and goes to the ports that were free instead of the schemes' own.
struct ToPorts {
    tcp: TcpConnector,
    ports: HashMap<u16, u16>,
}

impl Connect for ToPorts {
    fn connect(&self, host: &str, port: u16, options: SocketOptions) -> Connecting {
        self.tcp.connect(host, self.ports[&port], options)
    }
}

#[tokio::test]
async fn pages_of_the_labs_origins_arrive_whole_in_every_way() {
    let folder = folder();
    let ready = origins(folder.path()).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.path().join("ca.pem")).unwrap()).unwrap();
    let page = Page {
        name: "a".into(),
        entry: "/".into(),
        sites: vec![Site::new("a.test", folder.path().join("site"))],
    };
    let origin = &ready.origins[0];
    let connector = Arc::new(ToPorts {
        tcp: TcpConnector::new(Names::of(ready.dns.unwrap())),
        ports: [(80, origin.http.port()), (443, origin.https.port())].into(),
    });
    let loader = Loader::new(connector, roots).unwrap();
    let table = [
        (Protocol::Http1(Persistence::NonPersistent), Handshake::Plain),
        (Protocol::Http1(Persistence::Persistent), Handshake::Plain),
        (Protocol::Http1(Persistence::Pipelined(4)), Handshake::Plain),
        (Protocol::Http1(Persistence::Persistent), Handshake::Full),
        (Protocol::Http1(Persistence::Persistent), Handshake::Resumed),
        (Protocol::Http2(Push::Off), Handshake::Full),
    ];
    for (protocol, handshake) in table {
        let graph = Arc::new(PageGraph::of(&page, handshake != Handshake::Plain).unwrap());
        assert_eq!(graph.objects.len(), 22);
        let settings =
            Settings { protocol, handshake, receive_buffer: Some(32 << 10), ..Settings::default() };
        loader.prime(&graph, &settings).await.unwrap();
        let loaded = loader.load(&graph, &settings).await;
        assert_eq!(loaded.faults(), [""; 0], "{protocol:?} {handshake:?}");
        assert!(loaded.time.is_some() && loaded.blocking <= loaded.time);
        assert!(loaded.objects[0].bytes < 5000, "the document came gzipped");
        let resumed = loaded.connections.iter().filter(|connection| connection.resumed == Some(true)).count();
        assert_eq!(resumed > 0, handshake == Handshake::Resumed);
        let received: u64 = loaded.connections.iter().map(|connection| connection.received).sum();
        assert!(received > 600_000, "{received}");
    }
}

#[tokio::test]
async fn uploads_arrive_as_they_were_sent() {
    let folder = folder();
    let ready = origins(folder.path()).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.path().join("ca.pem")).unwrap()).unwrap();
    let origin = &ready.origins[0];
    let connector = Arc::new(ToPorts {
        tcp: TcpConnector::new(Names::of(ready.dns.unwrap())),
        ports: [(80, origin.http.port()), (443, origin.https.port())].into(),
    });
    let loader = Loader::new(connector, roots).unwrap();
    for (protocol, handshake, url) in [
        (Protocol::Http1(Persistence::NonPersistent), Handshake::Plain, "http://a.test/up"),
        (Protocol::Http1(Persistence::Persistent), Handshake::Full, "https://a.test/up"),
        (Protocol::Http2(Push::Off), Handshake::Full, "https://a.test/up"),
    ] {
        // More than any window that a server begins with.
        let object = Object::upload(url.parse().unwrap(), 3_000_000);
        let graph = Arc::new(PageGraph { objects: vec![object] });
        let loaded = loader.load(&graph, &Settings { protocol, handshake, ..Settings::default() }).await;
        assert_eq!(loaded.faults(), [""; 0], "{protocol:?}");
        let sent: u64 = loaded.connections.iter().map(|connection| connection.sent).sum();
        assert!(sent > 3_000_000 && loaded.requests() == 1, "{sent}");
        assert!(loaded.time.is_some());
    }
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_told() {
    let folder = folder();
    let ready = origins(folder.path()).await;
    let tcp = TcpConnector::new(Names::of(ready.dns.unwrap()));
    let error = tcp.connect("b.test", 80, SocketOptions::default()).await.err().unwrap().to_string();
    assert_eq!(error, "the name b.test has no address");
    let error = TcpConnector::new(Names::default())
        .connect("b.test", 80, SocketOptions::default())
        .await
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "nobody knows the name b.test");
}
