//! What no proper client sends, frame by frame (RFC 9113 §4 and §8): none of it becomes a request.

use crate::support::{HOST, head};
use farhop_front::{Connection, Exchange, Protocol, Scope, Settings};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat()
}

/// A field block: every field a literal without indexing, names and values as they stand (RFC 7541 §6.2.2).
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

const PROPER: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", HOST), (":path", "/")];

/// A client that speaks in frames.
struct Client(DuplexStream);

impl Client {
    async fn new() -> (Client, Connection) {
        Client::new_with(Settings::default()).await
    }

    async fn new_with(settings: Settings) -> (Client, Connection) {
        let (mut near, far) = duplex(1 << 20);
        let scope = Scope::new(HOST, 443).unwrap();
        let connection = Connection::within(far, Protocol::Http2, scope, Arc::new(settings));
        near.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut client = Client(near);
        client.send(&frame(SETTINGS, 0, 0, &[])).await;
        (client, connection)
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Reads on to a frame of this kind: its stream and content.
    async fn read(&mut self, kind: u8) -> (u32, Vec<u8>) {
        loop {
            let mut header = [0; 9];
            self.0.read_exact(&mut header).await.unwrap();
            let mut content = vec![0; u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize];
            self.0.read_exact(&mut content).await.unwrap();
            if header[3] == kind {
                return (u32::from_be_bytes(header[5..].try_into().unwrap()), content);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_heads_reset_their_stream_and_the_next_is_served() {
    let with = |index: usize, field| {
        let mut fields = PROPER.to_vec();
        fields[index] = field;
        fields
    };
    let and = |field| [&PROPER[..], &[field]].concat();
    let cases = [
        and(("connection", "close")),
        and(("proxy-connection", "close")),
        and(("keep-alive", "timeout=5")),
        and(("transfer-encoding", "chunked")),
        and(("upgrade", "h2c")),
        and(("te", "gzip")),
        and((":method", "GET")),
        and((":status", "200")),
        and((":protocol", "websocket")),
        [&[("x", "a")], &PROPER[..]].concat(),
        PROPER[1..].to_vec(),
        PROPER[..3].to_vec(),
        [&PROPER[..1], &PROPER[2..]].concat(),
        with(3, (":path", "")),
        with(3, (":path", "x")),
        with(3, (":path", "/a b")),
        with(3, (":path", "/ HTTP/1.1\r\nx: y")),
        with(2, (":authority", "a.example b")),
        with(1, (":scheme", "https ")),
        and(("content-length", "5")),
        and(("content-length", "x")),
    ];
    for fields in cases {
        let (mut client, mut connection) = Client::new().await;
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(&fields))).await;
        let served = tokio::spawn(async move {
            let exchange = connection.next_request().await.unwrap().unwrap();
            assert!(exchange.head.fields.contains_key("x-proper"), "{:?}", exchange.head);
            exchange.responder.respond(head(200, &[]), "x".into()).await.unwrap();
            connection
        });
        let (stream, reason) = client.read(RST_STREAM).await;
        assert_eq!((stream, reason), (1, vec![0, 0, 0, 1]), "PROTOCOL_ERROR for {fields:?}");
        let proper = [&PROPER[..], &[("x-proper", "1")]].concat();
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &block(&proper))).await;
        assert_eq!(client.read(DATA).await, (3, b"x".to_vec()), "{fields:?}");
        served.await.unwrap();
    }
}

/// What RFC 9113 §8.2.1 and §8.3 let no field be.
const MALFORMED: [(&str, &str); 8] = [
    ("X-Upper", "a"),
    ("x y", "a"),
    ("x:y", "a"),
    ("", "a"),
    ("x", "a\r\nb: c"),
    ("x", "a\0"),
    (":unknown", "a"),
    (":authority", "b.example"),
];

#[tokio::test(start_paused = true)]
async fn a_malformed_request_costs_the_others_of_its_connection_nothing() {
    let (mut client, mut connection) = Client::new().await;
    client.send(&frame(HEADERS, END_HEADERS, 1, &block(&PROPER))).await;
    let Exchange { mut body, responder, .. } = connection.next_request().await.unwrap().unwrap();
    let mut answer = responder.start(head(200, &[]), "on".into()).await.unwrap();
    assert_eq!(client.read(DATA).await, (1, b"on".to_vec()));
    for (field, stream) in MALFORMED.into_iter().zip((3..).step_by(4)) {
        // The head of a request whose body is under way already.
        client.send(&frame(HEADERS, END_HEADERS, stream, &block(&[&PROPER[..], &[field]].concat()))).await;
        client.send(&frame(DATA, END_STREAM, stream, b"body")).await;
        assert_eq!(client.read(RST_STREAM).await, (stream, vec![0, 0, 0, 1]), "{field:?}");
        // The trailers of one that was taken.
        let trailed = stream + 2;
        client.send(&frame(HEADERS, END_HEADERS, trailed, &block(&PROPER))).await;
        let mut exchange = connection.next_request().await.unwrap().unwrap();
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, trailed, &block(&[field]))).await;
        assert_eq!(client.read(RST_STREAM).await, (trailed, vec![0, 0, 0, 1]), "{field:?} in trailers");
        assert!(exchange.body.data().await.is_err());
    }
    client.send(&frame(DATA, END_STREAM, 1, b"whole")).await;
    assert_eq!(body.data().await.unwrap().unwrap(), "whole");
    assert!(body.data().await.unwrap().is_none());
    answer.send("goes".into()).await.unwrap();
    answer.finish(None).await.unwrap();
    assert_eq!(client.read(DATA).await, (1, b"goes".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn what_a_malformed_request_adds_to_the_field_table_counts_for_the_next() {
    let (mut client, mut connection) = Client::new().await;
    // Literals that are to be kept (RFC 7541 §6.2.1): number 63 is the first of them, number 62 the second.
    let kept = [b"\x40\x09x-carried\x03yes", &b"\x40\x07X-Upper\x01a"[..]].concat();
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &[block(&PROPER), kept].concat())).await;
    assert_eq!(client.read(RST_STREAM).await, (1, vec![0, 0, 0, 1]));
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &[block(&PROPER), vec![0xbf]].concat())).await;
    let exchange = connection.next_request().await.unwrap().unwrap();
    assert_eq!(exchange.head.fields["x-carried"], "yes");
}

