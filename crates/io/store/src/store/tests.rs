//! The repository in memory.

use super::*;
use crate::holdings::VARIANTS;
use crate::invalidations::INVALIDATIONS;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
fn head(vary: Option<&'static str>, request: &HeaderMap) -> Stored {
    let mut fields = HeaderMap::new();
    fields.insert("cache-control", HeaderValue::from_static("max-age=60"));
    if let Some(vary) = vary {
        fields.insert("vary", HeaderValue::from_static(vary));
    }
    Stored::new(request, StatusCode::OK, &fields, SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH)
}

fn accepting(language: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(http::header::ACCEPT_LANGUAGE, HeaderValue::from_static(language))])
}

#[tokio::test]
async fn variants_answer_the_requests_that_their_vary_matches() {
    let budget = Budget::new(1 << 20);
    let memory = Store::in_memory(Arc::clone(&budget));
    let (german, french) = (accepting("de"), accepting("fr"));
    for request in [&german, &french] {
        memory
            .store(
                Partition::Shared,
                "http://a.test/",
                head(Some("accept-language"), request),
                Body::whole(&budget, Bytes::from_static(b"x"), None),
            )
            .await;
    }
    assert_eq!(memory.find(Partition::Shared, "http://a.test/", &german).await.len(), 1);
    assert!(memory.find(Partition::Shared, "http://a.test/", &accepting("it")).await.is_empty());
}

#[tokio::test]
async fn a_user_never_sees_what_is_held_for_another() {
    let budget = Budget::new(1 << 20);
    let memory = Store::in_memory(Arc::clone(&budget));
    let none = HeaderMap::new();
    memory
        .store(
            Partition::User(1),
            "http://a.test/",
            head(None, &none),
            Body::whole(&budget, Bytes::from_static(b"x"), None),
        )
        .await;
    for partition in [Partition::User(2), Partition::Shared] {
        assert!(memory.find(partition, "http://a.test/", &none).await.is_empty());
    }
}

#[tokio::test]
async fn what_was_unused_longest_goes_first_and_is_announced() {
    let budget = Budget::new(100_000);
    let memory = Store::in_memory(Arc::clone(&budget));
    let none = HeaderMap::new();
    let mut changes = memory.changes();
    for n in 0..8 {
        let body = Body::whole(&budget, Bytes::from(vec![0; 20_000]), None);
        memory.store(Partition::Shared, &format!("http://a.test/{n}"), head(None, &none), body).await;
        memory.find(Partition::Shared, "http://a.test/0", &none).await;
    }
    assert!(budget.used() <= 100_000);
    assert_eq!(memory.find(Partition::Shared, "http://a.test/0", &none).await.len(), 1, "used all the time");
    assert!(memory.find(Partition::Shared, "http://a.test/1", &none).await.is_empty());
    let mut evicted = 0;
    while let Ok(change) = changes.try_recv() {
        evicted += usize::from(matches!(change, Change::Evicted { bytes: 20_000, .. }));
    }
    assert!(evicted >= 4, "{evicted}");
}

#[tokio::test]
async fn what_was_asked_for_before_an_invalidation_and_arrives_after_it_is_not_held() {
    let budget = Budget::new(1 << 20);
    let memory = Store::in_memory(Arc::clone(&budget));
    let none = HeaderMap::new();
    let asked = |at: SystemTime| Stored { requested_at: at, ..head(None, &none) };
    let store = |url: &'static str, at| {
        let body = Body::whole(&budget, Bytes::from_static(b"x"), None);
        memory.store(Partition::User(1), url, asked(at), body)
    };
    let found = async |url| memory.find(Partition::User(1), url, &none).await.len();
    let before = SystemTime::now();
    store("http://a.test/", before).await;
    memory.invalidate("http://a.test/").await;
    let outdated = store("http://a.test/", before).await;
    assert!(found("http://a.test/").await == 0 && memory.entry(outdated).await.is_none());
    store("http://a.test/other", before).await;
    let invalidated = SystemTime::now();
    let mut later = invalidated;
    while later <= invalidated {
        later = SystemTime::now();
    }
    // The clock has gone back since it was asked for: that may have been before.
    store("http://a.test/", later + std::time::Duration::from_secs(3600)).await;
    assert_eq!(found("http://a.test/").await, 0);
    store("http://a.test/", later).await;
    assert_eq!((found("http://a.test/other").await, found("http://a.test/").await), (1, 1));
    for number in 0..2 * INVALIDATIONS {
        memory.invalidate(&format!("http://b.test/{number}")).await;
    }
    assert_eq!(memory.0.lock().invalidations(), INVALIDATIONS);
    // So many that nobody knows any more of which.
    store("http://a.test/late", before).await;
    assert_eq!(found("http://a.test/late").await, 0);
}

#[tokio::test]
async fn of_too_many_variants_the_one_goes_that_was_unused_longest() {
    let budget = Budget::new(1 << 20);
    let memory = Store::in_memory(Arc::clone(&budget));
    let speaking =
        |number: usize| HeaderMap::from_iter([(http::header::ACCEPT_LANGUAGE, HeaderValue::from(number))]);
    let found =
        async |number| memory.find(Partition::Shared, "http://a.test/", &speaking(number)).await.len();
    for number in 0..VARIANTS + 8 {
        let body = Body::whole(&budget, Bytes::from_static(b"x"), None);
        let head = head(Some("accept-language"), &speaking(number));
        memory.store(Partition::Shared, "http://a.test/", head, body).await;
        assert_eq!(found(0).await, 1, "used all the time");
    }
    let mut there = 0;
    for number in 0..VARIANTS + 8 {
        there += found(number).await;
    }
    assert_eq!((there, found(1).await, found(VARIANTS + 7).await), (VARIANTS, 0, 1));
}

#[tokio::test]
async fn heads_count_as_bodies_do() {
    let budget = Budget::new(100_000);
    let memory = Store::in_memory(Arc::clone(&budget));
    let none = HeaderMap::new();
    let mut long = head(None, &none);
    long.fields.insert("x-long", HeaderValue::from_bytes(&[b'x'; 20_000]).unwrap());
    for n in 0..8 {
        let body = Body::whole(&budget, Bytes::from_static(b"x"), None);
        memory.store(Partition::Shared, &format!("http://a.test/{n}"), long.clone(), body).await;
    }
    let held = memory.newest(100).await;
    assert!((1..=5).contains(&held.len()), "{held:?}");
    for id in held {
        memory.freshen(id, head(None, &none)).await;
    }
    memory.clear().await;
    assert_eq!(memory.0.lock().costs(), 0);
}

#[tokio::test]
async fn a_body_that_broke_is_not_found_again() {
    let budget = Budget::new(1 << 20);
    let memory = Store::in_memory(Arc::clone(&budget));
    let none = HeaderMap::new();
    let (intake, body) = Body::new(&budget, 1000);
    memory.store(Partition::Shared, "http://a.test/", head(None, &none), body).await;
    assert_eq!(memory.find(Partition::Shared, "http://a.test/", &none).await.len(), 1, "while it arrives");
    drop(intake);
    assert!(memory.find(Partition::Shared, "http://a.test/", &none).await.is_empty());
}
