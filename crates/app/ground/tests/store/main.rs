//! Ground's own store on disk: what anyone may have is fetched once, for all users and also after a restart; what is stale is asked
//! about; and nothing else is kept or given.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

#[path = "../support/mod.rs"]
mod support;

mod bases;
mod site;

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use farhop_control::Chosen;
use http::Method;
use support::{Origin, Pair, Peer, Reply, get, gzip, noise, request};
use tokio::time::sleep;

use site::*;

#[tokio::test]
async fn what_anyone_may_have_is_fetched_once_for_all_users_and_after_a_restart() {
    let (place, site) = (Place::new(), Site::start().await);
    let (short, long) = (noise(3_000), noise(700_000));
    let text = "a text that is coded. ".repeat(3_000);
    site.put("/short", "cache-control: max-age=600|etag: \"1\"", &short);
    site.put("/long", "cache-control: s-maxage=600", &long);
    let coded =
        "cache-control: max-age=600|content-type: text/css|content-encoding: gzip|vary: accept-encoding";
    site.put("/text", coded, &gzip(text.as_bytes()));
    let expected = [("/short", &short[..]), ("/long", &long[..]), ("/text", text.as_bytes())];
    let pair = place.start().await;
    for (path, body) in expected {
        assert_eq!(ask_and_keep(&pair, 7, &get(&site.origin, path)).await.body, body, "{path}");
    }
    let all_alike = async |pair: &Pair, user| {
        for (path, body) in expected {
            let reply = ask(pair, user, &get(&site.origin, path)).await;
            assert_eq!((status(&reply), &reply.body[..]), (200, body), "{path}");
            assert!(field(&reply, "cache-status").starts_with("farhop-ground; hit; ttl="), "{path}");
            assert!(field(&reply, "age").parse::<u64>().unwrap() < 600, "{path}");
        }
    };
    all_alike(&pair, 8).await;
    assert_eq!(entries(&pair).await, 3);
    place.stop(pair).await;
    let pair = place.start().await;
    all_alike(&pair, 9).await;
    assert_eq!(site.asked(), 3);
    pair.ground.flush(Chosen::All).await.unwrap();
    assert_eq!(entries(&pair).await, 0);
    ask(&pair, 9, &get(&site.origin, "/short")).await;
    assert_eq!(site.asked(), 4);
}

