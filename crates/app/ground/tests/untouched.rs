//! What an origin has coded well crosses as it coded it; everything but the bytes on the hop is that of the decoded text.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use farhop_htotp::RequestHead;
use farhop_htotp::frame::{Coding, Resume};
use farhop_squeeze::HopDecoder;
use farhop_transport::hop::Arrival;
use http::Method;
use support::{Origin, Pair, Peer, Reply, gzip, noise, request};
use tokio::sync::{Mutex, mpsc};

/// So much of the documents of this repository: what is made up by chance is no text to a coder.
fn text(bytes: usize) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let entries = [folder.join("decisions"), folder].map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    paths.sort();
    let mut body: Vec<u8> = paths.into_iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
    assert!(body.len() >= bytes);
    body.truncate(bytes);
    body
}

fn brotli(body: &[u8], window_log: u32) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 9, window_log);
    encoder.write_all(body).unwrap();
    encoder.into_inner()
}

fn asked(origin: &Origin) -> RequestHead {
    request(Method::GET, origin.addr, "/", &[("accept-encoding", "gzip, deflate, br")])
}

async fn answering(fields: &'static str, body: Vec<u8>) -> Origin {
    support::site(fields, body, |peer| async { Some(peer) }).await
}

const BR: &str = "content-type: text/html | content-encoding: br | etag: \"1\"";
const GZIP: &str = "content-type: text/html | content-encoding: gzip | etag: \"1\"";
/// What crosses in one go, and what streams.
const LENGTHS: [usize; 2] = [60_000, 400_000];

#[tokio::test]
async fn what_an_origin_coded_better_crosses_as_it_coded_it() {
    let (old, pair) = (Pair::new(&[]).await, Pair::undoing(&[]).await);
    for length in LENGTHS {
        let body = text(length);
        let coded = brotli(&body, 22);
        let origin = answering(BR, coded.clone()).await;
        let reply = pair.get(&asked(&origin)).await;
        assert!(reply.whole && reply.body == body);
        assert_eq!((reply.coding, reply.crossed), (Coding::Brotli, coded.len()), "not a byte more");
        let fields = &reply.head().fields;
        assert!(!fields.contains_key("content-encoding") && fields["etag"] == "W/\"1\"");
        let told = fields.get("content-length").map(|length| length.to_str().unwrap().to_owned());
        assert_eq!(told, (length == LENGTHS[0]).then(|| length.to_string()));
        // A remote that has not said that it undoes this never gets it.
        let reply = old.get(&asked(&origin)).await;
        assert!(reply.whole && reply.body == body);
        assert_eq!(reply.coding, Coding::Zstd);
        assert!(reply.crossed > coded.len(), "{} {}", reply.crossed, coded.len());
    }
}

#[tokio::test]
async fn what_an_origin_coded_worse_is_coded_anew() {
    for length in LENGTHS {
        let body = text(length);
        let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 0, 18);
        encoder.write_all(&body).unwrap();
        let origin = answering(BR, encoder.into_inner()).await;
        let reply = Pair::undoing(&["squeeze.zstd_level=15"]).await.get(&asked(&origin)).await;
        assert!(reply.whole && reply.body == body);
        assert_eq!(reply.coding, Coding::Zstd, "{length}");
    }
}

#[tokio::test]
async fn gzip_streams_as_it_is_only_where_there_is_no_time_for_better() {
    let body = text(400_000);
    let coded = gzip(&body);
    let origin = answering(GZIP, coded.clone()).await;
    for (set, expected) in [("squeeze.cpu=6400 %", Coding::Zstd), ("squeeze.cpu=0 %", Coding::Gzip)] {
        let reply = Pair::undoing(&[set, "squeeze.zstd_level=9"]).await.get(&asked(&origin)).await;
        assert!(reply.whole && reply.body == body);
        assert_eq!(reply.coding, expected, "{set}");
        if expected == Coding::Gzip {
            assert_eq!(reply.crossed, coded.len() - 8, "all but the checksum, which nobody reads");
        }
    }
}

#[tokio::test]
async fn what_was_delivered_in_part_goes_on_with_the_rest_of_the_decoded_text() {
    let body = text(400_000);
    let origin = answering(BR, brotli(&body, 22)).await;
    let pair = Pair::undoing(&[]).await;
    for offset in [0, 1, 300_000, body.len()] {
        let prefix = *blake3::hash(&body[..offset]).as_bytes();
        let resume = Resume { offset: offset as u64, prefix };
        let reply = pair.get_from(&asked(&origin), Some(resume)).await;
        assert!(reply.whole && reply.body == body[offset..], "{offset}");
        assert_eq!((reply.coding, reply.resumed), (Coding::Zstd, Some(offset as u64)));
    }
}