#[tokio::test(start_paused = true)]
async fn padding_and_priorities_of_former_days_are_no_fields() {
    const PADDED: u8 = 8;
    const PRIORITY: u8 = 32;
    let (mut client, mut connection) = Client::new().await;
    // Three bytes of padding, and a stream that hangs on another.
    let content = [&[3, 0, 0, 0, 5, 7][..], &block(&PROPER), &[0; 3]].concat();
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS | PADDED | PRIORITY, 1, &content)).await;
    let exchange = connection.next_request().await.unwrap().unwrap();
    assert_eq!(exchange.head.fields.len(), 1, "{:?}", exchange.head.fields);
    let on_itself = [&[0x80, 0, 0, 3, 7][..], &block(&PROPER)].concat();
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS | PRIORITY, 3, &on_itself)).await;
    assert_eq!(client.read(RST_STREAM).await, (3, vec![0, 0, 0, PROTOCOL_ERROR]));
    // The others of the connection are served.
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 5, &block(&PROPER))).await;
    assert!(connection.next_request().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn frames_of_unknown_kinds_are_passed_over() {
    let (mut client, mut connection) = Client::new().await;
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(&PROPER))).await;
    client.send(&frame(200, 0xff, 1, b"anything")).await;
    let exchange = connection.next_request().await.unwrap().unwrap();
    exchange.responder.respond(head(200, &[]), "x".into()).await.unwrap();
    assert_eq!(client.read(DATA).await, (1, b"x".to_vec()));
}

/// A PRIORITY_UPDATE (RFC 9218 §7.1).
fn update(stream: u8, text: &str) -> Vec<u8> {
    frame(16, 0, 0, &[&[0, 0, 0, stream][..], text.as_bytes()].concat())
}

