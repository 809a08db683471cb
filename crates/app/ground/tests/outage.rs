//! Ground while the link is cut: origins are not made to wait for its return, and nothing is asked of them twice.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::sync::Arc;

use http::Method;
use support::{Origin, Pair, Reply, get, noise, over_tcp, request};
use tokio::sync::{Notify, mpsc};

/// More than all buffers between an origin and ground take, and less than bodies may have of the spool.
const SIZE: usize = 20 << 20;

#[tokio::test]
async fn a_body_finds_shelter_while_the_link_is_cut_and_crosses_when_it_is_back() {
    if over_tcp() {
        return;
    }
    let (told, mut through) = mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer| {
        let told = told.clone();
        async move {
            peer.answer("content-type: application/x-tar", noise(SIZE)).await;
            told.send(()).unwrap();
            Some(peer)
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&get(&origin, "/big.tar"), None);
    sender.finish(None);
    assert!(matches!(receiver.next().await, farhop_transport::hop::Arrival::Answered { .. }));
    pair.link.cut();
    through.recv().await.expect("the origin has told all that it has");
    pair.link.restore();
    let reply = Reply::take(&mut receiver).await;
    assert!(reply.body == noise(SIZE), "{} bytes, {:?}", reply.body.len(), reply.failure);
    assert_eq!(origin.paths(), ["/big.tar"]);
}

#[tokio::test]
async fn what_is_answered_during_a_cut_is_asked_once_and_arrives() {
    if over_tcp() {
        return;
    }
    let (told, mut heard) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let origin = Origin::start(move |mut peer| {
        let (told, gate) = (told.clone(), Arc::clone(&opened));
        async move {
            peer.read_until(b"one piano").await;
            told.send(()).unwrap();
            gate.notified().await;
            peer.answer("", "bought").await;
            told.send(()).unwrap();
            Some(peer)
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let order = request(Method::POST, origin.addr, "/order", &[("content-length", "9")]);
    let (mut sender, mut receiver) = pair.ask(&order, None);
    sender.write("one piano".into()).await.unwrap();
    sender.finish(None);
    heard.recv().await.expect("the origin has the order");
    pair.link.cut();
    pair.hop.silent().wait_for(Option::is_some).await.unwrap();
    gate.notify_one();
    heard.recv().await.expect("the origin has answered");
    pair.link.restore();
    assert_eq!(Reply::take(&mut receiver).await.body, b"bought");
    assert_eq!(origin.paths(), ["/order"]);
}
