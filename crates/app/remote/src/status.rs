//! What the control socket of the remote tells and does.

use std::sync::Arc;

use farhop_control::Server;
use farhop_transport::Kind;
use serde_json::json;

use crate::Remote;

/// Adds the remote's commands.
pub(crate) fn server(remote: &Arc<Remote>, server: Server) -> Server {
    let (told, settled, flushed) = (Arc::clone(remote), Arc::clone(remote), Arc::clone(remote));
    let measured = Arc::clone(remote);
    crate::consent::server(remote.consent(), server)
        .command("status", "the carrier, clients and what is held", move |_| {
            let remote = Arc::clone(&told);
            async move { Ok(status(&remote).await) }
        })
        .command("path", "what is measured of the hop, what is decided by it, and why", move |_| {
            let path = path(&measured);
            async move { Ok(path) }
        })
        .command("settle", "ends all open promises, so that the counters are final", move |_| {
            settled.desk().settle();
            async { Ok(json!({})) }
        })
        .command("flush", "forgets every response held", move |_| {
            let remote = Arc::clone(&flushed);
            async move {
                remote.desk().settle();
                remote.repository().clear().await;
                remote.parts().clear();
                Ok(json!({}))
            }
        })
}

fn path(remote: &Remote) -> serde_json::Value {
    let carrier = remote.uplink().now().map(|carrier| {
        let kind = carrier.connection.kind();
        json!({
            "peer": carrier.peer,
            "address": carrier.address.to_string(),
            "over": kind.to_string(),
            "up_s": carrier.since.elapsed().as_secs(),
            "path": carrier.hop.path(kind),
        })
    });
    json!({ "end": "remote", "carriers": Vec::from_iter(carrier) })
}

async fn status(remote: &Remote) -> serde_json::Value {
    let carrier = remote.uplink().now().map(|carrier| {
        json!({
            "ground": carrier.peer,
            "address": carrier.address.to_string(),
            "over": carrier.connection.kind().to_string(),
            "up_s": carrier.since.elapsed().as_secs(),
            "silent_s": carrier.hop.silent().borrow().map(|since| since.elapsed().as_secs()),
            "round_trip_ms": carrier.hop.rtt().map(|rtt| rtt.as_millis() as u64),
            "congestion": carrier.connection.driven().map(|driven| json!({
                "controller": driven.choice.name(),
                "resume": driven.phase.name(),
                "window_bytes": driven.window.0,
                "pace_bps": driven.pacing.map(|rate| rate.0),
            })),
            // Over TCP there is nothing to repair; an earlier carrier may have left its counters.
            "repairs": (carrier.connection.kind() == Kind::Quic)
                .then(|| remote.repairs.counters(carrier.connection.remote_address())),
        })
    });
    let promises = remote.desk().len();
    let store = remote.repository().on_disk().await;
    json!({
        "end": "remote",
        "version": env!("CARGO_PKG_VERSION"),
        "up_s": remote.now().as_secs(),
        "carrier": carrier,
        "components": remote.components().iter().map(|half| half.component().name).collect::<Vec<_>>(),
        "clients": remote.census().total(),
        "caught": remote.caught().total(),
        "exchanges": remote.busy.load(std::sync::atomic::Ordering::Relaxed),
        "promises_open": promises,
        "evidence": remote.holdouts().status(),
        "repository_bytes": remote.budget().used(),
        "store": store.map(|held| json!({ "entries": held.entries, "bytes": held.bytes, "refused": held.refused })),
    })
}
