//! What random loss both ways costs transfers on a carrier that has met it before: against their limit, distance and the
//! wire bytes of the same transfer without loss.

use std::time::Duration;

use farhop_orbit::Profile;
use farhop_transport::path::{End, PathPlan};
use farhop_units::BitRate;

use crate::ends::{Carrier, Ends, ends};

const SEEDS: [u64; 3] = [1, 2, 3];
/// What a carrier has moved before anything is timed.
const WARM: usize = 2_000_000;

/// How much is lost, how many limits it may take then, and how many repairs there may be for each byte sent.
type Row = (f64, f64, f64);

/// Ends on `profile` and their carrier, warm, and losing so much.
async fn warm(profile: &Profile, loss: f64, seed: u64) -> (Ends, Carrier) {
    let plan = PathPlan::for_profile(profile);
    let mut both = ends(profile, plan, plan.default_choice(End::Ground), None, seed);
    let carrier = both.call().await;
    both.link.switch(&profile.clone().with_loss(loss, loss));
    carrier.fetch(WARM, 3).await;
    (both, carrier)
}

/// Holds `objects` of so many `bytes` to `most` limits without loss, and to `rows` with it: the median of some seeds.
async fn hold(profile: &Profile, (objects, bytes): (usize, usize), most: f64, rows: &[Row]) {
    let (both, carrier) = warm(profile, 0.0, SEEDS[0]).await;
    let before = both.crossed();
    let clean = carrier.fetch_all(objects, bytes, 3).await;
    let limit = both.limit(before).as_secs_f64();
    let mut held = clean.as_secs_f64() <= most * limit && both.repairs(&carrier).sent.repairs == 0;
    let mut told = vec![format!("nothing lost: {:.3} of {most}", clean.as_secs_f64() / limit)];
    for (loss, most, most_repairs) in rows {
        let mut ratios = Vec::new();
        let mut repairs = (0, 0);
        for seed in SEEDS {
            let (both, carrier) = warm(profile, *loss, seed).await;
            let before = both.repairs(&carrier).sent;
            ratios.push(carrier.fetch_all(objects, bytes, 3).await.as_secs_f64() / limit);
            let sent = both.repairs(&carrier).sent;
            repairs.0 += sent.repair_bytes - before.repair_bytes;
            repairs.1 += sent.source_bytes - before.source_bytes;
        }
        ratios.sort_by(f64::total_cmp);
        let (ratio, share) = (ratios[SEEDS.len() / 2], repairs.0 as f64 / repairs.1 as f64);
        held &= ratio <= *most && share <= *most_repairs;
        told.push(format!("{loss}: {ratio:.3} of {most}, {share:.3} of {most_repairs} repairs"));
    }
    assert!(held, "{}, {objects} × {bytes} B: {told:#?}", profile.name);
}

fn named(name: &str) -> Profile {
    Profile::named(name).unwrap()
}

const DOWNLOAD: [Row; 3] = [(0.01, 1.08, 0.06), (0.02, 1.12, 0.09), (0.03, 1.15, 0.12)];
const SMALL: [Row; 2] = [(0.01, 1.10, 0.06), (0.03, 1.15, 0.12)];

#[tokio::test(start_paused = true)]
async fn a_download_under_loss_takes_as_much_longer_as_is_repaired() {
    hold(&named("geo-hylas2"), (1, 3_000_000), 1.01, &DOWNLOAD).await;
}

#[tokio::test(start_paused = true)]
async fn so_it_does_over_a_faster_link() {
    hold(&named("geo-20m"), (1, 10_000_000), 1.01, &DOWNLOAD[..1]).await;
}

#[tokio::test(start_paused = true)]
async fn so_it_does_over_a_low_orbit() {
    let low = Profile::symmetric_delay(
        "low orbit",
        BitRate::mbit(80),
        BitRate::mbit(10),
        Duration::from_millis(20),
    );
    hold(&low, (1, 3_000_000), 1.02, &DOWNLOAD).await;
}

#[tokio::test(start_paused = true)]
async fn small_objects_under_loss_wait_for_no_round_trip() {
    hold(&named("geo-hylas2"), (200, 5_000), 1.05, &SMALL).await;
    hold(&named("geo-20m"), (200, 5_000), 1.05, &SMALL).await;
}
