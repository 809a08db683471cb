//! The file that configures browsers, in browsers: what is far comes through the proxy, what is to be reached without it
//! does not.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use farhop_testkit::{File, Site, SiteOrigin};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::support::firefox::{Firefox, write_preferences};
use crate::support::{Local, get, node, raw};

/// A name that the file has browsers reach without the proxy.
const NEAR: &str = "near.intranet.example";

/// Browsers never ask a proxy for loopback addresses that a PAC file sends there; this is one of the machine's others.
fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    // Connecting sends nothing: the system only chooses the address it would send from.
    let address = socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).and_then(|()| socket.local_addr());
    match address.map(|address| address.ip()) {
        Ok(IpAddr::V4(address)) if !address.is_loopback() => Some(address),
        _ => {
            eprintln!("skipped: this machine has no address but loopback");
            None
        }
    }
}

/// A site at all addresses of this machine, and a proxy whose PAC file sends browsers to one of them through itself.
struct World {
    site: SiteOrigin,
    local: Local,
    pac: String,
    /// The same page, by an address that is far and a name that is near.
    far: String,
    near: String,
}

impl World {
    async fn start(own: Ipv4Addr) -> World {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        let page = |title: &str| File::new("text/html", format!("<!doctype html><title>{title}</title>"));
        let site = Site::new().file("/far", page("far")).file("/near", page("near")).serve_on(listener);
        let port = site.address().port();
        let bypass = format!("remote.pac.bypass=[\".intranet.example\", \"!{own}\"]");
        let local = Local::start(&["--allow", &format!("{own}/32"), "--set", &bypass]).await;
        World {
            pac: format!("http://{}/proxy.pac", local.proxy),
            far: format!("http://{own}:{port}/far"),
            near: format!("http://{NEAR}:{port}/near"),
            site,
            local,
        }
    }

    /// Fails unless both pages were asked for, the one by way of the proxy and the other not.
    fn assert_ways(&mut self) {
        for (path, comes_through) in [("/far", true), ("/near", false)] {
            let asked = self.site.asked();
            let mut asked = asked.iter().filter(|asked| asked.target == path).peekable();
            assert!(asked.peek().is_some(), "{path} was never asked for");
            assert!(asked.all(|asked| asked.fields.contains_key("via") == comes_through), "{path}");
        }
        self.local.program.assert_runs();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chromium_goes_the_ways_of_the_pac_file() {
    let (Some(browser), Some(own)) = (node::chromium(), own_address()) else { return };
    let mut world = World::start(own).await;
    let arguments =
        [format!("--proxy-pac-url={}", world.pac), format!("--host-resolver-rules=MAP {NEAR} 127.0.0.1")];
    let visits = json!([{ "arguments": arguments, "urls": [world.far, world.near] }]);
    let seen = node::run(&browser, "visits.cjs", json!({ "visits": visits }), None).await;
    assert_eq!((&seen[0][0]["title"], &seen[0][1]["title"]), (&"far".into(), &"near".into()), "{seen}");
    world.assert_ways();
}

#[tokio::test(flavor = "multi_thread")]
async fn firefox_goes_the_ways_of_the_wpad_file() {
    let Some(own) = own_address() else { return };
    if !crate::clients::at_hand(&["firefox-esr"]) {
        return;
    }
    let mut world = World::start(own).await;
    let folder = tempfile::tempdir().unwrap();
    // What it would find by DNS is at the address of `wpad`; the file and its type are the same.
    let wpad = world.pac.replace("proxy.pac", "wpad.dat");
    let preferences = [
        ("network.proxy.type", "2".to_owned()),
        ("network.proxy.autoconfig_url", format!("\"{wpad}\"")),
        ("network.dns.localDomains", format!("\"{NEAR}\"")),
    ];
    write_preferences(&folder.path().join("profile"), &preferences);
    let mut firefox = Firefox::start(folder.path(), None).await;
    for (url, title) in [(&world.far, "far"), (&world.near, "near")] {
        firefox.open(url).await.unwrap();
        assert_eq!(firefox.value("document.title").await, title, "{url}");
    }
    world.assert_ways();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_files_are_served_as_what_browsers_take_for_such() {
    let local = Local::start(&[]).await;
    for path in ["/proxy.pac", "/wpad.dat"] {
        // As a browser asks that has no proxy yet.
        let mut stream = TcpStream::connect(local.proxy).await.unwrap();
        let asked = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", local.proxy);
        let answer = raw(&mut stream, &asked, |_| false).await;
        assert!(answer.contains("\r\nContent-Type: application/x-ns-proxy-autoconfig\r\n"), "{answer}");
        assert!(answer.contains(&format!("var way = \"PROXY {}; DIRECT\";", local.proxy)), "{answer}");
    }
    let through_itself = get(local.proxy, "http://farhop.internal/wpad.dat").await;
    assert_eq!(through_itself.field("content-type"), "application/x-ns-proxy-autoconfig");
}
