//! Images on their way through ground: changed for those who show them, untouched for everyone else.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::Cursor;

use farhop_htotp::RequestHead;
use farhop_htotp::frame::Resume;
use farhop_squeeze::{ImageOffer, Load, Policy, image_plan, recode};
use http::{Method, StatusCode};
use support::*;

const ACCEPT: &str = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";

fn photo() -> Vec<u8> {
    let wave = |x: u32, y: u32| 120.0 + 60.0 * (x as f32 / 17.0).sin() + 50.0 * (y as f32 / 11.0).cos();
    let grain = |x: u32, y: u32| (x * 7919 + y * 104_729) % 13;
    let pixels: Vec<u8> = (0..160u32)
        .flat_map(|y| {
            (0..240u32)
                .flat_map(move |x| [0, 9, 30].map(|tint| (wave(x + tint, y) as u32 + grain(x, y)) as u8))
        })
        .collect();
    let mut file = Cursor::new(Vec::new());
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, 92)
        .encode(&pixels, 240, 160, image::ExtendedColorType::Rgb8)
        .unwrap();
    file.into_inner()
}

fn expected(policy: Policy) -> Vec<u8> {
    let photo = photo();
    let offer = ImageOffer { media: "image/jpeg", length: Some(photo.len() as u64), webp: true };
    recode(&photo, image_plan(&offer, policy, Load::Light).unwrap()).unwrap().bytes
}

/// Answers `/photo` with it, under the tag `"p1"`; `/odd` with bytes that are no picture; `/kept` with no-transform.
async fn gallery() -> Origin {
    Origin::start(|mut peer| async move {
        match peer.path() {
            "/photo" if peer.head.contains("if-none-match: \"p1\"\r\n") => {
                peer.say("HTTP/1.1 304 Not Modified\r\netag: \"p1\"\r\n\r\n").await;
            }
            "/photo" => {
                peer.answer("content-type: image/jpeg|etag: \"p1\"|accept-ranges: bytes", photo()).await;
            }
            "/odd" => peer.answer("content-type: image/jpeg", noise(5000)).await,
            "/kept" => peer.answer("content-type: image/jpeg|cache-control: no-transform", photo()).await,
            // RFC 9842: what comes later is coded against these bytes.
            "/dictionary" => {
                peer.answer("content-type: image/jpeg|use-as-dictionary: match=\"/*\"", photo()).await;
            }
            _ => return None,
        }
        Some(peer)
    })
    .await
}

fn image(origin: &Origin, path: &str, more: &[(&str, &str)]) -> RequestHead {
    request(Method::GET, origin.addr, path, &[&[("accept", ACCEPT)], more].concat())
}

#[tokio::test]
async fn an_image_that_is_shown_is_changed_and_says_so() {
    let (pair, origin) = (Pair::new(&[]).await, gallery().await);
    let reply = pair.get(&image(&origin, "/photo", &[])).await;
    let fields = &reply.head().fields;
    assert!(reply.whole && reply.body == expected(Policy::Gentle));
    assert_eq!(fields["content-type"], "image/webp");
    assert_eq!(fields["content-length"].to_str().unwrap(), reply.body.len().to_string());
    assert_eq!(fields["etag"], "W/\"farhop.gentle.webp.s.p1\"");
    assert_eq!(fields["vary"], "accept");
    assert!(fields["farhop-image"].to_str().unwrap().ends_with(&format!("from=jpeg; was={}", photo().len())));
    assert!(!fields.contains_key("accept-ranges"));
}

#[tokio::test]
async fn whoever_does_not_show_it_gets_the_origins_bytes() {
    let (pair, origin) = (Pair::new(&[]).await, gallery().await);
    let asked = [
        request(Method::GET, origin.addr, "/photo", &[("accept", "*/*")]),
        navigate(&origin, "/photo"),
        image(&origin, "/photo", &[("sec-fetch-dest", "empty")]),
        image(&origin, "/photo", &[("range", "bytes=0-")]),
        image(&origin, "/photo", &[("cache-control", "no-transform")]),
        image(&origin, "/kept", &[]),
        image(&origin, "/dictionary", &[]),
    ];
    for head in asked {
        let reply = pair.get(&head).await;
        assert!(reply.whole && reply.body == photo(), "{:?}", head.fields);
        assert!(!reply.head().fields.contains_key("farhop-image"));
    }
    let odd = pair.get(&image(&origin, "/odd", &[])).await;
    assert!(odd.whole && odd.body == noise(5000), "what cannot be read passes");
}