#[tokio::test]
async fn what_is_cut_or_damaged_or_has_more_behind_it_arrives_as_it_would_decoded() {
    let (old, pair) = (Pair::new(&[]).await, Pair::undoing(&[]).await);
    for length in LENGTHS {
        let body = text(length);
        let coded = brotli(&body, 22);
        let cut = coded[..coded.len() / 2].to_vec();
        let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 9, 22);
        encoder.write_all(&body).unwrap();
        encoder.flush().unwrap();
        // RFC 7932 §9.2: after MNIBBLES of 3 stands a bit that is 0.
        let damaged = [&encoder.get_ref()[..], &[0x0e; 100]].concat();
        let more = [&coded[..], &noise(100_000)].concat();
        for (what, sent) in [("cut", cut), ("damaged", damaged), ("more", more)] {
            let origin = answering(BR, sent).await;
            let (before, now) = (old.get(&asked(&origin)).await, pair.get(&asked(&origin)).await);
            // In smaller pieces, more of what comes before the damage is decoded.
            assert!(body.starts_with(&now.body) && now.body.starts_with(&before.body), "{what} {length}");
            assert_eq!((now.whole, &now.failure), (before.whole, &before.failure), "{what} {length}");
            assert_eq!(now.whole, what != "damaged");
            assert!(now.crossed <= coded.len() + 100, "{what}: what is not of the body is left out");
        }
    }
}

#[tokio::test]
async fn a_window_for_which_remotes_have_no_room_is_coded_anew() {
    let body = text(400_000);
    let origin = answering(BR, brotli(&body, 24)).await;
    let reply = Pair::undoing(&[]).await.get(&asked(&origin)).await;
    assert!(reply.whole && reply.body == body);
    assert_eq!(reply.coding, Coding::Zstd);
}

#[tokio::test]
async fn a_text_that_trickles_as_it_was_coded_is_not_held_back() {
    let (go, going) = mpsc::unbounded_channel::<()>();
    let going = Arc::new(Mutex::new(going));
    let origin = Origin::start(move |mut peer: Peer| {
        let going = Arc::clone(&going);
        async move {
            let fields = BR.replace(" | ", "\r\n");
            let mut said = format!("HTTP/1.1 200 OK\r\n{fields}\r\ntransfer-encoding: chunked\r\n\r\n");
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            for word in ["first", "second"] {
                encoder.write_all(word.as_bytes()).unwrap();
                encoder.flush().unwrap();
                let coded = std::mem::take(encoder.get_mut());
                said += &format!("{:x}\r\n", coded.len());
                peer.say([said.as_bytes(), &coded, b"\r\n"].concat()).await;
                said.clear();
                going.lock().await.recv().await;
            }
            peer.say("0\r\n\r\n").await;
            None
        }
    })
    .await;
    let pair = Pair::undoing(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&asked(&origin), None);
    sender.finish(None);
    assert!(matches!(receiver.next().await, Arrival::Answered { coding: Coding::Brotli, .. }));
    let mut decoder = HopDecoder::brotli();
    for expected in ["first", "second"] {
        let mut got = Vec::new();
        while got.len() < expected.len() {
            let Arrival::Body(bytes) = receiver.next().await else { panic!("no body") };
            decoder.feed(bytes);
            while let Some(piece) = decoder.pull().unwrap() {
                got.extend_from_slice(&piece);
            }
        }
        assert_eq!(got, expected.as_bytes());
        go.send(()).unwrap();
    }
    assert!(Reply::take(&mut receiver).await.failure.is_none());
}

#[tokio::test]
async fn promises_still_stand_ahead_of_the_bytes_that_mention_them() {
    for length in LENGTHS {
        let mut page = text(length);
        page.iter_mut().filter(|byte| **byte == b'<').for_each(|byte| *byte = b'(');
        let at = length * 3 / 4;
        page.splice(at..at, *b"<link rel=stylesheet href=/style.css>");
        let origin = answering(BR, brotli(&page, 22)).await;
        let mut head = support::navigate(&origin, "/");
        head.fields.insert("accept-encoding", "gzip, deflate, br".parse().unwrap());
        let reply = Pair::undoing(&[]).await.get(&head).await;
        assert!(reply.whole && reply.body == page && reply.coding == Coding::Brotli);
        let (_, head, came) = reply.promises.first().expect("the stylesheet is promised");
        assert!(head.path == "/style.css" && *came <= at, "{came}");
    }
}
