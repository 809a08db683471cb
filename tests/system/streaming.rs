//! Streaming media through both ends over a satellite link: manifests name what the link carries, films come as they play.

use farhop_events::Event;
use farhop_testkit::{File, Site, SiteOrigin};
use http::Method;
use http_body_util::{BodyExt as _, Empty};
use tokio::time::timeout;

use crate::support::{Answer, InProcess, PATIENCE, open, request, send};

/// 8 Mbit/s forward, of which a rendition may have some five.
const LINK: &str = "geo-hylas2";
const HLS: &str = "application/vnd.apple.mpegurl";
const BEST: &str = "#EXT-X-STREAM-INF:BANDWIDTH=16000000,RESOLUTION=3840x2160\nhttps://cdn.test/hi.m3u8\n";
const REST: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360\nlow/list.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=4500000,RESOLUTION=1280x720\n../mid.m3u8?a=1\n";
const MPD: &str = r#"<MPD><Period><AdaptationSet contentType="video"><Representation id="a" bandwidth="900000"/><Representation id="b" bandwidth="16000000"/></AdaptationSet></Period></MPD>"#;

fn master() -> String {
    format!("{REST}{BEST}")
}

async fn ask(ends: &InProcess, method: Method, url: &str, field: (&str, &str)) -> Answer {
    send(ends.proxy, request(method, url).header(field.0, field.1).body(Empty::new().boxed()).unwrap()).await
}

async fn get(ends: &InProcess, url: &str) -> Answer {
    ask(ends, Method::GET, url, ("accept", "*/*")).await
}

/// What ground told of manifests and media so far.
fn told(heard: &mut farhop_events::Subscription) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(Ok(stamped)) = heard.next_now() {
        match &stamped.event {
            Event::ManifestLimited { form, kept, left_out, best_bps, why, .. } => {
                told.push(format!("{form} {kept} {left_out} {best_bps}: {why}"));
            }
            Event::ManifestKept { form, why, .. } => told.push(format!("{form} kept: {why}")),
            Event::MediaPaced { play_bps, .. } => told.push(format!("paced {play_bps}")),
            _ => {}
        }
    }
    told
}

