//! Both ends in the test's own process, as `farhop local` puts them together, with a hand on the link between them.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use farhop_events::Bus;
use farhop_ground::Ground;
use farhop_orbit::Profile;
use farhop_remote::{Reach, Running};
use farhop_settings::{LocalSettings, parse};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Listener, Peers};
use farhop_transport::socket::link::{self, Link};

/// Two ends and the link between them.
pub(crate) struct InProcess {
    pub(crate) link: Link,
    pub(crate) events: Bus,
    pub(crate) proxy: SocketAddr,
    pub(crate) ground: Ground,
    pub(crate) ground_events: Bus,
    _remote: Running,
    serving: tokio::task::JoinHandle<()>,
}

impl InProcess {
    /// Starts both ends with the named link between them.
    pub(crate) async fn start(link: &str) -> InProcess {
        InProcess::with(link, &[]).await
    }

    /// The same, with `more` settings.
    pub(crate) async fn with(link: &str, more: &[&str]) -> InProcess {
        let profile = Profile::named(link).unwrap();
        let mut sets = vec![
            "remote.listen=127.0.0.1:0".to_owned(),
            "ground.allow=127.0.0.0/8".to_owned(),
            format!("remote.link.profile={link}"),
            format!("ground.link.profile={link}"),
        ];
        sets.extend(more.iter().map(ToString::to_string));
        let settings: LocalSettings = parse("", Path::new(""), &sets).unwrap();
        let plan = PathPlan::for_profile(&profile);
        let (link, at_ground, at_remote) = link::pair(&profile, 1);
        let (ground_identity, remote_identity) =
            (Identity::generate().unwrap(), Identity::generate().unwrap());
        let ground_key = ground_identity.public();
        let peers = Peers::new([("test".to_owned(), remote_identity.public())]).unwrap();
        let mut listener =
            Listener::new(at_ground, ground_identity, peers, plan, plan.default_choice(End::Ground)).unwrap();
        let address = listener.local_addr().unwrap();
        let ground_events = Bus::new();
        let ground = Ground::new(settings.ground, 1, ground_events.clone()).unwrap();
        let served = ground.clone();
        let serving = tokio::spawn(async move {
            while let Some(accepted) = listener.accept().await {
                let accepted = accepted.unwrap();
                let ground = served.clone();
                tokio::spawn(async move { ground.serve_carrier(accepted.connection, accepted.name).await });
            }
        });
        let events = Bus::new();
        let reach = Reach {
            socket: at_remote,
            identity: remote_identity,
            plan,
            in_process: Some((address, ground_key)),
            authority: None,
            first_window: None,
        };
        let remote = farhop_remote::start(settings.remote, reach, events.clone(), false).await.unwrap();
        assert!(remote.connected(Duration::from_secs(30)).await, "no carrier came up");
        let proxy = remote.addresses()[0];
        InProcess { link, events, proxy, ground, ground_events, _remote: remote, serving }
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
