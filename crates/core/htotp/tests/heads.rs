//! Request heads and promises of recorded sites, held to the budgets: median following head ≤ 40 bytes as HTOTP frames
//! it, median promise ≤ 60, none more than 40 above its literal path and query.

use farhop_testkit::heads::{measure, median};

#[test]
fn heads_and_promises_of_recorded_sites_keep_to_their_budgets() {
    let sizes = measure();
    let (following, promise) = (median(&sizes.following), median(&sizes.promises));
    let (worst, which) = sizes.excess.last().unwrap();
    println!(
        "first {} B, following {following} B, promise {promise} B; worst +{worst} {which}",
        median(&sizes.first)
    );
    assert!(following <= 40, "median following head {following} B");
    assert!(promise <= 60, "median promise {promise} B");
    let over: Vec<_> = sizes.excess.iter().filter(|(bytes, _)| *bytes > 40).collect();
    assert!(over.is_empty(), "heads more than 40 bytes above their path: {over:#?}");
}