#[tokio::test]
async fn policies_and_budgets_are_kept_to() {
    let origin = gallery().await;
    for set in ["squeeze.policy=identity", "squeeze.cpu=0 %"] {
        let reply = Pair::new(&[set]).await.get(&image(&origin, "/photo", &[])).await;
        assert!(reply.whole && reply.body == photo(), "{set}");
    }
    let reply = Pair::new(&["squeeze.policy=httpep"]).await.get(&image(&origin, "/photo", &[])).await;
    assert_eq!(reply.head().fields["content-type"], "image/jpeg");
    assert!(reply.body == expected(Policy::Httpep));
}

#[tokio::test]
async fn a_changed_image_is_revalidated_by_its_own_tag() {
    let (pair, origin) = (Pair::new(&[]).await, gallery().await);
    let tag = ("if-none-match", "W/\"farhop.gentle.webp.s.p1\"");
    let reply = pair.get(&image(&origin, "/photo", &[tag])).await;
    assert_eq!(reply.head().status, StatusCode::NOT_MODIFIED);
    assert_eq!(reply.head().fields["etag"], tag.1);
    // A script that asks with the tag of what is shown must get the original.
    let reply = pair.get(&request(Method::GET, origin.addr, "/photo", &[("accept", "*/*"), tag])).await;
    assert_eq!((reply.head().status, reply.body == photo()), (StatusCode::OK, true));
}

#[tokio::test]
async fn a_body_that_was_cut_goes_on_as_it_began() {
    let (pair, origin) = (Pair::new(&[]).await, gallery().await);
    let changed = expected(Policy::Gentle);
    for whole in [changed, photo()] {
        let resume = Resume { offset: 1000, prefix: *blake3::hash(&whole[..1000]).as_bytes() };
        let reply = pair.get_from(&image(&origin, "/photo", &[]), Some(resume)).await;
        assert_eq!(reply.resumed, Some(1000));
        assert!(reply.whole && reply.body == whole[1000..]);
    }
    let resume = Resume { offset: 1000, prefix: [7; 32] };
    let reply = pair.get_from(&image(&origin, "/photo", &[]), Some(resume)).await;
    assert_eq!(reply.failure().token, "resume_mismatch");
}

#[tokio::test]
async fn an_image_that_comes_slower_than_the_hop_passes_as_it_comes() {
    let pair = Pair::new(&[]).await;
    let (release, held) = tokio::sync::oneshot::channel::<()>();
    let held = std::sync::Arc::new(tokio::sync::Mutex::new(Some(held)));
    let origin = Origin::start(move |mut peer| {
        let held = std::sync::Arc::clone(&held);
        async move {
            let photo = photo();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: image/jpeg\r\ncontent-length: {}\r\n\r\n",
                photo.len()
            );
            peer.say([head.as_bytes(), &photo[..3000]].concat()).await;
            if let Some(held) = held.lock().await.take() {
                let _ = held.await;
            }
            peer.say(&photo[3000..]).await;
            Some(peer)
        }
    })
    .await;
    let (mut sender, mut receiver) = pair.ask(&image(&origin, "/photo", &[]), None);
    sender.finish(None);
    // The head comes although the body does not.
    let farhop_transport::hop::Arrival::Answered { head, .. } = receiver.next().await else {
        panic!("no head")
    };
    assert!(!head.fields.contains_key("farhop-image"));
    release.send(()).unwrap();
    let rest = Reply::take(&mut receiver).await;
    assert!(rest.whole && rest.body == photo());
}

#[tokio::test]
async fn an_image_that_breaks_off_is_delivered_as_far_as_it_came() {
    let pair = Pair::new(&[]).await;
    let origin = Origin::start(|mut peer| async move {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: image/jpeg\r\ncontent-length: 200000\r\n\r\n";
        peer.say([head.as_bytes(), &photo()[..5000]].concat()).await;
        None
    })
    .await;
    let reply = pair.get(&image(&origin, "/photo", &[])).await;
    assert_eq!(reply.head().fields["content-length"], "200000");
    assert!(reply.body == photo()[..5000]);
    assert!(!reply.whole && reply.failure().token == "http_response_incomplete", "{:?}", reply.failure);
}
