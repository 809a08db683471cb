//! One run: both real ends meet over the link that was drawn, do their errands, and part.

use std::sync::Arc;
use std::time::Duration;

use farhop_htotp::scheduler::Pace;
use farhop_htotp::session::{Config, Probe, Role};
use farhop_orbit::Way;
use farhop_transport::hop::Hop;
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::dice::Dice;
use crate::ground::Ground;
use crate::ills::Channel;
use crate::log::Log;
use crate::remote::Remote;
use crate::scene::{Cut, Scene};
use crate::socket::{BadSocket, Handle};

/// Longer than anything drawn takes.
const PATIENCE: Duration = Duration::from_secs(2000);
/// Calls that may fail before there is a carrier: one whose first packets are damaged may be answered in another version.
const CALLS: u32 = 20;
/// Ground waits no longer for the last packet of a handshake.
const ADMISSION: Duration = Duration::from_secs(15);
/// When all is said, nothing stays open for longer.
const SETTLING: Duration = Duration::from_secs(120);

fn config(plan: &PathPlan, end: End) -> Config {
    let probe = Probe { patience: Duration::from_secs(1) + plan.rtt, ..Probe::default() };
    Config { pace: Pace { rate: plan.sending_rate(end), ..Pace::default() }, probe, ..Config::default() }
}

/// Runs a scene; gives the handle of its link for what it counted.
pub(crate) async fn run(scene: Arc<Scene>, log: Arc<Log>) -> Link {
    let mut dice = Dice::new(!scene.seed);
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let (link, at_ground, at_remote) = link::pair(&scene.profile, dice.seed());
    let addr = at_ground.addr();
    let mut bad = |socket, way| {
        let channel = Channel::new(scene.ills(way), dice.seed());
        Arc::new(Handle(BadSocket::new(socket, link.clone(), way, channel, Arc::clone(&log))))
    };
    let (at_ground, at_remote) = (bad(at_ground, Way::Forward), bad(at_remote, Way::Return));
    let peers = Peers::new([("ship".to_owned(), remote.public())]).expect("one key, one name");
    let keys = [ground.public()];
    let [forward, return_] = scene.choices;
    let plan = scene.plan;
    let listener = Listener::replayable(at_ground, ground, peers, plan, forward, dice.seed());
    let dialer = Dialer::replayable(at_remote, remote, plan, return_, dice.seed());
    let (listener, dialer) = (listener.expect("has an address"), dialer.expect("has an address"));

    let ground = Ground::new(Arc::clone(&scene), Arc::clone(&log));
    let (tell, mut admitted) = watch::channel(0);
    tokio::spawn(admit(listener, ground.clone(), tell));
    let mut standing = None;
    for _ in 0..CALLS {
        match dialer.connect(addr, &keys).await {
            // Until ground knows who it is, it bears no silence.
            Ok(connection) => match timeout(ADMISSION, admitted.changed()).await {
                Ok(_) => {
                    standing = Some(connection);
                    break;
                }
                Err(_) => log.told("not admitted"),
            },
            Err(error) => log.told(&error.to_string()),
        }
    }
    let Some(connection) = standing else {
        log.fault(format!("no carrier after {CALLS} calls"));
        return link;
    };
    let hop = Hop::start_lasting(connection, Role::Remote, config(&plan, End::Remote), &plan);
    let remote = Remote::new(Arc::clone(&scene), Arc::clone(&log), hop.clone());
    tokio::spawn(remote.clone().accept());
    // The carrier stands when each end has heard the other.
    if timeout(PATIENCE, remote.greeted()).await.is_err() {
        log.fault("ground was not heard".into());
        return link;
    }
    log.stands();
    let weather = tokio::spawn(weather(scene.cuts.clone(), link.clone(), Arc::clone(&log)));
    if timeout(PATIENCE, errands(&remote)).await.is_err() {
        log.fault(format!("something has not come after {PATIENCE:?}"));
    }
    weather.abort();
    link.restore();
    if let Some(reason) = hop.closed() {
        log.fault(format!("the carrier ended: {reason}"));
    }
    part(&hop, &log).await;
    for (number, times) in ground.asked().into_iter().enumerate() {
        if times != 1 {
            log.fault(format!("ground was asked {times} times for errand {number}"));
        }
    }
    link
}

/// Takes remotes in, and serves them.
async fn admit(mut listener: Listener, ground: Ground, tell: watch::Sender<u32>) {
    let plan = ground.scene.plan;
    while let Some(accepted) = listener.accept().await {
        // A call that comes to nothing is the remote's to repeat.
        let Ok(accepted) = accepted else { continue };
        let hop = Hop::start_lasting(accepted.connection, Role::Ground, config(&plan, End::Ground), &plan);
        tokio::spawn(ground.clone().serve(hop));
        tell.send_modify(|admitted| *admitted += 1);
    }
}

async fn errands(remote: &Remote) {
    let mut errands = JoinSet::new();
    for number in 0..remote.scene.errands.len() {
        errands.spawn(remote.clone().go(number as u64));
    }
    while let Some(ended) = errands.join_next().await {
        if let Err(error) = ended {
            remote.log.fault(format!("an errand failed: {error}"));
        }
    }
    remote.settle().await;
}

async fn weather(cuts: Vec<Cut>, link: Link, log: Arc<Log>) {
    for Cut { after, lasts, way } in cuts {
        sleep(after).await;
        log.cut(way);
        match way {
            Some(way) => link.cut_way(way),
            None => link.cut(),
        }
        sleep(lasts).await;
        link.restore();
        log.restored();
    }
}

/// When all is said, nothing is left open.
async fn part(hop: &Hop, log: &Log) {
    let quiet = timeout(SETTLING, async {
        while hop.is_active() {
            sleep(Duration::from_millis(100)).await;
        }
    });
    if quiet.await.is_err() {
        log.fault("something stays open at the remote".into());
    }
    hop.close();
}
