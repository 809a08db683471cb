//! Encrypted Client Hello (RFC 9849). A hello whose outer name is another than that of its CONNECT goes through untouched,
//! and its origin decrypts it; one that only looks so (GREASE, §6.2) is intercepted as any other. NSS's tstclnt and selfserv
//! speak the former, and tstclnt, Firefox and Chromium send the latter.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use farhop_workload::browser::{Order, trust_in};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};

use super::servers::{free_port, start};
use super::{HOST, World, at_hand, client, succeeds};
use crate::support::firefox::{Firefox, through, write_preferences};
use crate::support::node;

/// An ECHConfigList for the public name `public.test` (X25519, HKDF-SHA256, AES-128-GCM), and the same behind its private
/// key as selfserv takes it: made for this test.
const CONFIGS: &str =
    "AD7+DQA6BwAgACD129wZJ0HRnNDNXNHvAXD8YddDOJS+TdWG7kv2WAogKQAEAAEAAQALcHVibGljLnRlc3QAAA==";
const KEY_AND_CONFIGS: &str = "AGkwZwIBADAUBgcqhkjOPQIBBgkrBgEEAdpHDwEETDBKAgEBBCDwCGbA8WasFlrZg4bJcBVOB2rit8Jzhiix54zfAiYvcqEjAyEA9dvcGSdB0ZzQzVzR7wFw/GHXQziUvk3Vhu5L9lgKICkAPv4NADoHACAAIPXb3BknQdGc0M1c0e8BcPxh10M4lL5N1YbuS/ZYCiApAAQAAQABAAtwdWJsaWMudGVzdAAA";

/// RFC 9849 §11.1.
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Stands between clients and the proxy, and keeps what the former say.
struct Relay {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Relay {
    /// With `connect` it opens a tunnel to there for clients that know of no proxy.
    async fn start(proxy: SocketAddr, connect: Option<String>) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Relay { address: listener.local_addr().unwrap(), heard: Arc::default() };
        let heard = Arc::clone(&relay.heard);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let mut far = TcpStream::connect(proxy).await.unwrap();
                if let Some(to) = &connect {
                    far.write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes())
                        .await
                        .unwrap();
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(far.read_u8().await.unwrap());
                    }
                }
                let number = {
                    let mut heard = heard.lock().unwrap();
                    heard.push(Vec::new());
                    heard.len() - 1
                };
                tokio::spawn(carry(near, far, Arc::clone(&heard), number));
            }
        });
        relay
    }

    /// The hellos that came from clients, by the extensions in each.
    fn hellos(&self) -> Vec<Vec<u16>> {
        let heard = self.heard.lock().unwrap();
        let hello = |said: &Vec<u8>| {
            let begins =
                said.windows(6).position(|bytes| bytes[0] == 0x16 && bytes[1] == 3 && bytes[5] == 1)?;
            extensions(&said[begins..])
        };
        heard.iter().filter_map(hello).collect()
    }
}

async fn carry(near: TcpStream, far: TcpStream, heard: Arc<Mutex<Vec<Vec<u8>>>>, number: usize) {
    let ((mut from_client, mut to_client), (mut from_proxy, mut to_proxy)) =
        (near.into_split(), far.into_split());
    let down = tokio::spawn(async move {
        // Either may go first.
        let _ = copy(&mut from_proxy, &mut to_client).await;
        let _ = to_client.shutdown().await;
    });
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
        heard.lock().unwrap()[number].extend_from_slice(&buffer[..count]);
        if to_proxy.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    let _ = to_proxy.shutdown().await;
    let _ = down.await;
}

/// The types of a ClientHello's extensions (RFC 8446 §4.1.2), which here is one record; `None` while it is not whole.
fn extensions(record: &[u8]) -> Option<Vec<u16>> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    // Record and message headers, version and random; then session id, cipher suites, compression methods.
    let mut rest = record.get(5 + 4 + 2 + 32..)?;
    for length in [1, 2, 1] {
        rest = rest.get(length + number(rest.get(..length)?)..)?;
    }
    let mut rest = rest.get(2..2 + number(rest.get(..2)?))?;
    let mut types = Vec::new();
    while !rest.is_empty() {
        types.push(number(rest.get(..2)?) as u16);
        rest = rest.get(4 + number(rest.get(2..4)?)..)?;
    }
    Some(types)
}

/// Fails unless some of the hellos have the extension and none of its connections was passed through for its name.
async fn assert_intercepted(world: &World, relay: &Relay) {
    let hellos = relay.hellos();
    assert!(hellos.iter().any(|hello| hello.contains(&ENCRYPTED_CLIENT_HELLO)), "{hellos:x?}");
    let counted = world.local.counters().await;
    assert!(counted["intercepted"].as_u64() > Some(0), "{counted}");
    assert_eq!(counted["bypassed"]["name_differs"], 0, "{counted}");
}

