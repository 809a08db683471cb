//! `--keep`: Farhop runs on in the testbed, reachable from this machine's own loopback, until the user has had enough.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use farhop_testbed::Place;

use crate::bench::Bench;
use crate::ends::Ends;
use crate::{CompareError, Progress, Variant, origins};

/// Where the machine's own browser finds the proxy, if that port is free.
const PORT: u16 = 3128;

/// Starts Farhop, says how to use it, and waits.
pub(crate) fn keep(bench: &Bench, progress: &mut Progress<'_>) -> Result<(), CompareError> {
    let ends = Ends::start(bench.stage(), Variant::Farhop)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))
        .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .map_err(CompareError::file("127.0.0.1"))?;
    let here = listener.local_addr().map_err(CompareError::file("127.0.0.1"))?;
    let client = bench.testbed.namespace(Place::Client).name();
    for line in how_to_use(bench, here, ends.proxy, client) {
        progress(&line);
    }
    thread::scope(|scope| {
        let proxy = ends.proxy;
        scope.spawn(move || {
            for stream in listener.incoming() {
                let Ok(browser) = stream else { continue };
                if bench.interrupt.check().is_err() {
                    return;
                }
                // From within the client's namespace, as everything of the experiment.
                let inside = bench.testbed.namespace(Place::Client).run(|| TcpStream::connect(proxy));
                if let Ok(Ok(inside)) = inside {
                    thread::spawn(move || splice(browser, inside));
                }
            }
        });
        bench.interrupt.until_asked();
        // Wakes the accepting thread, which then sees that it is over.
        drop(TcpStream::connect(here));
    });
    Ok(())
}

fn how_to_use(bench: &Bench, here: SocketAddr, proxy: SocketAddr, client: &str) -> Vec<String> {
    let sites: Vec<String> = origins::names(&bench.spec)
        .into_iter()
        .filter(|name| bench.sites.contains_key(*name))
        .map(|name| format!("http://{name}/"))
        .collect();
    let site = sites.first().cloned().unwrap_or_default();
    let profile = bench.testbed.link().profile().name;
    vec![
        String::new(),
        format!("The testbed stays up on {profile}. Its sites: {}", sites.join(" ")),
        "Through Farhop, from this machine:".into(),
        format!("  curl -x http://{here} {site}"),
        format!("  chromium --user-data-dir=$(mktemp -d) --proxy-server=http://{here} {site}"),
        "Directly across the link, or through Farhop, from the client's side of it:".into(),
        format!("  ip netns exec {client} curl {site}"),
        format!("  ip netns exec {client} curl -x http://{proxy} {site}"),
        "Ctrl-C takes everything down.".into(),
    ]
}

/// Carries bytes both ways, half-closed ends included, until both are done.
fn splice(browser: TcpStream, inside: TcpStream) {
    let (browser, inside) = (Arc::new(browser), Arc::new(inside));
    let one_way = |from: Arc<TcpStream>, to: Arc<TcpStream>| {
        let _ = io::copy(&mut &*from, &mut &*to);
        let _ = to.shutdown(Shutdown::Write);
    };
    let back = {
        let (from, to) = (inside.clone(), browser.clone());
        thread::spawn(move || one_way(from, to))
    };
    one_way(browser, inside);
    let _ = back.join();
}