#[tokio::test(start_paused = true)]
async fn a_priority_that_comes_ahead_of_its_request_is_the_requests() {
    let (mut client, mut connection) = Client::new().await;
    let said = [&PROPER[..], &[("priority", "u=6, i")]].concat();
    for bytes in [
        update(3, "u=2"),
        update(5, "u=7"),
        update(5, "u=0, i"),
        update(7, "u=1\r\nx: y"),
        update(9, &format!("u=1, x={}", "9".repeat(1000))),
        frame(HEADERS, END_STREAM | END_HEADERS, 3, &block(&PROPER)),
        frame(HEADERS, END_STREAM | END_HEADERS, 5, &block(&said)),
        frame(HEADERS, END_STREAM | END_HEADERS, 7, &block(&said)),
        frame(HEADERS, END_STREAM | END_HEADERS, 9, &block(&said)),
    ] {
        client.send(&bytes).await;
    }
    for priority in ["u=2", "u=0, i", "u=6, i", "u=6, i"] {
        let exchange = connection.next_request().await.unwrap().unwrap();
        assert_eq!(exchange.head.fields["priority"], priority);
        exchange.responder.respond(head(200, &[]), "x".into()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_priority_that_comes_after_its_request_is_told_to_who_answers_it() {
    let (mut client, mut connection) = Client::new().await;
    // One comes before the application has the request, one while it waits, one when the answer has begun.
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &block(&PROPER))).await;
    client.send(&update(3, "u=5")).await;
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 5, &block(&PROPER))).await;
    let first = connection.next_request().await.unwrap().unwrap();
    let other = connection.next_request().await.unwrap().unwrap();
    assert!(!first.head.fields.contains_key("priority"), "what is said later is not the request's");
    let (mut priorities, mut others) = (first.responder.priorities(), other.responder.priorities());
    assert_eq!(priorities.next().await, "u=5");
    client.send(&update(3, "u=1")).await;
    assert_eq!(priorities.next().await, "u=1");
    let mut answer = first.responder.start(head(200, &[]), "x".into()).await.unwrap();
    client.send(&update(3, "u=0, i")).await;
    assert_eq!(priorities.next().await, "u=0, i");
    answer.send("y".into()).await.unwrap();
    answer.finish(None).await.unwrap();
    drop(first.body);
    // It is answered: this is too late, and nobody waits for it.
    client.send(&update(3, "u=2")).await;
    client.send(&update(5, "u=4")).await;
    assert_eq!(others.next().await, "u=4");
    let silent = tokio::time::timeout(std::time::Duration::from_secs(60), priorities.next());
    assert!(silent.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_mind_in_the_words_of_former_days_is_understood_where_chromium_says_it() {
    // As Chromium 156 writes them, and Firefox 153 does not: RFC 7540 §6.3, with the weight less one.
    const PRIORITY: u8 = 2;
    let (mut client, mut connection) = Client::new().await;
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &block(&PROPER))).await;
    let exchange = connection.next_request().await.unwrap().unwrap();
    let mut priorities = exchange.responder.priorities();
    for (weight, urgency) in [(256, 0), (220, 1), (183, 2), (147, 3), (110, 4), (74, 5), (37, 6), (1, 7)] {
        client.send(&frame(PRIORITY, 0, 3, &[0x80, 0, 0, 0, (weight - 1) as u8])).await;
        assert_eq!(priorities.next().await, format!("u={urgency}, i"));
    }
    // A share of what others leave is no urgency.
    client.send(&frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 41])).await;
    client.send(&update(3, "u=3")).await;
    assert_eq!(priorities.next().await, "u=3");
}

#[tokio::test(start_paused = true)]
async fn floods_and_frames_out_of_order_end_the_connection() {
    let begun = frame(HEADERS, END_STREAM, 1, &block(&PROPER));
    let more = frame(CONTINUATION, 0, 1, &block(&[("x", "y")]));
    let cases = [
        [&begun[..], &more.repeat(100_000)].concat(),
        [&begun[..], &frame(DATA, 0, 1, b"x")].concat(),
        frame(DATA, 0, 1, b"x"),
        frame(HEADERS, END_HEADERS, 2, &block(&PROPER)),
        b"\x00\x00\x00\x7f\x00\x00\x00\x00\x00GET / HTTP/1.1\r\n\r\n".to_vec(),
    ];
    for bytes in cases {
        let (Client(stream), mut connection) = Client::new().await;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (end, _, _) = tokio::join!(
            async {
                let end = connection.next_request().await;
                drop(connection);
                end
            },
            // The connection may end before it has taken all.
            async { drop(writer.write_all(&bytes).await) },
            async { drop(reader.read_to_end(&mut Vec::new()).await) },
        );
        assert!(end.is_err(), "{:?}…: {end:?}", &bytes[..bytes.len().min(40)]);
    }
}

/// Error codes (RFC 9113 §7).
const PROTOCOL_ERROR: u8 = 1;
const FLOW_CONTROL_ERROR: u8 = 3;
const STREAM_CLOSED: u8 = 5;
const FRAME_SIZE_ERROR: u8 = 6;
const COMPRESSION_ERROR: u8 = 9;
const ENHANCE_YOUR_CALM: u8 = 11;

