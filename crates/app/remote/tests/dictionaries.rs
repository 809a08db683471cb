//! Dictionaries that ground offers are taken, compared with their names, told of, and used.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_component::{DICTIONARIES, answer as answer_component, hear};
use farhop_htotp::frame::{Class, Coding, Failure, Side};
use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_squeeze::{compress, compress_with, train};
use farhop_transport::hop::Incoming;
use support::{Asked, PATIENCE, World, answer, head, world};
use tokio::time::timeout;

const NEVER: &[(&str, &str)] = &[("content-type", "text/html"), ("cache-control", "no-store")];

fn page(number: u64) -> Vec<u8> {
    let line = |at: u64| {
        let word = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("<li class=c{at}><a href=/item/{word:x}>{:x}</a>\n", word.rotate_left(17))
    };
    let common: String = (0..60).map(line).collect();
    let own: String =
        (0..20).map(|at| format!("<p>{:x}\n", (number * 1_000 + at).wrapping_mul(2_654_435_761))).collect();
    format!("{common}{own}").into_bytes()
}

fn dictionary() -> Bytes {
    let samples: Vec<Bytes> = (0..24).map(|number| page(number).into()).collect();
    train(&samples, None).unwrap()
}

fn names(bytes: &Bytes) -> (BodyHash, HeldBody) {
    let hash = BodyHash::of(bytes);
    (hash, HeldBody { user: None, hash })
}

/// What is told of bodies next.
async fn told(world: &World) -> Word {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap();
        if let Incoming::Mirror(word @ (Word::Holds(_) | Word::Lacks(_))) = incoming {
            return word;
        }
    }
}

/// Offers a dictionary by this name and gives this for it, behind all else.
async fn offer(world: &World, hash: BodyHash, coded: Bytes) {
    world.hop.offer_dictionary(hash, coded.len() as u64);
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("it is asked for").unwrap();
        let (asked, sender, mut receiver) = match incoming {
            Incoming::Tunnel { asked, sender, receiver } => (asked, sender, receiver),
            Incoming::Mirror(Word::Holds(bodies)) => panic!("{bodies:?} is told of"),
            _ => continue,
        };
        assert!(DICTIONARIES.is_asked(&asked) && asked.class == Class::Background && asked.user == 0);
        assert_eq!(hear(&mut receiver, 99).await.unwrap(), hash.0);
        return answer_component(sender, async { Ok(coded.to_vec()) }).await;
    }
}

/// A client asks, and is given this body, coded so.
async fn give(world: &World, coding: Coding, coded: Bytes, body: &[u8]) {
    let client = world.get("/a", "").await;
    let Asked { mut sender, .. } = world.asked().await;
    let length = body.len().to_string();
    let fields = [NEVER[0], NEVER[1], ("content-length", Box::leak(length.into_boxed_str()))];
    sender.answer(&head(&fields), coding, None);
    sender.write(coded).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.as_bytes().ends_with(body));
}

#[tokio::test]
async fn a_dictionary_is_taken_told_of_used_and_told_of_again_on_another_carrier() {
    let mut world = world().await;
    let dictionary = dictionary();
    let (hash, held) = names(&dictionary);
    offer(&world, hash, compress(&dictionary, 9).unwrap()).await;
    assert_eq!(told(&world).await, Word::Holds(vec![held]));
    let page = page(1_000);
    let coded = compress_with(&dictionary, &page, 9).unwrap();
    assert!(coded.len() * 2 < compress(&page, 9).unwrap().len());
    give(&world, Coding::Dictionary(hash), coded.clone(), &page).await;
    world.lose_carrier().await;
    assert_eq!(told(&world).await, Word::Holds(vec![held]));
    give(&world, Coding::Dictionary(hash), coded, &page).await;
}

#[tokio::test]
async fn what_is_not_what_was_offered_or_is_no_dictionary_is_not_held() {
    let world = world().await;
    let dictionary = dictionary();
    let (hash, held) = names(&dictionary);
    let other = Bytes::from(page(1));
    offer(&world, hash, compress(&other, 9).unwrap()).await;
    offer(&world, BodyHash::of(&other), compress(&other, 9).unwrap()).await;
    offer(&world, hash, Bytes::from_static(b"not even coded")).await;
    // A promise of more than any dictionary has is not taken up.
    world.hop.offer_dictionary(BodyHash([7; 16]), 1 << 30);
    offer(&world, hash, compress(&dictionary, 9).unwrap()).await;
    assert_eq!(told(&world).await, Word::Holds(vec![held]), "nothing else was told of before");
}

#[tokio::test]
async fn a_ground_that_has_it_no_more_may_offer_it_again() {
    let world = world().await;
    let dictionary = dictionary();
    let (hash, held) = names(&dictionary);
    world.hop.offer_dictionary(hash, 9);
    loop {
        if let Incoming::Tunnel { sender, .. } = timeout(PATIENCE, world.hop.accept()).await.unwrap().unwrap()
        {
            let failure = Failure {
                side: Side::Link,
                status: 502,
                token: "destination_not_found".into(),
                detail: "gone".into(),
            };
            sender.fail(failure);
            break;
        }
    }
    offer(&world, hash, compress(&dictionary, 9).unwrap()).await;
    assert_eq!(told(&world).await, Word::Holds(vec![held]));
}

#[tokio::test]
async fn a_dictionary_that_is_not_held_is_told_of_and_the_body_asked_for_plainly() {
    let world = world().await;
    let dictionary = dictionary();
    let (hash, held) = names(&dictionary);
    let page = page(1_000);
    let client = world.get("/a", "").await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(NEVER), Coding::Dictionary(hash), None);
    sender.write(compress_with(&dictionary, &page, 9).unwrap()).await.unwrap();
    sender.finish(None);
    let (mut lacked, mut again) = (None, None);
    while lacked.is_none() || again.is_none() {
        match timeout(PATIENCE, world.hop.accept()).await.expect("it is asked anew").unwrap() {
            Incoming::Mirror(Word::Lacks(bodies)) => lacked = Some(bodies),
            Incoming::Exchange { resume, sender, .. } => again = Some((resume, sender)),
            _ => {}
        }
    }
    assert_eq!(lacked.unwrap(), [held]);
    let (resume, mut sender) = again.unwrap();
    assert_eq!(resume.unwrap().offset, 0);
    let length = page.len().to_string();
    let fields = [NEVER[0], NEVER[1], ("content-length", Box::leak(length.into_boxed_str()))];
    sender.answer(&head(&fields), Coding::Identity, None);
    sender.write(page.clone().into()).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.as_bytes().ends_with(&page));
}
