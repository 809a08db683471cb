//! Names through both ends over a satellite link: a client of another implementation asks the remote, a name server that
//! counts is asked by ground.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, NULL, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::{Instant, timeout};

use crate::support::{InProcess, PATIENCE, until};

/// Every light second of it.
const LINK: &str = "geo-hylas2";
const ROUND_TRIP: Duration = Duration::from_millis(500);
const RRSIG: u16 = 46;

/// A name server on loopback, and what it was asked.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Message>>>,
}

impl Server {
    async fn start() -> Server {
        // A port that is free for both: another test may have the one that the first was given.
        let (datagrams, connections) = loop {
            let datagrams = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            if let Ok(connections) = TcpListener::bind(datagrams.local_addr().unwrap()).await {
                break (datagrams, connections);
            }
        };
        let address = datagrams.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Message>>> = Arc::default();
        let (log, log_tcp) = (Arc::clone(&asked), Arc::clone(&asked));
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            loop {
                let (length, client) = datagrams.recv_from(&mut buffer).await.unwrap();
                let question = Message::from_vec(&buffer[..length]).unwrap();
                log.lock().unwrap().push(question.clone());
                let mut reply = answer(&question);
                if reply.to_vec().unwrap().len() > 1232 {
                    reply.answers.clear();
                    reply.metadata.truncation = true;
                }
                datagrams.send_to(&reply.to_vec().unwrap(), client).await.unwrap();
            }
        });
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = connections.accept().await.unwrap();
                let question = heard(&mut stream).await;
                log_tcp.lock().unwrap().push(question.clone());
                say(&mut stream, &answer(&question).to_vec().unwrap()).await;
            }
        });
        Server { address, asked }
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn answer(question: &Message) -> Message {
    let query = question.queries[0].clone();
    let name = query.name().clone();
    let mut reply = Message::response(question.metadata.id, OpCode::Query);
    reply.metadata.recursion_desired = true;
    reply.metadata.recursion_available = true;
    reply.set_edns(Edns::default());
    let text = name.to_ascii();
    let address = |last: u8, ttl| Record::from_rdata(name.clone(), ttl, RData::A(A::new(192, 0, 2, last)));
    match text.split('.').next().unwrap() {
        "no" => {
            reply.metadata.response_code = ResponseCode::NXDomain;
            let zone = |text| Name::from_ascii(text).unwrap();
            let soa = SOA::new(zone("ns.test."), zone("admin.test."), 1, 7200, 600, 86400, 300);
            reply.add_authority(Record::from_rdata(zone("test."), 900, RData::SOA(soa)));
        }
        "big" => {
            reply.add_answers((0..200).map(|last| address(last, 300)));
        }
        "short" => {
            reply.add_answer(address(1, 4));
        }
        "signed" if question.edns.as_ref().is_some_and(|edns| edns.flags().dnssec_ok) => {
            let data = NULL::with((0..96).collect());
            let data = RData::Unknown { code: RecordType::from(RRSIG), rdata: data };
            reply.add_answer(address(1, 300));
            reply.add_answer(Record::from_rdata(name.clone(), 300, data));
        }
        _ => {
            reply.add_answer(address(1, 300));
        }
    }
    reply.add_query(query);
    reply
}

async fn say(stream: &mut TcpStream, message: &[u8]) {
    stream.write_u16(message.len() as u16).await.unwrap();
    stream.write_all(message).await.unwrap();
}

async fn heard(stream: &mut TcpStream) -> Message {
    let mut message = vec![0; usize::from(stream.read_u16().await.unwrap())];
    stream.read_exact(&mut message).await.unwrap();
    Message::from_vec(&message).unwrap()
}

/// Both ends, and the address of the remote's name server.
async fn ends(server: SocketAddr, more: &[&str]) -> (InProcess, SocketAddr) {
    static ENDS: AtomicU8 = AtomicU8::new(1);
    // All of 127/8 is this machine: by process and test, nobody else is met there.
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    let at =
        SocketAddr::from((Ipv4Addr::new(127, high.max(1), low, ENDS.fetch_add(1, Ordering::Relaxed)), 5300));
    let sets = [format!("remote.dns.listen={at}"), format!("ground.dns.servers={server}")];
    let sets: Vec<&str> = sets.iter().map(String::as_str).chain(more.iter().copied()).collect();
    (InProcess::with(LINK, &sets).await, at)
}

fn question(name: &str) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
    message
}

