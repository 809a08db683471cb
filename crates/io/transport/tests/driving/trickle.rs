//! A body that comes byte by byte, as fast as it can.

use farhop_congestion::Choice;

use crate::ends;

#[tokio::test(start_paused = true)]
async fn it_crosses_in_few_frames_and_packets() {
    let mut ends = ends(Choice::Rate, None);
    let carrier = ends.call().await;
    carrier.fetch(1, 3).await;
    let before = ends.crossed();
    carrier.fetch_trickling(20_000).await;
    let crossed = ends.crossed() - before;
    assert!(crossed < 26_000, "{crossed} bytes: each with a header of its own is three times as much");
}