#[tokio::test(start_paused = true)]
async fn a_connection_that_cannot_go_on_ends_with_the_code_of_its_error() {
    let whole = |stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, &block(&PROPER));
    let open = |stream| frame(HEADERS, END_HEADERS, stream, &block(&PROPER));
    let begun = frame(HEADERS, END_STREAM, 1, &block(&PROPER));
    let trailers = |stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, &block(&[("x", "y")]));
    let cases = [
        // §4.2: sizes that a kind of frame can't have, or that no frame may have.
        (frame(6, 0, 0, &[0; 6]), FRAME_SIZE_ERROR),
        (frame(SETTINGS, 0, 0, &[0; 5]), FRAME_SIZE_ERROR),
        (frame(SETTINGS, 1, 0, &[0; 6]), FRAME_SIZE_ERROR),
        (frame(7, 0, 0, &[0; 7]), FRAME_SIZE_ERROR),
        (frame(8, 0, 0, &[0; 3]), FRAME_SIZE_ERROR),
        (frame(16, 0, 0, &[0; 3]), FRAME_SIZE_ERROR),
        ([open(1), frame(RST_STREAM, 0, 1, &[0; 3])].concat(), FRAME_SIZE_ERROR),
        ([open(1), frame(DATA, 0, 1, &[0; 16_385])].concat(), FRAME_SIZE_ERROR),
        (frame(HEADERS, END_HEADERS, 1, &[0; 16_385]), FRAME_SIZE_ERROR),
        // §6.5.2: a window that can't be.
        (frame(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]), FLOW_CONTROL_ERROR),
        // §4.3: fields that can't be read, in the middle of others' requests, too.
        ([open(1), frame(HEADERS, END_HEADERS, 3, &[0x80])].concat(), COMPRESSION_ERROR),
        // §6.2: padding beyond the frame, and numbers that are servers'.
        (frame(HEADERS, END_HEADERS | 8, 1, &[9, 0]), PROTOCOL_ERROR),
        (whole(2), PROTOCOL_ERROR),
        ([begun.clone(), whole(3)].concat(), PROTOCOL_ERROR),
        (frame(CONTINUATION, END_HEADERS, 1, &block(&PROPER)), PROTOCOL_ERROR),
        // §5.1.1: a number that was passed over.
        ([open(5), whole(3)].concat(), PROTOCOL_ERROR),
        // §5.1: what comes of who has ended its side of the stream, or given it up.
        ([whole(1), frame(DATA, 0, 1, b"x")].concat(), STREAM_CLOSED),
        ([open(1), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]), frame(DATA, 0, 1, b"x")].concat(), STREAM_CLOSED),
        ([whole(1), trailers(1)].concat(), STREAM_CLOSED),
        ([open(1), frame(DATA, END_STREAM, 1, b"x"), trailers(1)].concat(), STREAM_CLOSED),
        ([open(1), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]), open(1)].concat(), STREAM_CLOSED),
        ([begun, frame(CONTINUATION, 0, 1, &[]).repeat(300)].concat(), ENHANCE_YOUR_CALM),
    ];
    for (bytes, code) in cases {
        let (mut client, mut connection) = Client::new().await;
        let served = tokio::spawn(async move {
            let mut held = Vec::new();
            loop {
                match connection.next_request().await {
                    Ok(Some(exchange)) => held.push(exchange),
                    end => break end.map(drop),
                }
            }
        });
        client.send(&bytes).await;
        let (_, said) = client.read(GOAWAY).await;
        assert_eq!(said[4..8], [0, 0, 0, code], "{:?}…", &bytes[..bytes.len().min(60)]);
        assert!(client.0.read_to_end(&mut Vec::new()).await.is_ok());
        assert!(served.await.unwrap().is_err(), "the application is told");
    }
}

#[tokio::test(start_paused = true)]
async fn fields_on_a_stream_that_the_server_alone_has_ended_cost_nobody_anything() {
    let (mut client, mut connection) = Client::new().await;
    client.send(&frame(HEADERS, END_HEADERS, 1, &block(&PROPER))).await;
    let Exchange { body, responder, .. } = connection.next_request().await.unwrap().unwrap();
    responder.respond(head(413, &[]), "no".into()).await.unwrap();
    drop(body);
    assert_eq!(client.read(RST_STREAM).await.0, 1);
    // They were on their way.
    client.send(&frame(DATA, 0, 1, b"more")).await;
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(&[("x", "y")]))).await;
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &block(&PROPER))).await;
    let next = connection.next_request().await.unwrap().unwrap();
    next.responder.respond(head(200, &[]), "x".into()).await.unwrap();
    assert_eq!(client.read(DATA).await, (3, b"x".to_vec()));
}

