//! Origins with bad manners behind both ends: the client gets an error that names the origin's side, or a body that is
//! visibly cut off, never a whole answer; and everybody else is served as before.

use farhop_testkit::{File, HostileOrigin, Manners, Site};
use http::Method;
use http_body_util::{BodyExt as _, Empty};

use crate::support::{Answer, Local, get, open, request};

/// Timeouts short enough to be waited for. Only where they are: what merely takes long on a busy machine is no bad manners.
const SHORT: [&str; 6] = [
    "--set",
    "ground.origin.first_byte=1 s",
    "--set",
    "ground.origin.stall=1 s",
    "--set",
    "ground.origin.connect=2 s",
];

/// What is to become of a client's request.
enum Fate {
    /// An error page of this status, and this error type of RFC 9209.
    Page(u16, &'static str),
    /// The same with any error type, or an answer that begins and is cut off.
    PageOrCut,
    /// Exactly this body.
    Whole(&'static str),
    /// It goes on for as long as the client wants it.
    Endless,
}

fn fate(manners: Manners) -> Fate {
    match manners {
        Manners::Refuses => Fate::Page(502, "connection_refused"),
        Manners::Hangs => Fate::Page(504, "http_response_timeout"),
        Manners::ClosesWithoutAnswer | Manners::ResetsWithoutAnswer | Manners::StopsInHead => {
            Fate::Page(502, "connection_terminated")
        }
        Manners::TwoLengths
        | Manners::LengthIsNoNumber
        | Manners::LengthAndChunks
        | Manners::BadStatus
        | Manners::BadField
        | Manners::BareReturn
        | Manners::EndlessInformational
        | Manners::Garbage => Fate::Page(502, "http_protocol_error"),
        Manners::HugeField | Manners::EndlessFields | Manners::EndlessField => {
            Fate::Page(502, "http_response_header_section_size")
        }
        Manners::StallsInBody
        | Manners::ClosesInBody
        | Manners::ResetsInBody
        | Manners::BadChunkSize
        | Manners::HugeChunkSize
        | Manners::ChunksWithoutEnd
        | Manners::EndlessTrailers => Fate::PageOrCut,
        Manners::SendsTooMuch => Fate::Whole("0123"),
        Manners::EndlessBody | Manners::EndlessTinyChunks => Fate::Endless,
    }
}

/// Whether nothing more comes and the connection stays open.
fn is_waited_for(manners: Manners) -> bool {
    matches!(manners, Manners::Hangs | Manners::StallsInBody)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_bad_manners_is_an_error_that_names_the_origin_and_harms_nobody_else() {
    let (mut patient, mut hurried) = (Local::allowed(&[]).await, Local::allowed(&SHORT).await);
    for manners in Manners::ALL {
        let local = if is_waited_for(manners) { &mut hurried } else { &mut patient };
        let origin = HostileOrigin::with(manners).await;
        let url = origin.url("/");
        match fate(manners) {
            Fate::Page(status, token) => {
                let answer = get(local.proxy, &url).await;
                assert_page(&answer, manners);
                let reported = format!("farhop-ground; error={token}");
                assert_eq!((answer.status, answer.reported()), (status, reported), "{manners:?}");
            }
            Fate::PageOrCut => {
                let answer = get(local.proxy, &url).await;
                match answer.status {
                    200 => assert!(
                        !answer.whole,
                        "{manners:?} reached the client as if it were whole: {answer:?}"
                    ),
                    _ => assert_page(&answer, manners),
                }
            }
            Fate::Whole(text) => {
                let answer = get(local.proxy, &url).await;
                assert_eq!((answer.status, answer.text().as_str()), (200, text), "{manners:?}");
            }
            Fate::Endless => {
                let asked = request(Method::GET, &url).body(Empty::new().boxed()).unwrap();
                let mut body = open(local.proxy, asked).await.into_body();
                let mut taken = 0;
                while taken < 4_000 {
                    let frame = body.frame().await.expect("it has no end").expect("nothing is wrong so far");
                    taken += frame.into_data().map_or(0, |data| data.len());
                }
            }
        }
        local.program.assert_runs();
        // The same process serves those that behave.
        let good = Site::new().file("/", File::new("text/plain", "well")).serve().await;
        let answer = get(local.proxy, &good.url("/")).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "well"), "after {manners:?}");
    }
}

/// An error page of a gateway that blames the origin, in words and for programs.
fn assert_page(answer: &Answer, manners: Manners) {
    assert!(matches!(answer.status, 502 | 504) && answer.whole, "{manners:?}: {answer:?}");
    assert!(answer.reported().starts_with("farhop-ground; error="), "{manners:?}: {answer:?}");
    assert!(answer.text().contains("What failed: <b>the web site"), "{manners:?}: {}", answer.text());
}
