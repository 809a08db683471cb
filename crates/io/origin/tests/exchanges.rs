//! What well-behaved origins get and give: fields on the wire, bodies both ways, pools and retries.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_origin::{
    Client, Destination, Error, FixedResolver, Guard, Partition, Request, Scheme, Settings, Upload,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// An origin that tells with each response what the request head was.
async fn mirror() -> Origin {
    Origin::start(|mut stream, _| async move {
        loop {
            let head = read_head(&mut stream).await;
            if head.is_empty() {
                return;
            }
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn the_head_on_the_wire_is_the_destinations_and_without_fields_of_other_connections() {
    let origin = mirror().await;
    let mut request = origin.get("/path?a=b|c");
    request.fields = header_fields(&[
        ("host", "liar.example"),
        ("user-agent", "test"),
        ("te", "trailers, gzip"),
        ("connection", "x-secret"),
        ("x-secret", "1"),
        ("content-length", "5"),
        ("transfer-encoding", "chunked"),
        ("proxy-authorization", "Basic eA=="),
    ]);
    let mut response = fetch(&client(), request).await.unwrap();
    let head = String::from_utf8(whole(&mut response).await.unwrap().to_vec()).unwrap();
    let mut lines: Vec<_> = head.trim_end().split("\r\n").collect();
    assert_eq!(lines[..2], ["GET /path?a=b|c HTTP/1.1", &format!("Host: 127.0.0.1:{}", origin.port)]);
    lines[2..].sort_unstable();
    assert_eq!(lines[2..], ["Connection: TE", "Content-Length: 0", "Te: trailers", "User-Agent: test"]);
}

#[tokio::test]
async fn methods_that_usually_have_a_body_say_when_there_is_none() {
    let origin = mirror().await;
    let client = client();
    for (method, said) in
        [(Method::GET, false), (Method::POST, true), (Method::PUT, true), (Method::DELETE, false)]
    {
        let mut response =
            fetch(&client, origin.request(method.clone(), "/", Upload::empty())).await.unwrap();
        let head = String::from_utf8(whole(&mut response).await.unwrap().to_vec()).unwrap();
        assert_eq!(head.contains("\r\nContent-Length: 0\r\n"), said, "{method}");
    }
    let mut response = fetch(&client, origin.request(Method::OPTIONS, "*", Upload::empty())).await.unwrap();
    assert!(whole(&mut response).await.unwrap().starts_with(b"OPTIONS * HTTP/1.1\r\n"));
}

#[tokio::test]
async fn connections_are_kept_for_their_user_and_shared_with_no_other() {
    let origin = mirror().await;
    let client = client();
    for (user, connections) in [("ann", 1), ("ann", 1), ("bob", 2), ("ann", 2), ("bob", 2)] {
        let mut request = origin.get("/");
        request.partition = Partition::new(user);
        let mut response = fetch(&client, request).await.unwrap();
        whole(&mut response).await.unwrap();
        assert_eq!(origin.connections(), connections, "{user}");
    }
}

#[tokio::test]
async fn a_single_connection_serves_its_partition_in_turn_and_nobody_else() {
    let origin = mirror().await;
    let client = client();
    let get = |partition| {
        let mut request = origin.get("/");
        request.partition = partition;
        fetch(&client, request)
    };
    for (partition, connections) in [
        (Partition::new("ann"), 1),
        (Partition::single("ann"), 2),
        (Partition::single("ann's other"), 3),
        (Partition::new("ann"), 3),
        (Partition::single("ann"), 3),
    ] {
        whole(&mut get(partition.clone()).await.unwrap()).await.unwrap();
        assert_eq!(origin.connections(), connections, "{partition:?}");
    }
    // While one answer is read the next request waits.
    let mut first = get(Partition::single("ann")).await.unwrap();
    let (second, ()) = tokio::join!(get(Partition::single("ann")), async {
        whole(&mut first).await.unwrap();
    });
    whole(&mut second.unwrap()).await.unwrap();
    assert_eq!(origin.connections(), 3);
}

#[tokio::test]
async fn connections_of_a_partition_that_is_left_close_when_they_are_not_in_use_and_no_others_do() {
    let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::start(move |mut stream, _| {
        let ended = ended.clone();
        async move {
            let mut who = String::new();
            loop {
                let head = read_head(&mut stream).await;
                let Some(path) = head.split(' ').nth(1) else { break };
                who = path.to_owned();
                // The second half of this body comes with the next request, which never does.
                let body = if path == "/busy" { "o" } else { "ok" };
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            ended.send(who).unwrap();
        }
    })
    .await;
    let client = client();
    let get = |name: &'static str, path: &'static str| {
        let mut request = origin.get(path);
        request.partition = Partition::single(name);
        fetch(&client, request)
    };
    for name in ["ann", "ben"] {
        whole(&mut get(name, "/idle").await.unwrap()).await.unwrap();
    }
    client.leave(&Partition::single("ann"));
    assert_eq!(ends.recv().await.as_deref(), Some("/idle"));
    let busy = get("ann", "/busy").await.unwrap();
    client.leave(&Partition::single("ann"));
    whole(&mut get("ben", "/still").await.unwrap()).await.unwrap();
    assert!(ends.try_recv().is_err(), "neither what is in use nor another's");
    drop(busy);
    assert_eq!(ends.recv().await.as_deref(), Some("/busy"));
    client.leave(&Partition::single("ben"));
    assert_eq!(ends.recv().await.as_deref(), Some("/still"));
}

#[tokio::test]
async fn of_many_informational_responses_the_first_are_passed_on_and_the_answer_comes() {
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n".repeat(60);
    let origin = Origin::answering(format!("{hint}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")).await;
    let heard = Arc::new(Mutex::new(0));
    let hearing = heard.clone();
    let mut response =
        client().fetch(origin.get("/"), move |_, _, _| *hearing.lock().unwrap() += 1).await.unwrap();
    assert_eq!(whole(&mut response).await.unwrap(), "ok");
    assert_eq!(*heard.lock().unwrap(), Settings::default().informational);
}

#[tokio::test]
async fn responses_without_a_body_keep_the_connection_read_or_not() {
    let answers = ["204 No Content\r\n\r\n", "304 Not Modified\r\nContent-Length: 99\r\n\r\n"];
    let origin = Origin::start(move |mut stream, _| async move {
        for answer in answers.iter().cycle() {
            let head = read_head(&mut stream).await;
            if head.is_empty() {
                return;
            }
            let answer =
                if head.starts_with("HEAD") { "200 OK\r\nContent-Length: 99\r\n\r\n" } else { answer };
            stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).await.unwrap();
        }
    })
    .await;
    let client = client();
    for (method, status) in [(Method::GET, 204), (Method::GET, 304), (Method::HEAD, 200)] {
        let response = fetch(&client, origin.request(method, "/", Upload::empty())).await.unwrap();
        assert_eq!(response.status.as_u16(), status);
        assert_eq!(response.fields.contains_key("content-length"), status != 204);
        assert!(response.body.is_end());
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn no_more_than_the_bound_of_connections_is_open_at_once() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let barrier = gate.clone();
    let origin = Origin::start(move |mut stream, _| {
        let gate = barrier.clone();
        async move {
            while !read_head(&mut stream).await.is_empty() {
                gate.acquire().await.unwrap().forget();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            }
        }
    })
    .await;
    let client = client_with(Settings { connections: 3, ..Settings::default() });
    let fetches: Vec<_> = (0..12)
        .map(|_| {
            let (client, request) = (client.clone(), origin.get("/"));
            tokio::spawn(async move { whole(&mut fetch(&client, request).await.unwrap()).await.unwrap() })
        })
        .collect();
    gate.add_permits(12);
    for fetched in fetches {
        assert_eq!(fetched.await.unwrap(), "ok");
    }
    assert_eq!(origin.connections(), 3);
}

#[tokio::test]
async fn waiting_for_a_connection_is_bounded() {
    let origin = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let client = client_with(Settings { connections: 1, ..Settings::default() });
    let held = fetch(&client, origin.get("/")).await.unwrap();
    let_time_fly();
    let error = fetch(&client, origin.get("/")).await.unwrap_err();
    tokio::time::resume();
    assert_eq!(error, Error::Busy { host: "127.0.0.1".into() });
    assert_eq!(error.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(held);
    assert!(fetch(&client, origin.get("/")).await.is_ok(), "a body that is let go frees its place");
}

#[tokio::test(start_paused = true)]
async fn a_download_ahead_is_waited_for_as_long_as_it_comes() {
    let patience = Settings::default().queue_timeout;
    let origin = Origin::start(move |mut stream, _| async move {
        while !read_head(&mut stream).await.is_empty() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await.unwrap();
            for _ in 0..9 {
                tokio::time::sleep(patience / 2).await;
                stream.write_all(b"x").await.unwrap();
            }
        }
    })
    .await;
    let client = client_with(Settings { connections: 1, ..Settings::default() });
    let mut first = fetch(&client, origin.get("/")).await.unwrap();
    let second = fetch(&client, origin.get("/"));
    let (first, second) = tokio::join!(whole(&mut first), second);
    assert_eq!(first.unwrap(), "xxxxxxxxx");
    assert!(second.is_ok(), "{:?}", second.err());
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn event_streams_leave_the_connections_to_what_comes_to_an_end() {
    let origin = Origin::start(|mut stream, _| async move {
        let kind =
            if read_head(&mut stream).await.contains("/events") { "text/event-stream" } else { "text/css" };
        stream
            .write_all(format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let client = client_with(Settings { connections: 2, ..Settings::default() });
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(fetch(&client, origin.get("/events")).await.unwrap());
    }
    for _ in 0..2 {
        held.push(fetch(&client, origin.get("/a.css")).await.unwrap());
    }
    // There are bounds all the same.
    let_time_fly();
    assert_eq!(
        fetch(&client, origin.get("/a.css")).await.unwrap_err(),
        Error::Busy { host: "127.0.0.1".into() }
    );
    tokio::time::resume();
    held.pop();
    held.push(fetch(&client, origin.get("/events")).await.unwrap());
    let_time_fly();
    assert_eq!(
        fetch(&client, origin.get("/events")).await.unwrap_err(),
        Error::Busy { host: "127.0.0.1".into() }
    );
}

#[tokio::test]
async fn connections_long_unused_are_closed() {
    let (closed, mut closes) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::start(move |mut stream, number| {
        let closed = closed.clone();
        async move {
            while !read_head(&mut stream).await.is_empty() {
                stream.write_all(EMPTY).await.unwrap();
            }
            closed.send(number).unwrap();
        }
    })
    .await;
    let client = client();
    drop(fetch(&client, origin.get("/")).await.unwrap());
    let_time_fly();
    assert_eq!(closes.recv().await, Some(0));
    tokio::time::resume();
    drop(fetch(&client, origin.get("/")).await.unwrap());
    assert_eq!(origin.connections(), 2);
}

/// An origin that answers the first request of each connection and closes on the second without a word; the heads it saw.
async fn closes_on_second() -> (Origin, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = seen.clone();
    let origin = Origin::start(move |mut stream, _| {
        let heads = heads.clone();
        async move {
            for turn in 0..2 {
                let head = read_head(&mut stream).await;
                heads.lock().unwrap().push(head.lines().next().unwrap_or_default().to_owned());
                if turn == 0 {
                    stream.write_all(EMPTY).await.unwrap();
                }
            }
        }
    })
    .await;
    (origin, seen)
}

#[tokio::test]
async fn a_stale_connection_is_replaced_for_idempotent_requests_and_used_by_no_others() {
    let client = client();
    for (method, upload, times) in [
        (Method::GET, Upload::empty(), 2),
        (Method::PUT, Upload::whole("x".into()), 2),
        (Method::DELETE, given("in pieces"), 2),
        (Method::from_bytes(b"PROPFIND").unwrap(), given("<propfind/>"), 2),
        (Method::POST, Upload::empty(), 1),
        (Method::POST, Upload::whole("x".into()), 1),
        (Method::PATCH, given("in pieces"), 1),
    ] {
        let (origin, seen) = closes_on_second().await;
        drop(fetch(&client, origin.get("/1")).await.unwrap());
        let response = fetch(&client, origin.request(method.clone(), "/2", upload)).await;
        assert_eq!(response.unwrap().status, 200, "{method}");
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0], "GET /1 HTTP/1.1");
        assert_eq!(seen[1..], vec![format!("{method} /2 HTTP/1.1"); times]);
        assert_eq!(origin.connections(), 2);
    }
}

#[tokio::test]
async fn a_connection_that_its_origin_gives_up_as_idle_is_replaced_for_idempotent_requests() {
    const IDLE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    const MEANT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    for (answer, first, status, connections) in
        [(IDLE, false, 200, 2), (IDLE, true, 408, 1), (MEANT, false, 408, 1)]
    {
        // It says so only when the request is on its way: what comes before that is found without.
        let origin = Origin::start(move |mut stream, number| async move {
            let mut answers = if first { vec![answer] } else { vec![EMPTY, answer] };
            while !read_head(&mut stream).await.is_empty() && !answers.is_empty() {
                let answer = if number == 0 { answers.remove(0) } else { EMPTY };
                stream.write_all(answer).await.unwrap();
            }
        })
        .await;
        let client = client();
        if !first {
            drop(fetch(&client, origin.get("/1")).await.unwrap());
        }
        assert_eq!(fetch(&client, origin.get("/2")).await.unwrap().status, status);
        assert_eq!(origin.connections(), connections);
    }
}

/// A body that comes in one piece from someone who gives it once.
fn given(body: &'static str) -> Upload {
    let (mut sender, upload) = Upload::streamed(Some(body.len() as u64));
    tokio::spawn(async move { sender.send(body.into()).await });
    upload
}

#[tokio::test]
async fn what_may_be_sent_once_goes_on_a_connection_made_ahead_or_makes_room_for_one() {
    let (told, mut closes) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::start(move |mut stream, number| {
        let told = told.clone();
        async move {
            while !read_head(&mut stream).await.is_empty() {
                stream.write_all(EMPTY).await.unwrap();
            }
            told.send(number).unwrap();
        }
    })
    .await;
    let client = client_with(Settings { connections: 1, ..Settings::default() });
    let post = || origin.request(Method::POST, "/", Upload::empty());
    client.prepare(&Partition::new("user"), Scheme::Http, &origin.destination()).await.unwrap();
    drop(fetch(&client, post()).await.unwrap());
    assert_eq!(origin.connections(), 1);
    drop(fetch(&client, post()).await.unwrap());
    assert_eq!((origin.connections(), closes.recv().await), (2, Some(0)));
    // What is logged in is the connection.
    let login = || Request { partition: Partition::single("login"), ..post() };
    drop(fetch(&client, login()).await.unwrap());
    drop(fetch(&client, login()).await.unwrap());
    assert_eq!(origin.connections(), 3);
}

#[tokio::test]
async fn a_fresh_connection_that_closes_is_not_retried() {
    let origin = Origin::answering("").await;
    assert_eq!(fetch(&client(), origin.get("/")).await.unwrap_err(), Error::Closed);
    assert_eq!(origin.connections(), 1);
    let post = origin.request(Method::POST, "/", given("once"));
    assert_eq!(fetch(&client(), post).await.unwrap_err(), Error::Closed);
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn informational_responses_and_trailers_are_passed_on() {
    let answer = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x\r\nX: y\r\n\r\n\
        HTTP/1.1 102 Processing\r\n\r\n\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=1\r\n\r\n\
        5\r\nhello\r\n0\r\nX-Sum: 5\r\nConnection: close\r\n\r\n";
    let origin = Origin::answering(answer).await;
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let note = move |version: Version, status: StatusCode, fields: HeaderMap| {
        assert_eq!(version, Version::HTTP_11);
        seen.lock().unwrap().push((status.as_u16(), fields));
    };
    let mut response = client().fetch(origin.get("/"), note).await.unwrap();
    assert_eq!(response.fields.len(), 0, "framing and connection are ours");
    assert_eq!(response.length, None);
    assert_eq!(whole(&mut response).await.unwrap(), "hello");
    let trailers = response.body.trailers().unwrap();
    assert_eq!((trailers.len(), &trailers["x-sum"]), (1, &HeaderValue::from_static("5")));
    let heads = heads.lock().unwrap();
    assert_eq!(*heads, [(103, header_fields(&[("link", "</a.css>")])), (102, HeaderMap::new())]);
}

#[tokio::test]
async fn a_dropped_fetch_closes_its_connection() {
    let (closed, mut closes) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::start(move |mut stream, _| {
        let closed = closed.clone();
        async move {
            read_head(&mut stream).await;
            closed.send("asked").unwrap();
            assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
            closed.send("closed").unwrap();
        }
    })
    .await;
    let client = client();
    let request = origin.get("/");
    let fetching = tokio::spawn(async move { fetch(&client, request).await.map(|_| ()) });
    assert_eq!(closes.recv().await, Some("asked"));
    fetching.abort();
    assert_eq!(closes.recv().await, Some("closed"));
}

#[tokio::test]
async fn redirects_are_responses_like_any_other() {
    let origin =
        Origin::answering("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n")
            .await;
    let response = fetch(&client(), origin.get("/")).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), &response.fields["location"]),
        (302, &HeaderValue::from_static("http://10.0.0.1/"))
    );
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_connected_to() {
    let origin = mirror().await;
    // 127.0.0.9 is refused, 127.0.0.1 is let through; both are tried under one name.
    let addresses = vec!["127.0.0.9".parse().unwrap(), "127.0.0.1".parse().unwrap()];
    let resolver = FixedResolver { names: [("two.example".to_owned(), addresses)].into() };
    let guard = Guard::new(vec!["127.0.0.1".parse().unwrap()]);
    let client = Client::new(Settings::default(), guard, Arc::new(resolver), nobody());
    let stream = client.connect(&Destination::new("Two.example", origin.port)).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().ip().to_string(), "127.0.0.1");
    assert!(stream.nodelay().unwrap());
}

#[tokio::test]
async fn a_dead_address_does_not_keep_a_live_one_from_being_used() {
    let origin = mirror().await;
    // Nobody listens on 127.0.0.2: refused at once, and the next address is tried.
    let addresses = vec!["127.0.0.2".parse().unwrap(), "127.0.0.1".parse().unwrap()];
    let resolver = FixedResolver { names: [("two.example".to_owned(), addresses)].into() };
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let settings = Settings { attempt_delay: Some(Duration::from_secs(3600)), ..Settings::default() };
    let client = Client::new(settings, guard, Arc::new(resolver), nobody());
    assert!(client.connect(&Destination::new("two.example", origin.port)).await.is_ok());
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_where_its_client_found_it_and_one_that_is_known_is_not() {
    let (known, found) = (mirror().await, mirror().await);
    let names = [("known.example".to_owned(), vec!["127.0.0.1".parse().unwrap()])].into();
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let client = Client::new(Settings::default(), guard, Arc::new(FixedResolver { names }), nobody());
    let at = |host: &str, port, address: &str| Destination::new(host, port).or_at(address.parse().unwrap());
    assert!(client.connect(&at("known.example", known.port, "127.0.0.2")).await.is_ok());
    let refused = client.connect(&at("wiki.example", 80, "10.0.0.1")).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");

    let asked = |destination| farhop_origin::Request { destination, ..found.get("/") };
    let mut response = fetch(&client, asked(at("wiki.example", found.port, "127.0.0.1"))).await.unwrap();
    let head = String::from_utf8(whole(&mut response).await.unwrap().to_vec()).unwrap();
    assert!(head.contains(&format!("Host: wiki.example:{}", found.port)), "{head}");
    // Its connection is kept, and is for nobody who has not found the name there.
    let error = fetch(&client, asked(Destination::new("wiki.example", found.port))).await.err().unwrap();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let error = fetch(&client, asked(at("wiki.example", found.port, "127.0.0.9"))).await.err().unwrap();
    assert!(matches!(error, Error::ConnectRefused { .. }), "{error}");
    assert_eq!(found.connections(), 1);
}

/// An address that lets connections hang: a listener whose queue is full. The second value keeps it so.
async fn hanging(address: &str) -> (std::net::SocketAddr, (socket2::Socket, Vec<tokio::net::TcpStream>)) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&address.parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    // The kernel queues one connection more than asked for and drops what comes after.
    let queued = tokio::net::TcpStream::connect(address).await.unwrap();
    (address, (socket, vec![queued]))
}

#[tokio::test]
async fn an_address_that_hangs_is_overtaken_by_the_next_one() {
    let live = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    // Nobody else has an address like this one, so its ports are free.
    let (hung, _held) = hanging(&format!("127.0.0.2:{}", live.local_addr().unwrap().port())).await;
    let addresses = vec![hung.ip(), live.local_addr().unwrap().ip()];
    let resolver = FixedResolver { names: [("two.example".to_owned(), addresses)].into() };
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let settings = Settings { attempt_delay: Some(Duration::from_millis(20)), ..Settings::default() };
    let client = Client::new(settings, guard, Arc::new(resolver), nobody());
    let stream = client.connect(&Destination::new("two.example", hung.port())).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().ip(), live.local_addr().unwrap().ip());
}

#[tokio::test]
async fn a_connection_that_hangs_is_timed_out() {
    let (hung, _held) = hanging("127.0.0.1:0").await;
    let_time_fly();
    let error = client().connect(&Destination::new("127.0.0.1", hung.port())).await.unwrap_err();
    assert_eq!(error, Error::ConnectTimedOut { host: "127.0.0.1".into() });
    assert_eq!((error.status(), error.proxy_status()), (StatusCode::GATEWAY_TIMEOUT, "connection_timeout"));
}

#[tokio::test]
async fn unasked_bytes_after_a_response_without_body_poison_nothing() {
    let origin = Origin::start(|mut stream, _| async move {
        while !read_head(&mut stream).await.is_empty() {
            stream
                .write_all(
                    b"HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
                )
                .await
                .unwrap();
        }
    })
    .await;
    let client = client();
    for _ in 0..3 {
        let mut response = fetch(&client, origin.get("/")).await.unwrap();
        assert_eq!(response.status, 304);
        assert_eq!(whole(&mut response).await.unwrap(), "");
    }
}
