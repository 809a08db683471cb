//! Follows the rate of a link that changes: echoes by its device show whether a queue builds behind it, and the classes are given
//! what leaves none. `core/diffserv` judges.

use std::sync::Arc;
use std::time::Duration;

use farhop_diffserv::{Bounds, Follower};
use farhop_netdev::Shaping;
use farhop_units::{BitRate, Bytes};
use tokio::time::{Instant, sleep};

use crate::config::{FollowTerms, RateSource};
use crate::device::Device;
use crate::manager::Manager;
use crate::run::{blocking, in_trouble};

/// From one echo to asking for the next.
const PAUSE: Duration = Duration::from_millis(250);
/// After one that could not be asked for.
const AGAIN: Duration = Duration::from_secs(5);
/// A change of the rate below so many hundredths of it is not worth running a program for.
const WORTH: u64 = 3;

/// For as long as the manager runs; never ends.
pub(crate) async fn follow<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) {
    let (Some(terms), Ok(shaped)) = (manager.follow_terms(), manager.shaped()) else {
        return std::future::pending().await;
    };
    let began = Instant::now();
    let mut follower = Follower::new(bounds(&terms, shaped.plan.shaped));
    let mut in_force = shaped.plan.shaped;
    loop {
        let interface = manager.interface().to_owned();
        let echo = blocking(device, move |device| device.echo(&interface, terms.echo)).await;
        let pause = match echo {
            Ok(echo) => {
                manager.set_follow_trouble(
                    echo.round_trip.is_none().then(|| format!("{} gives no echo", terms.echo)),
                );
                let now = began.elapsed();
                follower.handle_left(now, Bytes(echo.left));
                if let Some(round_trip) = echo.round_trip {
                    let rate = follower.handle_round_trip(now, round_trip);
                    if is_worth_it(in_force, rate)
                        && put(manager, device, Some((rate, RateSource::Measured))).await
                    {
                        in_force = rate;
                    }
                }
                PAUSE
            }
            Err(error) => {
                manager.set_follow_trouble(Some(error.to_string()));
                AGAIN
            }
        };
        sleep(pause).await;
    }
}

fn bounds(terms: &FollowTerms, most: BitRate) -> Bounds {
    let least = u128::from(most.0) * u128::from(terms.least) / 100;
    Bounds { least: BitRate(u64::try_from(least).unwrap_or(most.0)), most, queue: terms.queue }
}

pub(crate) fn is_worth_it(before: BitRate, now: BitRate) -> bool {
    before.0.abs_diff(now.0).saturating_mul(100) >= before.0.saturating_mul(WORTH)
}

/// Whether it is in force now.
pub(crate) async fn put<D: Device>(
    manager: &Arc<Manager>,
    device: &Arc<D>,
    followed: Option<(BitRate, RateSource)>,
) -> bool {
    let mut given = manager.given.lock().await;
    // What is not in force is put there whole.
    let Some(given) = given.as_mut().filter(|_| manager.trouble.borrow().is_none()) else { return false };
    let shaping = match manager.follow(followed) {
        Ok(shaped) => shaped.shaping,
        Err(error) => {
            manager.set_follow_trouble(Some(error.to_string()));
            return false;
        }
    };
    // Calls that came or went meanwhile are named to the kernel by another task.
    let shaping = Shaping { media: given.shaping.media.clone(), ..shaping };
    let is_longest_new = shaping.longest != given.shaping.longest;
    let put = shaping.clone();
    let done = blocking(device, move |device| {
        let rules = is_longest_new.then(|| device.apply_longest(&put)).transpose()?;
        device.apply_rates(&put)?;
        Ok(rules)
    });
    match done.await {
        Ok(rules) => {
            given.shaping = shaping;
            if let Some(rules) = rules {
                given.applied.rules = rules;
            }
            true
        }
        Err(error) => {
            manager.set_follow_trouble(Some(error.to_string()));
            // A part of it may be in force: all of it is put there anew.
            in_trouble(manager, &error);
            false
        }
    }
}
