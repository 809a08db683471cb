//! Request heads and promises of recorded sites, held to the budgets: median following head ≤ 40 bytes as HTOTP frames
//! it, median promise ≤ 60, none more than 40 above its literal path and query.

use farhop_testkit::heads::{Browser, measure, median};

#[test]
fn heads_and_promises_of_recorded_sites_keep_to_their_budgets_whatever_the_browser() {
    for browser in Browser::ALL {
        let sizes = measure(browser);
        let (following, promise) = (median(&sizes.following), median(&sizes.promises));
        let (worst, which) = sizes.excess.last().unwrap();
        println!(
            "{}: first {} B, following {following} B, promise {promise} B; worst +{worst} {which}",
            browser.name(),
            median(&sizes.first)
        );
        assert!(following <= 40, "{browser:?}: median following head {following} B");
        assert!(promise <= 60, "{browser:?}: median promise {promise} B");
        let over: Vec<_> = sizes.excess.iter().filter(|(bytes, _)| *bytes > 40).collect();
        assert!(over.is_empty(), "{browser:?}: heads more than 40 bytes above their path: {over:#?}");
    }
}
