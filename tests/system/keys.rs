//! Ends that do not know each other's keys: told at both, and no process goes down.

use crate::support::{Pair, Trust, get, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_that_ground_does_not_know_is_told_of_at_both_ends() {
    let mut pair = Pair::estranged(Trust::GroundExpectsAnother);
    until("the remote says that it is refused", async || {
        pair.remote.said().contains("refuses this end's key: add 'farhop-ed25519 ").then_some(())
    })
    .await;
    until("ground says whom it refused", async || {
        let counted = pair.counters("ground").await;
        (counted["strangers_refused"].as_u64() > Some(0)).then_some(())
    })
    .await;
    assert!(pair.ground.said().contains("farhop-ed25519 "), "{}", pair.ground.said());
    no_answer_and_no_process_down(&mut pair).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ground_that_the_remote_does_not_know_is_told_of_at_both_ends() {
    let mut pair = Pair::estranged(Trust::RemoteExpectsAnother);
    until("the remote says whom it refused", async || {
        pair.remote.said().contains("which is not among its peer's keys in this end's settings").then_some(())
    })
    .await;
    until("ground says that it was refused", async || {
        pair.ground.said().contains("refuses this end's key: add 'farhop-ed25519 ").then_some(())
    })
    .await;
    no_answer_and_no_process_down(&mut pair).await;
}

async fn no_answer_and_no_process_down(pair: &mut Pair) {
    let answer = get(pair.proxy, "http://127.0.0.1:9/").await;
    assert_eq!(answer.status, 504, "{answer:?}");
    assert_eq!(answer.reported(), "farhop-remote; error=destination_unavailable");
    assert!(answer.text().contains("What failed: <b>the satellite link</b>"), "{}", answer.text());
    pair.assert_both_run();
}