/// tstclnt through a relay, for HTTP; the certificates that it believes are in `store`.
fn tstclnt(store: &Path, relay: &Relay, request: &Path) -> Command {
    let mut command = client("tstclnt");
    command.args(["-h", HOST, "-4", "-V", "tls1.3:tls1.3", "-p", &relay.address.port().to_string()]);
    command.arg("-d").arg(format!("sql:{}", store.display())).arg("-A").arg(request);
    command
}

/// selfserv's own certificate, in a store of its own.
fn identify(store: &Path) {
    std::fs::create_dir(store).unwrap();
    let certutil = |arguments: &[&str]| {
        let mut command = Command::new("certutil");
        command.arg("-d").arg(format!("sql:{}", store.display())).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let noise = store.join("noise");
    std::fs::write(&noise, blake3::hash(store.as_os_str().as_encoded_bytes()).as_bytes()).unwrap();
    certutil(&["-N", "--empty-password"]);
    let noise = noise.to_str().unwrap();
    let key = ["-k", "ec", "-q", "nistp256", "-z", noise];
    certutil(&[&["-S", "-n", "own", "-s", "CN=localhost", "-8", HOST, "-x", "-t", "C,,"][..], &key].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_that_hides_its_name_goes_through_and_its_origin_reads_it() {
    if !at_hand(&["tstclnt", "selfserv", "certutil"]) {
        return;
    }
    let port = free_port();
    let world = World::start(&[port]).await;
    let (store, request) = (world.folder.path().join("nss"), world.folder.path().join("request"));
    identify(&store);
    std::fs::write(&request, "GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut command = Command::new("selfserv");
    command.arg("-d").arg(format!("sql:{}", store.display()));
    command.args(["-n", "own", "-p", &port.to_string(), "-V", "tls1.3:tls1.3", "-X", KEY_AND_CONFIGS]);
    let _server = start(command, port, &world.folder.path().join("selfserv.log")).await;
    let relay = Relay::start(world.local.proxy, Some(format!("{HOST}:{port}"))).await;
    let mut command = tstclnt(&store, &relay, &request);
    // It fails where the origin does not decrypt the inner hello.
    command.args(["-N", CONFIGS]);
    let answer = succeeds(command).await;
    assert!(answer.starts_with(b"HTTP/1.0 200 OK"), "{}", String::from_utf8_lossy(&answer));
    assert!(relay.hellos().concat().contains(&ENCRYPTED_CLIENT_HELLO));
    let counted = world.local.counters().await;
    assert_eq!(counted["bypassed"]["name_differs"], 1, "{counted}");
    assert_eq!((&counted["intercepted"], &counted["bypasses_learned"]), (&0.into(), &1.into()), "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_that_only_looks_as_if_it_hid_something_is_intercepted() {
    if !at_hand(&["tstclnt", "certutil"]) {
        return;
    }
    let world = World::start(&[]).await;
    let (store, request) = (world.folder.path().join("nss"), world.folder.path().join("request"));
    trust_in(&store, &world.ca).unwrap();
    std::fs::write(
        &request,
        format!("GET /a.css HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", world.authority()),
    )
    .unwrap();
    let relay = Relay::start(world.local.proxy, Some(world.authority())).await;
    let mut command = tstclnt(&store, &relay, &request);
    command.args(["-i", "100"]);
    let answer = succeeds(command).await;
    assert!(answer.ends_with(&world.bytes("/a.css")), "{}", String::from_utf8_lossy(&answer));
    assert_intercepted(&world, &relay).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_chromium_sends_to_look_so_is_intercepted() {
    let Some(browser) = node::chromium() else { return };
    if !at_hand(&["certutil"]) {
        return;
    }
    let world = World::start(&[]).await;
    let relay = Relay::start(world.local.proxy, None).await;
    let order = Order {
        proxy: Some(relay.address.to_string()),
        authority: Some(world.ca.clone()),
        ..Order::new(world.url("/"))
    };
    let load = browser.load(&order).await.unwrap();
    assert!(load.errors.is_empty() && load.load_ms.is_some(), "{load:?}");
    assert_intercepted(&world, &relay).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_firefox_sends_to_look_so_is_intercepted() {
    if !at_hand(&["firefox-esr", "certutil"]) {
        return;
    }
    let world = World::start(&[]).await;
    let relay = Relay::start(world.local.proxy, None).await;
    let profile = world.folder.path().join("profile");
    trust_in(&profile, &world.ca).unwrap();
    let always = [("security.tls.ech.grease_probability", "100".to_owned())];
    write_preferences(&profile, &[&through(relay.address)[..], &always].concat());
    let mut firefox = Firefox::start(world.folder.path(), None).await;
    firefox.open(&world.url("/")).await.unwrap();
    assert_eq!(firefox.value("document.title").await, "t");
    assert_intercepted(&world, &relay).await;
}
