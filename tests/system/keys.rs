//! Ends that do not know each other's keys: told at both, and no process goes down.

use crate::support::{Pair, Trust, get, keygen, until};

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

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_whose_key_is_taken_away_loses_its_carrier_and_comes_back_with_the_key() {
    // Where nobody is: ground says so with 502, and the remote without ground with 504.
    let url = "http://127.0.0.1:9/";
    let mut pair = Pair::start_with(&["timeouts.outage=2 s"]).await;
    let folder = tempfile::tempdir().unwrap();
    let other = keygen(&folder.path().join("other.key"));

    let own = pair.expect_of_remote("no key");
    until("what is no key is told of", async || {
        pair.ground.said().contains("settings stay as they are").then_some(())
    })
    .await;
    assert_eq!(get(pair.proxy, url).await.status, 502);

    pair.expect_of_remote(&other);
    until("the remote is refused", async || {
        pair.remote.said().contains("refuses this end's key: add 'farhop-ed25519 ").then_some(())
    })
    .await;
    assert!(pair.ground.said().contains("no longer listed"), "{}", pair.ground.said());
    assert_eq!(get(pair.proxy, url).await.status, 504);

    pair.expect_of_remote(&own);
    until("it is let in again", async || (get(pair.proxy, url).await.status == 502).then_some(())).await;
    pair.assert_both_run();
}

async fn no_answer_and_no_process_down(pair: &mut Pair) {
    let answer = get(pair.proxy, "http://127.0.0.1:9/").await;
    assert_eq!(answer.status, 504, "{answer:?}");
    assert_eq!(answer.reported(), "farhop-remote; error=destination_unavailable");
    assert!(answer.text().contains("What failed: <b>the satellite link</b>"), "{}", answer.text());
    pair.assert_both_run();
}
