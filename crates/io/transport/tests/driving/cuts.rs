//! What goes on after a cut while much is under way both ways, on a path whose rate nobody has said: it is known from before
//! the cut, and neither way has to look for it again.

use std::sync::Arc;
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_orbit::Profile;
use farhop_transport::path::PathPlan;
use farhop_units::{BitRate, Bytes};
use tokio::time::{Instant, sleep};

use crate::ends::{Carrier, Ends, ends};

const DOWNLOAD: usize = 5_000_000;
const DOWNLOADS: usize = 4;
const UPLOAD: usize = 4_000_000;

fn link(queues: f64) -> Profile {
    let (down, up) = (BitRate::mbit(20), BitRate::mbit(5));
    let mut profile = Profile::symmetric_delay("link", down, up, Duration::from_millis(300));
    let queue = |rate: BitRate| Bytes((queues * rate.bytes_in(profile.rtt()).0 as f64) as u64);
    let (forward, back) = (queue(down), queue(up));
    (profile.forward.queue, profile.return_.queue) = (forward, back);
    profile
}

/// A carrier that has found the rates of both ways.
async fn found(ends: &mut Ends) -> Arc<Carrier> {
    let carrier = ends.call().await;
    carrier.fetch(4 * DOWNLOAD, 3).await;
    carrier.upload(UPLOAD, 3).await;
    Arc::new(carrier)
}

/// How long downloads and an upload take that begin together, with the link away for `cut` after three seconds, that time not counted.
async fn under_way(queues: f64, cut: Duration) -> Duration {
    let mut ends = ends(&link(queues), PathPlan::UNKNOWN, Choice::Bbr, None, 1);
    let carrier = found(&mut ends).await;
    let start = Instant::now();
    let sending = Arc::clone(&carrier);
    let upload = tokio::spawn(async move { sending.upload(UPLOAD, 3).await });
    let cutting = async {
        if !cut.is_zero() {
            sleep(Duration::from_secs(3)).await;
            ends.link.cut();
            sleep(cut).await;
            ends.link.restore();
        }
    };
    tokio::join!(carrier.fetch_all(DOWNLOADS, DOWNLOAD, 3), cutting);
    upload.await.unwrap();
    start.elapsed() - cut
}

#[tokio::test(start_paused = true)]
async fn after_a_cut_transfers_both_ways_go_on_at_the_rates_that_were_known() {
    for queues in [0.5, 1.0] {
        let without = under_way(queues, Duration::ZERO).await;
        let with = under_way(queues, Duration::from_secs(30)).await;
        let most = without + 3 * link(queues).rtt();
        assert!(with <= most, "queues of {queues}: {with:?} beside the cut, {without:?} without");
    }
}