#[tokio::test]
async fn what_is_stale_is_asked_about_once_and_given_from_here_while_it_is_right() {
    let (place, site) = (Place::new(), Site::start().await);
    let (first, second) = (noise(5_000), noise(6_000));
    site.put("/", "cache-control: no-cache|etag: \"1\"", &first);
    let pair = place.start().await;
    let head = get(&site.origin, "/");
    ask_and_keep(&pair, 7, &head).await;
    let again = ask(&pair, 8, &head).await;
    assert_eq!((status(&again), &again.body, field(&again, "x-said")), (200, &first, "again"));
    assert_eq!(field(&again, "cache-status"), "farhop-ground; fwd=stale; fwd-status=304; stored");
    assert!(site.origin.requests()[1].contains("if-none-match: \"1\""));
    // Who holds it is told no more than that it is right, in the origin's words.
    let held = [("if-none-match", "\"1\""), ("accept-encoding", "gzip, deflate")];
    let right = ask(&pair, 9, &site.with("/", &held)).await;
    assert_eq!((status(&right), right.body.len(), field(&right, "x-said")), (304, 0, "again"));
    assert_eq!(field(&right, "cache-status"), "farhop-ground; fwd=stale; stored");
    site.put("/", "cache-control: no-cache|etag: \"2\"", &second);
    assert_eq!(ask_and_keep(&pair, 8, &head).await.body, second);
    // A client that holds the first learns of the second, and one that holds neither of what is here.
    assert_eq!(ask(&pair, 9, &site.with("/", &held)).await.body, second);
    assert_eq!(site.asked(), 5);
    site.put("/", "cache-control: no-store", &first);
    assert_eq!(ask(&pair, 8, &head).await.body, first);
    // What was right before is not any more.
    while entries(&pair).await > 0 {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_304_renews_all_that_has_its_strong_validator() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start().await;
    let (varies, body) = ("cache-control: max-age=0|etag: \"1\"|vary: accept-language", noise(3_000));
    let speaking = |language| site.with("/", &[("accept-language", language)]);
    site.put("/", varies, &body);
    ask_and_keep(&pair, 7, &speaking("en")).await;
    // The same for all, by a date of long ago: where both fit the other is asked about.
    let old = "cache-control: max-age=0|etag: \"1\"|date: Sun, 02 Mar 2014 10:00:00 GMT";
    site.put("/", old, &body);
    ask_and_keep(&pair, 7, &speaking("de")).await;
    site.put("/", &format!("{varies}|again-cache-control: max-age=600"), &body);
    for language in ["en", "fr"] {
        assert_eq!(ask(&pair, 7, &speaking(language)).await.body, body, "{language}");
    }
    assert_eq!(site.asked(), 3);
}

#[tokio::test]
async fn a_field_for_chosen_caches_is_obeyed_where_the_settings_name_it_and_not_because_an_origin_says_so() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start_with(&["origin.targets=['Own-Cache-Control']"]).await;
    let body = noise(3_000);
    site.put("/own", "cache-control: no-store|own-cache-control: max-age=600", &body);
    let named = "cdn-cache-control: no-store|farhop-targets: cdn-cache-control";
    site.put("/forged", &format!("cache-control: max-age=600|{named}"), &body);
    for path in ["/own", "/forged"] {
        ask_and_keep(&pair, 7, &get(&site.origin, path)).await;
        let again = ask(&pair, 8, &get(&site.origin, path)).await;
        assert!(field(&again, "cache-status").starts_with("farhop-ground; hit; ttl="), "{path}");
        assert_eq!(again.body, body, "{path}");
    }
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn what_the_origin_confirms_and_lets_nobody_keep_is_gone_and_said_to_be() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start().await;
    let held = [("if-none-match", "\"1\""), ("accept-encoding", "gzip, deflate")];
    for (path, again) in [("/a", "cache-control: no-store"), ("/b", "set-cookie: a=1")] {
        site.put(path, &format!("cache-control: no-cache|etag: \"1\"|again-{again}"), &noise(2_000));
        for (fields, expected) in [(&[][..], "; fwd=stale; fwd-status=304"), (&held, "; fwd=stale")] {
            ask_and_keep(&pair, 7, &get(&site.origin, path)).await;
            let reply = ask(&pair, 7, &site.with(path, fields)).await;
            assert_eq!(field(&reply, "cache-status"), format!("farhop-ground{expected}"), "{path}");
            while entries(&pair).await > 0 {
                sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

#[tokio::test]
async fn conditions_of_clients_are_judged_here_while_it_is_fresh_and_reloads_by_the_origin() {
    let (place, site) = (Place::new(), Site::start().await);
    site.put("/", "cache-control: max-age=600|etag: \"1\"", &noise(5_000));
    let pair = place.start().await;
    ask_and_keep(&pair, 7, &get(&site.origin, "/")).await;
    for (tag, expected) in
        [("\"1\"", (304, "\"1\"")), ("W/\"1\"", (304, "W/\"1\"")), ("\"0\"", (200, "\"1\""))]
    {
        let reply = ask(&pair, 8, &site.with("/", &[("if-none-match", tag)])).await;
        assert_eq!((status(&reply), field(&reply, "etag")), expected, "{tag}");
        assert!(field(&reply, "cache-status").starts_with("farhop-ground; hit; ttl="), "{tag}");
    }
    assert_eq!(site.asked(), 1);
    for fields in [&[("cache-control", "no-cache")][..], &[("cache-control", "max-age=0")]] {
        assert_eq!(status(&ask(&pair, 8, &site.with("/", fields)).await), 200);
    }
    assert_eq!(site.asked(), 3);
    // What is asked on the condition that it has not changed is for the origin.
    ask(&pair, 8, &site.with("/", &[("if-match", "\"1\"")])).await;
    assert_eq!(site.asked(), 4);
}

#[tokio::test]
async fn a_range_is_answered_from_the_whole_that_is_held() {
    let (place, site) = (Place::new(), Site::start().await);
    let body = noise(700_000);
    site.put("/", "cache-control: max-age=600|etag: \"1\"", &body);
    let pair = place.start().await;
    ask_and_keep(&pair, 7, &get(&site.origin, "/")).await;
    for (range, bytes) in [
        ("bytes=0-9", 0..10),
        ("bytes=-3", 699_997..700_000),
        ("bytes=65000-400000", 65_000..400_001),
        ("bytes=699999-", 699_999..700_000),
    ] {
        let reply = ask(&pair, 8, &site.with("/", &[("range", range)])).await;
        assert_eq!((status(&reply), &reply.body[..]), (206, &body[bytes.clone()]), "{range}");
        let told = format!("bytes {}-{}/700000", bytes.start, bytes.end - 1);
        assert_eq!((field(&reply, "content-range"), field(&reply, "etag")), (&*told, "\"1\""), "{range}");
        assert!(field(&reply, "cache-status").starts_with("farhop-ground; hit; ttl="), "{range}");
    }
    let beyond = ask(&pair, 8, &site.with("/", &[("range", "bytes=700000-")])).await;
    assert_eq!((status(&beyond), field(&beyond, "content-range")), (416, "bytes */700000"));
    let other = ask(&pair, 8, &site.with("/", &[("range", "bytes=0-9"), ("if-range", "\"2\"")])).await;
    assert_eq!((status(&other), other.body.len()), (200, 700_000));
    assert_eq!(site.asked(), 1);
}

#[tokio::test]
async fn a_range_of_what_is_stale_is_given_once_the_origin_has_confirmed_it() {
    let (place, site) = (Place::new(), Site::start().await);
    let body = noise(5_000);
    site.put("/", "cache-control: no-cache|etag: \"1\"", &body);
    let pair = place.start().await;
    ask_and_keep(&pair, 7, &get(&site.origin, "/")).await;
    let range = site.with("/", &[("range", "bytes=5-9")]);
    let reply = ask(&pair, 8, &range).await;
    assert_eq!((status(&reply), &reply.body[..]), (206, &body[5..10]));
    assert_eq!(field(&reply, "cache-status"), "farhop-ground; fwd=stale; fwd-status=304; stored");
    // What has changed the origin gives itself.
    site.put("/", "cache-control: no-cache|etag: \"2\"", &noise(6_000));
    assert_eq!(ask(&pair, 8, &range).await.body.len(), 6_000, "this one knows no ranges");
    assert_eq!(site.asked(), 3);
}

#[tokio::test]
async fn what_is_not_anyones_is_neither_kept_nor_given() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start().await;
    let fresh = "cache-control: max-age=600";
    let never: [(&str, &str, Fields<'_>); 7] = [
        ("/no-store", "cache-control: no-store, max-age=600", &[]),
        ("/private", "cache-control: private, max-age=600", &[]),
        ("/set-cookie", "cache-control: max-age=600|set-cookie: a=1", &[]),
        ("/vary", "cache-control: max-age=600|vary: *", &[]),
        ("/authorization", fresh, &[("authorization", "Basic YTpi")]),
        ("/asked-not-to", fresh, &[("cache-control", "no-store")]),
        ("/cookie", "", &[("cookie", "session=1")]),
    ];
    for (path, fields, asked) in never {
        site.put(path, fields, &noise(2_000));
        let before = site.asked();
        ask(&pair, 7, &site.with(path, asked)).await;
        ask(&pair, 8, &site.with(path, asked)).await;
        assert_eq!(site.asked(), before + 2, "{path}");
    }
    assert_eq!(entries(&pair).await, 0);
    // Nor is what may be given to anyone else given to who shows who it is, or asks as another page.
    site.put("/", fresh, &noise(2_000));
    ask_and_keep(&pair, 7, &site.with("/", &[])).await;
    let before = site.asked();
    for asked in [("authorization", "Basic YTpi"), ("origin", "http://other.test")] {
        ask(&pair, 8, &site.with("/", &[asked])).await;
    }
    assert_eq!(site.asked(), before + 2);
    ask(&pair, 8, &site.with("/", &[("cookie", "session=1")])).await;
    assert_eq!(site.asked(), before + 2, "the origin has said that it is fresh, for whatever cookies");
}

#[tokio::test]
async fn fields_that_are_one_users_are_left_out_and_those_to_be_validated_wait_for_that() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start().await;
    let fields =
        "cache-control: max-age=600, private=\"x-own\", no-cache=\"x-now\"|x-own: 1|x-now: 2|x-all: 3";
    site.put("/", fields, &noise(2_000));
    let told = |reply: &Reply| ["x-own", "x-now", "x-all"].map(|name| field(reply, name).to_owned());
    assert_eq!(told(&ask_and_keep(&pair, 7, &get(&site.origin, "/")).await), ["1", "2", "3"]);
    assert_eq!(told(&ask(&pair, 8, &get(&site.origin, "/")).await), ["", "", "3"]);
    assert_eq!(site.asked(), 1);
}

#[tokio::test]
async fn each_variant_answers_its_own_requests() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start().await;
    let variant = "cache-control: max-age=600|vary: accept-language";
    for (language, length) in [("de", 2_000), ("fr", 3_000)] {
        site.put("/", variant, &noise(length));
        ask_and_keep(&pair, 7, &site.with("/", &[("accept-language", language)])).await;
    }
    for (language, length) in [("de", 2_000), ("fr", 3_000)] {
        let reply = ask(&pair, 8, &site.with("/", &[("accept-language", language)])).await;
        assert_eq!(reply.body.len(), length, "{language}");
    }
    assert_eq!(site.asked(), 2);
    ask_and_keep(&pair, 8, &site.with("/", &[("accept-language", "it")])).await;
    assert_eq!(site.asked(), 3);
    // Who asks with an `Origin` is answered with what came for that, whether `Vary` says so or not.
    for vary in ["", "|vary: origin"] {
        let path = format!("/{}", vary.len());
        site.put(&path, &format!("cache-control: max-age=600{vary}"), &noise(2_000));
        let head = site.with(&path, &[("origin", "http://page.test")]);
        let before = site.asked();
        ask_and_keep(&pair, 7, &head).await;
        ask(&pair, 8, &head).await;
        assert_eq!(site.asked(), before + 1, "{vary}");
        ask_and_keep(&pair, 8, &site.with(&path, &[])).await;
        assert_eq!(site.asked(), before + 2, "{vary}");
    }
}

#[tokio::test]
async fn one_answer_for_all_origins_answers_pages_of_any_and_requests_without() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start().await;
    let anyones = "cache-control: max-age=600|access-control-allow-origin: *";
    let asking: [Fields<'_>; 3] = [&[("origin", "http://one.test")], &[("origin", "http://other.test")], &[]];
    for (number, first) in asking.iter().enumerate() {
        let path = format!("/{number}");
        site.put(&path, anyones, &noise(2_000));
        ask_and_keep(&pair, 7, &site.with(&path, first)).await;
        for fields in asking {
            let reply = ask(&pair, 8, &site.with(&path, fields)).await;
            assert_eq!(field(&reply, "access-control-allow-origin"), "*", "{first:?} {fields:?}");
        }
    }
    assert_eq!(site.asked(), 3);
    // What came without that word has none for a page that needs it.
    site.put("/plain", "cache-control: max-age=600", &noise(2_000));
    ask_and_keep(&pair, 7, &site.with("/plain", &[])).await;
    site.put("/plain", anyones, &noise(2_000));
    let reply = ask_and_keep(&pair, 8, &site.with("/plain", asking[0])).await;
    assert_eq!((field(&reply, "access-control-allow-origin"), site.asked()), ("*", 5));
}

#[tokio::test]
async fn what_an_unsafe_request_or_another_answer_makes_wrong_is_gone() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start().await;
    let head = get(&site.origin, "/");
    site.put("/", "cache-control: max-age=600|etag: \"1\"", &noise(2_000));
    ask_and_keep(&pair, 7, &head).await;
    let post = request(Method::POST, site.origin.addr, "/", &[("content-length", "0")]);
    ask(&pair, 8, &post).await;
    assert_eq!(entries(&pair).await, 0, "before the answer was passed on");
    ask_and_keep(&pair, 7, &head).await;
    assert_eq!(site.asked(), 3);
    // Of another version the origin tells who asks for a part.
    site.put("/", "cache-control: max-age=600|etag: \"2\"", &noise(3_000));
    ask_and_keep(&pair, 8, &site.with("/", &[("range", "bytes=0-9"), ("if-match", "\"2\"")])).await;
    assert_eq!(ask(&pair, 7, &head).await.body.len(), 3_000);
    assert_eq!(site.asked(), 4);
}

#[tokio::test]
async fn a_target_in_other_words_than_its_url_is_neither_kept_nor_answered_as_that_url() {
    let (place, site) = (Place::new(), Site::start().await);
    let pair = place.start().await;
    let (wrong, right) = (noise(2_000), noise(3_000));
    site.put("/x/js", "cache-control: max-age=600|etag: \"1\"", &right);
    let odd = ["/./x/js", "/a/../x/js", "/a/%2e%2e/x/js", "/x\\js"];
    for path in odd {
        site.put(path, "cache-control: max-age=600|etag: \"2\"", &wrong);
        assert_eq!(ask(&pair, 7, &get(&site.origin, path)).await.body, wrong, "{path}");
    }
    let url = get(&site.origin, "/x/js");
    assert_eq!(ask_and_keep(&pair, 8, &url).await.body, right);
    assert_eq!((site.asked(), entries(&pair).await), (5, 1));
    // They are not answered with it either, nor is what they tell told of it.
    for path in odd {
        assert_eq!(ask(&pair, 7, &get(&site.origin, path)).await.body, wrong, "{path}");
        ask(&pair, 7, &site.with(path, &[("range", "bytes=0-9")])).await;
    }
    assert_eq!((ask(&pair, 9, &url).await.body, site.asked()), (right, 13));
    // What an origin does with a form it may do whatever its target is written like.
    let post = request(Method::POST, site.origin.addr, odd[1], &[("content-length", "0")]);
    ask(&pair, 7, &post).await;
    assert_eq!(entries(&pair).await, 0);
}

#[tokio::test]
async fn what_comes_short_is_not_kept() {
    let place = Place::new();
    let origin = Origin::start(|mut peer: Peer| async move {
        let head = "HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-length: 9000\r\n\r\n";
        peer.say([head.as_bytes(), &noise(5_000)].concat()).await;
        None
    })
    .await;
    for round in 1..3 {
        let pair = place.start().await;
        let (mut sender, mut receiver) = pair.ask(&get(&origin, "/"), None);
        sender.finish(None);
        assert!(!Reply::take(&mut receiver).await.whole);
        assert_eq!(origin.requests().len(), round);
        place.stop(pair).await;
        assert!(place.bodies().is_empty());
    }
}

#[tokio::test]
async fn what_is_damaged_on_disk_is_noticed_and_fetched_anew() {
    let (place, site) = (Place::new(), Site::start().await);
    let body = noise(200_000);
    site.put("/", "cache-control: max-age=600", &body);
    for damage in ["cut", "bit", "gone"] {
        let pair = place.start().await;
        pair.ground.flush(Chosen::All).await.unwrap();
        ask_and_keep(&pair, 7, &get(&site.origin, "/")).await;
        place.stop(pair).await;
        let [file] = place.bodies().try_into().unwrap();
        let before = site.asked();
        match damage {
            "gone" => fs::remove_file(file).unwrap(),
            "cut" => fs::File::options().write(true).open(file).unwrap().set_len(150_000).unwrap(),
            // In the last of its chunks.
            _ => fs::File::options().write(true).open(file).unwrap().write_all_at(&[7; 32], 190_000).unwrap(),
        }
        let pair = place.start().await;
        assert_eq!(ask_and_keep(&pair, 8, &get(&site.origin, "/")).await.body, body, "{damage}");
        assert_eq!(site.asked(), before + 1, "{damage}");
        assert_eq!(ask(&pair, 9, &get(&site.origin, "/")).await.body, body, "{damage}");
        assert_eq!(site.asked(), before + 1, "{damage}");
        place.stop(pair).await;
    }
}

#[tokio::test]
async fn a_second_ground_on_one_folder_is_told_so() {
    let place = Place::new();
    let _first = place.start().await;
    let at = |name: &str| place.0.path().join(name).display().to_string();
    let sets = [format!("store.directory='{}'", at("store")), format!("store.key='{}'", at("key"))];
    let settings = support::settings(&[&sets[0], &sets[1]]);
    let second = farhop_ground::Ground::new(settings, 2, farhop_events::Bus::new());
    assert!(second.err().unwrap().to_string().contains("in use by another process"));
}
