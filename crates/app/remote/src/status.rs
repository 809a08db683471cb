//! What the control socket of the remote tells and does.

use std::sync::Arc;

use farhop_control::{Chosen, Server, forgotten};
use farhop_store::Partition;
use farhop_transport::Kind;
use serde_json::json;

use crate::Remote;

/// Adds the remote's commands.
pub(crate) fn server(remote: &Arc<Remote>, server: Server) -> Server {
    let (told, settled, flushed) = (Arc::clone(remote), Arc::clone(remote), Arc::clone(remote));
    let measured = Arc::clone(remote);
    crate::consent::server(remote.consent(), server)
        .command("status", "the carrier, clients and what is held", move || {
            let remote = Arc::clone(&told);
            async move { Ok(status(&remote).await) }
        })
        .command("path", "what is measured of the hop, what is decided by it, and why", move || {
            let path = path(&measured);
            async move { Ok(path) }
        })
        .command("settle", "ends all open promises, so that the counters are final", move || {
            settled.desk().settle();
            async { Ok(json!({})) }
        })
        .command_with(
            "flush",
            "forgets responses held: {\"url\": URL}, {\"site\": HOST} or {\"user\": NAME}, else all",
            &["url", "site", "user"],
            move |args| {
                let remote = Arc::clone(&flushed);
                async move { Ok(forgotten(flush(&remote, Chosen::read(args)?).await)) }
            },
        )
}

/// Forgets what is meant; what was promised ends, since it could bring that again. Gives how many responses are held no more, where not all.
async fn flush(remote: &Remote, chosen: Chosen) -> Option<u64> {
    remote.desk().settle();
    let partition = match &chosen {
        Chosen::All => {
            remote.parts().clear();
            remote.repository().clear().await;
            return None;
        }
        Chosen::Url(_) | Chosen::Site(_) => None,
        Chosen::User(name) => {
            let name = name.as_str();
            let user =
                name.parse().map_or_else(|_| remote.users().named(&name.into()), |at| remote.users().at(at));
            Some(Partition::User(user.id))
        }
    };
    remote.parts().forget_chosen(partition, |url| chosen.is_meant(url));
    let by_url = chosen.clone();
    let forgotten = remote.repository().forget(partition, Arc::new(move |url| by_url.is_meant(url))).await;
    if let Chosen::Url(url) = chosen {
        // Also what is on its way.
        remote.repository().invalidate(url.as_str()).await;
    }
    Some(forgotten)
}

fn path(remote: &Remote) -> serde_json::Value {
    let carrier = remote.uplink().now().map(|carrier| {
        let kind = carrier.connection.kind();
        let mut told = carrier.hop.path(kind);
        if kind == Kind::Quic {
            let towards = carrier.connection.remote_address();
            told.decided.extend(remote.repairs.decided(towards, &remote.plan));
        }
        let trips = remote.within().trips.trips();
        told.measured = told.measured.with_browsers(&trips);
        told.decided.extend(trips.towards_browsers(remote.settings().timeouts.head));
        json!({
            "peer": carrier.peer,
            "address": carrier.address.to_string(),
            "over": kind.to_string(),
            "up_s": carrier.since.elapsed().as_secs(),
            "heard_s": carrier.hop.silence().as_secs(),
            "path": told,
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
            // Those that are there, of those that were called for.
            "connections": carrier.connection.lanes(),
            "connections_set": match carrier.connection.kind() {
                Kind::Quic => 1,
                Kind::Tcp => remote.settings().tcp_connections,
            },
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
        "calls": remote.flows.get().map(|flows| flows.calls_told()),
        "exchanges": remote.busy.load(std::sync::atomic::Ordering::Relaxed),
        "promises_open": promises,
        "evidence": remote.holdouts().status(),
        "repository_bytes": remote.budget().used(),
        "store": store.map(|held| json!({ "entries": held.entries, "bytes": held.bytes, "refused": held.refused })),
    })
}