// In real time: the client is never idle, so that a paused clock would never advance.
#[tokio::test]
async fn an_upload_in_tiny_frames_that_nobody_reads_holds_no_more_memory_than_its_window() {
    let linger = Some(Duration::from_millis(50));
    let (mut client, mut connection) = Client::new_with(Settings { linger, ..Settings::default() }).await;
    client.send(&frame(HEADERS, END_HEADERS, 1, &block(&PROPER))).await;
    let exchange = connection.next_request().await.unwrap().unwrap();
    // Each takes some 256 bytes of memory: within a window of 4 MB there would be room for a gigabyte of them.
    let tiny = frame(DATA, 0, 1, b"x").repeat(1000);
    let flood = async { while client.0.write_all(&tiny).await.is_ok() {} };
    let (end, ()) = tokio::join!(connection.next_request(), flood);
    assert!(end.is_err(), "{end:?}");
    drop(exchange);
}

#[tokio::test(start_paused = true)]
async fn data_frames_without_data_cost_nobody_anything_unless_there_is_no_end_to_them() {
    let (mut client, mut connection) = Client::new().await;
    let nothing = frame(DATA, 0, 1, b"").repeat(5000);
    client.send(&frame(HEADERS, END_HEADERS, 1, &block(&PROPER))).await;
    let Exchange { mut body, responder, .. } = connection.next_request().await.unwrap().unwrap();
    for piece in ["one", "two", "three"] {
        client.send(&[nothing.clone(), frame(DATA, 0, 1, piece.as_bytes())].concat()).await;
        assert_eq!(body.data().await.unwrap().unwrap(), piece);
    }
    client.send(&[nothing.clone(), frame(DATA, END_STREAM, 1, b"")].concat()).await;
    assert!(body.data().await.unwrap().is_none());
    responder.respond(head(200, &[]), "x".into()).await.unwrap();
    assert_eq!(client.read(DATA).await, (1, b"x".to_vec()));

    client
        .send(
            &[frame(HEADERS, END_HEADERS, 3, &block(&PROPER)), frame(DATA, 0, 3, b"").repeat(20_000)]
                .concat(),
        )
        .await;
    let _held = connection.next_request().await.unwrap().unwrap();
    let (end, (_, said)) = tokio::join!(connection.next_request(), client.read(GOAWAY));
    assert!(end.is_err() && said[4..8] == [0, 0, 0, ENHANCE_YOUR_CALM], "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_http_2_ends_the_connection() {
    let (mut near, far) = duplex(1024);
    let scope = Scope::new(HOST, 443).unwrap();
    let mut connection = Connection::within(far, Protocol::Http2, scope, Arc::new(Settings::default()));
    near.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").await.unwrap();
    assert!(connection.next_request().await.is_err());

    let (_silent, far) = duplex(1024);
    let scope = Scope::new(HOST, 443).unwrap();
    let mut connection = Connection::within(far, Protocol::Http2, scope, Arc::new(Settings::default()));
    assert!(connection.next_request().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_clients_leave_bare_in_a_path_is_encoded_and_a_fragment_is_malformed() {
    for (path, forwarded) in [
        ("/api?filter={\"a\":1}", Some("/api?filter={%22a%22:1}")),
        ("/`<b>{c}é?<d>`", Some("/%60%3Cb%3E%7Bc%7D%C3%A9?%3Cd%3E`")),
        ("/a%22b?c|d", Some("/a%22b?c|d")),
        ("/a#b", None),
        ("/a?b#", None),
    ] {
        let (mut client, mut connection) = Client::new().await;
        let fields = [PROPER[0], PROPER[1], PROPER[2], (":path", path)];
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(&fields))).await;
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &block(&PROPER))).await;
        let exchange = connection.next_request().await.unwrap().unwrap();
        let farhop_front::Target::Absolute { path: came, .. } = &exchange.head.target else {
            panic!("{path}")
        };
        assert_eq!(came, forwarded.unwrap_or("/"), "{path}");
        if forwarded.is_none() {
            assert_eq!(client.read(RST_STREAM).await.0, 1, "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_ended_still_takes_what_its_client_says_for_a_while() {
    let (mut client, mut connection) = Client::new().await;
    client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(&PROPER))).await;
    let mut exchange = connection.next_request().await.unwrap().unwrap();
    exchange.responder.close_after();
    exchange.responder.respond(head(200, &[]), "bye".into()).await.unwrap();
    drop(exchange.body);
    let (_, ping) = client.read(PING).await;
    client.send(&frame(PING, ACK, 0, &ping)).await;
    client.read(GOAWAY).await;
    client.0.read_to_end(&mut Vec::new()).await.unwrap();
    // A stream it wants no more of: a reset in answer to that would take from it what it has not read.
    client.send(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).await;
    assert!(connection.next_request().await.unwrap().is_none());
    assert!(client.0.write_all(&[0]).await.is_err(), "but not for ever");
}
