//! Clients that leave, and connections that come to their end.

use crate::client::{ask, pair, pair_with, send, whole};
use crate::support::{head, next};
use bytes::Bytes;
use farhop_front::{Departure, Settings, WriteError};
use h2::Reason;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_noticed_before_and_during_its_answer() {
    let (mut client, mut connection) = pair().await;
    let response = ask(&mut client, "GET", "/");
    let exchange = next(&mut connection).await;
    let waiting = tokio::spawn(async move { exchange.responder.departure().await });
    drop(response);
    assert_eq!(waiting.await.unwrap(), Departure::Reset);

    let response = ask(&mut client, "GET", "/");
    let mut body = next(&mut connection).await.responder.start(head(200, &[]), "x".into()).await.unwrap();
    drop(response);
    assert_eq!(body.departure().await, Departure::Reset);
    assert!(body.send("more".into()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_is_written_after_a_cancellation_fails_with_the_clients_reason() {
    let (mut client, mut connection) = pair().await;
    for (path, begun) in [("/head", false), ("/body", true), ("/end", true)] {
        let (response, mut stream) = send(&mut client, "GET", path, &[], true);
        let exchange = next(&mut connection).await;
        let mut body = None;
        let responder = if begun {
            body = Some(exchange.responder.start(head(200, &[]), "x".into()).await.unwrap());
            None
        } else {
            Some(exchange.responder)
        };
        stream.send_reset(Reason::CANCEL);
        drop(response);
        match (&responder, &body) {
            (Some(responder), _) => responder.departure().await,
            (_, Some(body)) => body.departure().await,
            _ => unreachable!(),
        };
        let written = match (responder, body) {
            (Some(responder), _) => responder.respond(head(200, &[]), "late".into()).await,
            (_, Some(mut body)) if path == "/body" => body.send("late".into()).await,
            (_, Some(body)) => body.finish(None).await,
            _ => unreachable!(),
        };
        let Err(WriteError::Connection(error)) = written else { panic!("{path}: {written:?}") };
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{path}: {error}");
        assert!(!error.to_string().contains("inactive"), "{path}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_all_its_requests() {
    let (mut client, mut connection) = pair().await;
    let (response, upload) = send(&mut client, "PUT", "/", &[], false);
    let mut exchange = next(&mut connection).await;
    drop((client, response, upload));
    assert_eq!(exchange.responder.departure().await, Departure::Reset);
    assert!(exchange.body.data().await.is_err());
    assert!(connection.next_request().await.unwrap().is_none(), "in peace");
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_finished_when_the_connection_is_let_go() {
    let (mut client, mut connection) = pair().await;
    let served = ask(&mut client, "GET", "/served");
    let exchange = next(&mut connection).await;
    let unheard = ask(&mut client, "GET", "/unheard");
    tokio::task::yield_now().await;
    drop(connection);
    // The application has not seen it: it can be asked elsewhere.
    assert_eq!(whole(unheard).await.unwrap_err().reason(), Some(Reason::REFUSED_STREAM));
    exchange.responder.respond(head(200, &[]), "whole".into()).await.unwrap();
    drop(exchange.body);
    assert_eq!(whole(served).await.unwrap().0.body(), "whole");
    assert!(client.ready().await.is_err(), "no further request");
}

#[tokio::test(start_paused = true)]
async fn an_exchange_can_be_the_last() {
    let (mut client, mut connection) = pair().await;
    let response = ask(&mut client, "GET", "/");
    let mut exchange = next(&mut connection).await;
    exchange.responder.close_after();
    exchange.responder.respond(head(200, &[]), "bye".into()).await.unwrap();
    drop(exchange.body);
    assert_eq!(whole(response).await.unwrap().0.body(), "bye");
    assert!(connection.next_request().await.unwrap().is_none());
    assert!(client.ready().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_finds_the_connection_ending() {
    let (mut client, mut connection) = pair().await;
    let response = ask(&mut client, "POST", "/");
    let exchange = next(&mut connection).await;
    exchange.responder.refuse().unwrap();
    drop(exchange.body);
    assert_eq!(whole(response).await.unwrap_err().reason(), Some(Reason::REFUSED_STREAM));
    // Asked again at once, it would be refused again: that the connection ends comes first.
    assert!(client.ready().await.is_err(), "no further request");
    assert!(connection.next_request().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_and_one_with_a_request_under_way_does_not() {
    let settings = Settings::default();
    let patience = settings.idle_timeout;
    let (mut client, mut connection) = pair_with(settings).await;
    let response = ask(&mut client, "GET", "/");
    let exchange = next(&mut connection).await;
    let more = tokio::time::timeout(patience * 3, connection.next_request()).await;
    assert!(more.is_err(), "it is not idle");
    exchange.responder.respond(head(200, &[]), "late".into()).await.unwrap();
    drop(exchange.body);
    assert_eq!(whole(response).await.unwrap().0.body(), "late");
    let more = tokio::time::timeout(patience - Duration::from_secs(1), connection.next_request()).await;
    assert!(more.is_err(), "it has been idle for less");
    assert!(connection.next_request().await.unwrap().is_none());
    assert!(client.ready().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn who_cancels_what_it_asks_for_over_and_over_is_cut_off() {
    let (client, mut connection) = pair().await;
    // The application is busy: nobody takes the requests.
    let mut cut_off = None;
    let mut client = Some(client);
    for _ in 0..10_000 {
        let mut ready = match client.take().unwrap().ready().await {
            Ok(ready) => ready,
            Err(error) => {
                cut_off = error.reason();
                break;
            }
        };
        let (_, mut stream) = send(&mut ready, "GET", "/", &[], true);
        tokio::task::yield_now().await;
        stream.send_reset(Reason::CANCEL);
        client = Some(ready);
    }
    assert_eq!(cut_off, Some(Reason::ENHANCE_YOUR_CALM));
    let mut taken = 0;
    while let Ok(Some(_)) = connection.next_request().await {
        taken += 1;
    }
    assert!(taken <= Settings::default().streams, "{taken} requests came out");
}

#[tokio::test(start_paused = true)]
async fn resets_of_one_stream_do_not_wake_the_wrong_one() {
    let (mut client, mut connection) = pair().await;
    let (kept, _stream) = send(&mut client, "PUT", "/", &[], false);
    let exchange = next(&mut connection).await;
    let (gone, mut stream) = send(&mut client, "PUT", "/", &[], false);
    let other = next(&mut connection).await;
    stream.send_reset(Reason::CANCEL);
    assert_eq!(other.responder.departure().await, Departure::Reset);
    {
        let mut departure = std::pin::pin!(exchange.responder.departure());
        let early = poll_fn(|cx| std::task::Poll::Ready(departure.as_mut().poll(cx).is_ready()));
        assert!(!early.await);
    }
    drop(gone);
    let answered = exchange.responder.respond(head(200, &[]), Bytes::from("kept")).await;
    answered.unwrap();
    assert_eq!(whole(kept).await.unwrap().0.body(), "kept");
}
