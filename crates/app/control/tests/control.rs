//! Both sides of a control socket, over a real one.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use farhop_control::{Client, ControlError, Server, Socket, Told};
use farhop_events::{Bus, Crossing, Event, ExchangeId};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

fn serve(path: &Path, bus: Bus) -> tokio::task::JoinHandle<()> {
    let socket = Socket::open(path).expect("the folder is fresh");
    let server = Server::new(bus)
        .command("status", "what is on", || async { Ok(json!({"side": "remote"})) })
        .command_with("add", "adds a and b", &["a", "b"], |args: Value| async move {
            match (args["a"].as_i64(), args["b"].as_i64()) {
                (Some(a), Some(b)) => Ok(json!(a + b)),
                _ => Err("add needs numbers a and b".into()),
            }
        });
    tokio::spawn(server.serve(socket))
}

fn event(why: Crossing) -> Event {
    Event::RequestCrossed { exchange: ExchangeId(1), page: None, why, field: None }
}

#[tokio::test]
async fn commands_are_answered_with_their_result_or_their_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("remote.sock");
    serve(&path, Bus::new());
    let mut client = Client::connect(&path).await.unwrap();
    assert_eq!(client.call("status", Value::Null).await.unwrap(), json!({"side": "remote"}));
    assert_eq!(client.call("add", json!({"a": 2, "b": 3})).await.unwrap(), json!(5));
    let error = client.call("add", json!({"a": 2})).await.unwrap_err();
    assert_eq!(error.to_string(), "add needs numbers a and b");
    let error = client.call("fly", Value::Null).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown command 'fly'; this end knows add, commands, counters, status, subscribe"
    );
    assert_eq!(client.call("commands", Value::Null).await.unwrap()["add"], "adds a and b");
}

#[tokio::test]
async fn what_a_command_does_not_know_is_refused_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    serve(&path, Bus::new());
    let mut client = Client::connect(&path).await.unwrap();
    for command in ["status", "counters", "commands", "subscribe"] {
        let error = client.call(command, json!({"url": "http://a.test/"})).await.unwrap_err().to_string();
        assert_eq!(error, format!("unknown argument 'url': {command} takes nothing"));
        let error = client.call(command, json!(["url"])).await.unwrap_err().to_string();
        assert_eq!(error, format!("\"args\" is no JSON object: {command} takes nothing"));
    }
    let error = client.call("add", json!({"a": 1, "b": 2, "c": 3})).await.unwrap_err().to_string();
    assert_eq!(error, "unknown argument 'c': add takes a, b");
    assert!(client.call("status", json!({})).await.is_ok());
}

#[tokio::test]
async fn counters_are_those_of_the_bus() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let bus = Bus::new();
    serve(&path, bus.clone());
    bus.emit(event(Crossing::Stale));
    let counters = Client::connect(&path).await.unwrap().call("counters", Value::Null).await.unwrap();
    assert_eq!(counters["requests_crossed"], 1);
}

#[tokio::test]
async fn a_subscriber_hears_events_and_may_still_ask() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let bus = Bus::new();
    serve(&path, bus.clone());
    let mut events = Client::connect(&path).await.unwrap().subscribe().await.unwrap();
    bus.emit(event(Crossing::Tunnel));
    match events.next().await.unwrap() {
        Some(Told::Event(stamped)) => assert_eq!(stamped.event, event(Crossing::Tunnel)),
        other => panic!("{other:?}"),
    }

    // A swarm of them arrives whole and in order.
    let mut last = None;
    for _ in 0..300 {
        bus.emit(event(Crossing::Range));
    }
    for _ in 0..300 {
        let Some(Told::Event(stamped)) = events.next().await.unwrap() else { panic!("none was missed") };
        assert!(last.is_none_or(|last| stamped.seq == last + 1));
        last = Some(stamped.seq);
    }

    let mut stream = BufReader::new(UnixStream::connect(&path).await.unwrap());
    stream
        .write_all(b"{\"v\":1,\"command\":\"subscribe\"}\n{\"v\":1,\"command\":\"status\"}\n")
        .await
        .unwrap();
    let mut lines = String::new();
    stream.read_line(&mut lines).await.unwrap();
    stream.read_line(&mut lines).await.unwrap();
    assert_eq!(
        lines,
        "{\"v\":1,\"ok\":true,\"result\":null}\n{\"v\":1,\"ok\":true,\"result\":{\"side\":\"remote\"}}\n"
    );
}

#[tokio::test]
async fn only_the_owner_may_open_the_socket_and_it_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let server = serve(&path, Bus::new());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["c"], "nothing else is left in the folder");
    server.abort();
    let _ = server.await;
    assert!(!path.exists());
}

#[tokio::test]
async fn the_file_of_a_dead_process_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    // Dropping a listener closes it and leaves its file, as a killed process does.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(std::fs::metadata(&path).unwrap().file_type().is_socket());
    serve(&path, Bus::new());
    Client::connect(&path).await.unwrap().call("status", Value::Null).await.unwrap();
}

#[tokio::test]
async fn a_live_process_keeps_its_socket_and_the_second_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    serve(&path, Bus::new());
    let error = Socket::open(&path).unwrap_err();
    assert!(matches!(error, ControlError::InUse(_)), "{error}");
    assert!(error.to_string().starts_with(&path.display().to_string()));
    Client::connect(&path).await.unwrap().call("status", Value::Null).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    std::fs::write(&path, "data").unwrap();
    assert!(matches!(Socket::open(&path).unwrap_err(), ControlError::NotASocket(_)));
    assert_eq!(std::fs::read(&path).unwrap(), b"data");
    let error = Socket::open(&folder.path().join("no/such/folder")).unwrap_err();
    assert!(error.to_string().contains("in a folder that exists"), "{error}");
}

#[tokio::test]
async fn lines_that_cannot_be_understood_are_answered_and_the_next_one_still_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    serve(&path, Bus::new());
    let mut stream = BufReader::new(UnixStream::connect(&path).await.unwrap());
    stream
        .write_all(b"hello\n{\"v\":9,\"command\":\"status\"}\n{\"v\":1,\"command\":\"status\"}\n")
        .await
        .unwrap();
    let mut lines = String::new();
    for _ in 0..3 {
        stream.read_line(&mut lines).await.unwrap();
    }
    let lines: Vec<_> = lines.lines().collect();
    assert!(lines[0].contains("\"ok\":false") && lines[0].contains("not a JSON object"), "{}", lines[0]);
    assert!(lines[1].contains("version 9 is not spoken here"), "{}", lines[1]);
    assert!(lines[2].contains("\"ok\":true"), "{}", lines[2]);
}

#[tokio::test]
async fn an_endless_line_is_cut_off_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    serve(&path, Bus::new());
    let (mut reader, mut writer) = UnixStream::connect(&path).await.unwrap().into_split();
    let flood = tokio::spawn(async move { while writer.write_all(&[b'x'; 4096]).await.is_ok() {} });
    let mut answer = [0; 256];
    let length = reader.read(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer[..length]).contains("line longer than"));
    flood.await.unwrap();
}

#[tokio::test]
async fn a_path_where_nobody_listens_is_said_with_what_to_check() {
    let error = Client::connect(Path::new("no-such.sock")).await.unwrap_err().to_string();
    assert!(error.starts_with("no-such.sock: no farhop answers there"), "{error}");
}