/// Asks as `dig` does, and gives how long it took.
async fn dig(at: SocketAddr, asked: &Message) -> (Message, Duration) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let begun = Instant::now();
    socket.send_to(&asked.to_vec().unwrap(), at).await.unwrap();
    let mut buffer = [0; 4096];
    let (length, from) = timeout(PATIENCE, socket.recv_from(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(from, at);
    let reply = Message::from_vec(&buffer[..length]).unwrap();
    assert_eq!((reply.metadata.id, &reply.queries), (asked.metadata.id, &asked.queries));
    (reply, begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_crosses_once_and_is_answered_at_once_from_then_on() {
    let server = Server::start().await;
    let (ends, at) = ends(server.address, &[]).await;
    // Many want to know at the same time.
    let asking: Vec<_> =
        (0..20).map(|_| tokio::spawn(async move { dig(at, &question("www.test.")).await })).collect();
    for asked in asking {
        let (reply, took) = asked.await.unwrap();
        assert_eq!(reply.answers[0].data, RData::A(A::new(192, 0, 2, 1)));
        assert!(took >= ROUND_TRIP, "{took:?}");
    }
    let (reply, _) = dig(at, &question("WWW.test.")).await;
    assert!((1..=300).contains(&reply.answers[0].ttl), "{reply:?}");
    // What does not exist too.
    for _ in 0..3 {
        let (reply, _) = dig(at, &question("no.test.")).await;
        assert_eq!((reply.metadata.response_code, reply.authorities.len()), (ResponseCode::NXDomain, 1));
    }
    assert_eq!(server.count(), 2);
    let counters = ends.events.counters();
    assert_eq!((counters.names_crossed(), counters.names_answered(), counters.names_held()), (2, 24, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_large_comes_over_tcp_all_the_way_and_signatures_come_untouched() {
    let server = Server::start().await;
    let (_ends, at) = ends(server.address, &[]).await;
    let (reply, _) = dig(at, &question("big.test.")).await;
    assert!(reply.metadata.truncation && reply.answers.is_empty());
    let mut stream = TcpStream::connect(at).await.unwrap();
    // Several on one connection, none of which waits for another's answer before it is asked.
    say(&mut stream, &question("other.test.").to_vec().unwrap()).await;
    say(&mut stream, &question("big.test.").to_vec().unwrap()).await;
    let mut sizes = [heard(&mut stream).await.answers.len(), heard(&mut stream).await.answers.len()];
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 200]);
    assert_eq!(server.count(), 3, "UDP, TCP, and the other name");

    let mut signed = question("signed.test.");
    let mut edns = Edns::new();
    edns.set_max_payload(1232).set_dnssec_ok(true);
    signed.set_edns(edns);
    for _ in 0..2 {
        let (reply, _) = dig(at, &signed).await;
        let RData::Unknown { rdata, .. } = &reply.answers[1].data else { panic!("{reply:?}") };
        assert_eq!(rdata.anything, (0..96).collect::<Vec<u8>>());
    }
    let (plain, _) = dig(at, &question("signed.test.")).await;
    assert_eq!((plain.answers.len(), plain.edns.is_none()), (1, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_popular_is_there_before_it_is_asked_for_again() {
    let server = Server::start().await;
    let (ends, at) = ends(server.address, &[]).await;
    for _ in 0..3 {
        dig(at, &question("short.test.")).await;
    }
    until("it is asked for anew", async || (ends.events.counters().names_ahead() > 0).then_some(())).await;
    until("the answer is here", async || (server.count() == 2).then_some(())).await;
    assert_eq!(ends.events.counters().names_crossed(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_ask_is_refused_and_garbage_is_told_so() {
    let server = Server::start().await;
    let (ends, at) = ends(server.address, &["remote.clients=10.0.0.0/8"]).await;
    let (reply, _) = dig(at, &question("www.test.")).await;
    assert_eq!(reply.metadata.response_code, ResponseCode::Refused);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    // Not even a header is passed over, half a question is not.
    let whole = question("www.test.").to_vec().unwrap();
    for message in [&whole[..5], &whole[..20]] {
        socket.send_to(message, at).await.unwrap();
    }
    let mut buffer = [0; 512];
    let length = timeout(PATIENCE, socket.recv(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(Message::from_vec(&buffer[..length]).unwrap().metadata.response_code, ResponseCode::FormErr);
    assert_eq!((server.count(), ends.events.counters().names_crossed()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_name_server_the_client_is_told_and_nothing_is_kept_of_it() {
    // Nobody listens there once it is dropped.
    let gone = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (ends, at) = ends(gone, &[]).await;
    for crossed in [1, 2] {
        let (reply, _) = dig(at, &question("www.test.")).await;
        assert_eq!(reply.metadata.response_code, ResponseCode::ServFail);
        assert_eq!(ends.events.counters().names_crossed(), crossed);
    }
    assert_eq!(ends.ground_events.counters().names_failed(), 2);
}