async fn site() -> SiteOrigin {
    let file = |kind: &'static str, text: String| File::new(kind, text);
    Site::new()
        .file("/v/master.m3u8", file(HLS, master()).field("cache-control", "no-cache"))
        .file("/kept.m3u8", file(HLS, master()).field("cache-control", "no-transform"))
        .file("/signed.m3u8", file(HLS, master()).field("content-digest", "sha-256=:AA==:"))
        .file("/show.mpd", file("application/dash+xml", MPD.into()))
        .serve()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_name_what_the_link_carries_and_nothing_else_of_them_changes() {
    let (ends, site) = (InProcess::start(LINK).await, site().await);
    let mut heard = ends.ground_events.subscribe();
    let came = get(&ends, &site.url("/v/master.m3u8")).await;
    assert!(came.whole && came.text() == REST, "{}", came.text());
    assert_eq!(came.field("content-length"), REST.len().to_string());
    assert!(came.field("etag").starts_with("W/\"farhop.play.5242.s."), "{}", came.field("etag"));
    assert!(came.field("farhop-manifest").starts_with("hls; kept=2; left-out=1"), "{came:?}");
    assert_eq!(told(&mut heard), ["HLS 2 1 4500000: the link carries no more"]);
    // The origin hears its own tag, and says that nothing has changed.
    let again =
        ask(&ends, Method::GET, &site.url("/v/master.m3u8"), ("if-none-match", came.field("etag"))).await;
    assert_eq!((again.status, again.field("etag")), (304, came.field("etag")));
    let asked = site.asked();
    let tags = asked.last().unwrap().fields.get("if-none-match").unwrap().to_str().unwrap().to_owned();
    assert!(!tags.contains("farhop"), "{tags}");
    let show = get(&ends, &site.url("/show.mpd")).await;
    assert_eq!(show.text(), MPD.replace(r#"<Representation id="b" bandwidth="16000000"/>"#, ""));
    let head = ask(&ends, Method::HEAD, &site.url("/show.mpd"), ("cache-control", "no-cache")).await;
    assert_eq!(head.status, 200);
    assert!(["", show.field("etag")].contains(&head.field("etag")), "{head:?}");
    assert!(["", &show.bytes.len().to_string()].contains(&head.field("content-length")), "{head:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_its_origin_or_the_policy_wants_as_it_is_stays_as_it_is() {
    let (ends, site) = (InProcess::start(LINK).await, site().await);
    let mut heard = ends.ground_events.subscribe();
    for (path, why) in [("/kept.m3u8", "it says no-transform"), ("/signed.m3u8", "it is signed")] {
        let came = get(&ends, &site.url(path)).await;
        assert_eq!(came.text(), master(), "{path}");
        assert_eq!((came.field("farhop-manifest"), came.field("etag").contains("farhop")), ("", false));
        assert_eq!(told(&mut heard), [format!("HLS kept: {why}")]);
    }
    for off in ["ground.streaming.limited=false", "ground.squeeze.policy=identity"] {
        let ends = InProcess::with(LINK, &[off]).await;
        let mut heard = ends.ground_events.subscribe();
        assert_eq!(get(&ends, &site.url("/v/master.m3u8")).await.text(), master(), "{off}");
        assert_eq!(told(&mut heard), Vec::<String>::new());
    }
    let ends = InProcess::with(LINK, &["ground.streaming.most=1 Mbit/s"]).await;
    let mut heard = ends.ground_events.subscribe();
    get(&ends, &site.url("/v/master.m3u8")).await;
    assert_eq!(told(&mut heard), ["HLS 1 2 900000: the settings allow no more"]);
}

/// A film of `bytes` that plays for so many seconds.
fn film(bytes: usize, seconds: u32) -> Vec<u8> {
    let boxed =
        |name: &[u8], content: &[u8]| [&(content.len() as u32 + 8).to_be_bytes()[..], name, content].concat();
    let header = [&[0; 12][..], &1000u32.to_be_bytes(), &(seconds * 1000).to_be_bytes(), &[0; 80]].concat();
    let mut film = [boxed(b"ftyp", b"isom"), boxed(b"moov", &boxed(b"mvhd", &header))].concat();
    film.resize(bytes, 7);
    film
}

#[tokio::test(flavor = "multi_thread")]
async fn films_come_as_they_play_and_so_do_the_pieces_that_a_playlist_names() {
    // Ten minutes of 16 kbit/s, which the link would carry in just over a second.
    let (bytes, seconds) = (1_200_000, 600);
    let list = "#EXTM3U\n#EXTINF:2,\nseg/1.ts\n";
    let site = Site::new()
        .file("/film.mp4", File::new("video/mp4", film(bytes, seconds)))
        .file("/list.m3u8", File::new(HLS, list))
        .file("/seg/1.ts", File::new("video/mp2t", vec![7; 4_000]))
        .file("/page", File::pattern(1, 1_000_000))
        .serve()
        .await;
    let ends = InProcess::with(LINK, &["ground.streaming.ahead=5 s"]).await;
    let mut heard = ends.ground_events.subscribe();
    let playing = request(Method::GET, &site.url("/film.mp4")).body(Empty::new().boxed()).unwrap();
    let mut playing = open(ends.proxy, playing).await.into_body();
    let mut played = 0;
    let page = site.url("/page");
    let other = get(&ends, &page);
    tokio::pin!(other);
    loop {
        tokio::select! {
            other = &mut other => {
                assert!(other.whole);
                break;
            }
            frame = playing.frame() => {
                played += frame.unwrap().unwrap().into_data().map_or(0, |data| data.len());
            }
        }
    }
    // What comes at once is what was read before it said how long it plays, and five seconds.
    assert!(played > 0 && played < bytes / 2, "{played}");
    assert_eq!(told(&mut heard), ["paced 16000"]);
    assert_eq!(get(&ends, &site.url("/list.m3u8")).await.text(), list);
    let piece = timeout(PATIENCE, get(&ends, &site.url("/seg/1.ts"))).await.unwrap();
    assert!(piece.whole && piece.bytes.len() == 4_000);
    assert!(told(&mut heard).contains(&"paced 16000".to_owned()));
}
