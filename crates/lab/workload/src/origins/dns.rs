//! The lab's DNS server: origins' names to origins' addresses over UDP, so that name lookups cross the hop as they do in
//! life. Everything it does not know does not exist; it asks nobody else.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;

use super::log::Log;

/// Seconds that a resolver may keep an answer.
const TTL: u32 = 60;

/// The names known, lower case without final dot.
pub(super) type Names = HashMap<String, IpAddr>;

/// Answers until the socket fails.
pub(super) async fn serve(socket: UdpSocket, names: Arc<Names>, log: Arc<Log>) {
    let mut datagram = [0; 4096];
    loop {
        // An ICMP error about an earlier answer comes up here on Linux and concerns nobody any more.
        let Ok((len, from)) = socket.recv_from(&mut datagram).await else { continue };
        let Some((answer, question)) = answer(&datagram[..len], &names) else { continue };
        log.question(&question);
        let _ = socket.send_to(&answer, from).await; // the asker repeats a question whose answer is lost
    }
}

/// What was asked and how it was answered, for the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) code: String,
}

/// The answer to one datagram; none for what is not a question.
fn answer(datagram: &[u8], names: &Names) -> Option<(Vec<u8>, Question)> {
    let asked = Message::from_vec(datagram).ok()?;
    if asked.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut reply = Message::response(asked.metadata.id, asked.metadata.op_code);
    reply.metadata.recursion_desired = asked.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    reply.metadata.authoritative = true;
    // RFC 6891 §6.1.1: who asks with OPT is answered with OPT.
    if asked.edns.is_some() {
        reply.set_edns(Edns::default());
    }
    let query = asked.queries.first()?.clone();
    let name = query.name().to_ascii().trim_end_matches('.').to_ascii_lowercase();
    reply.metadata.response_code = match (asked.metadata.op_code, names.get(&name)) {
        (OpCode::Query, Some(address)) => {
            let data = match (query.query_type(), address) {
                (RecordType::A | RecordType::ANY, IpAddr::V4(address)) => Some(RData::A(A(*address))),
                (RecordType::AAAA | RecordType::ANY, IpAddr::V6(address)) => {
                    Some(RData::AAAA(AAAA(*address)))
                }
                _ => None, // the name exists, this type of record does not: no error, no answer (RFC 2308 §2.2)
            };
            reply.add_answers(data.map(|data| Record::from_rdata(query.name().clone(), TTL, data)));
            ResponseCode::NoError
        }
        (OpCode::Query, None) => ResponseCode::NXDomain,
        _ => ResponseCode::NotImp,
    };
    let question = Question {
        name,
        kind: query.query_type().to_string(),
        code: reply.metadata.response_code.to_string(),
    };
    reply.add_query(query);
    Some((reply.to_vec().ok()?, question))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::Query;
    use hickory_proto::rr::Name;

    fn ask(name: &str, kind: RecordType) -> Message {
        let names = Names::from([("flags.test".to_owned(), "10.0.0.7".parse().unwrap())]);
        let mut message = Message::query();
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        let (reply, _) = answer(&message.to_vec().unwrap(), &names).unwrap();
        let reply = Message::from_vec(&reply).unwrap();
        assert_eq!(reply.metadata.id, message.metadata.id);
        reply
    }

    #[test]
    fn a_known_name_gives_its_address_whatever_its_case() {
        let reply = ask("FLAGS.test.", RecordType::A);
        assert_eq!(reply.answers[0].data, RData::A("10.0.0.7".parse().unwrap()));
    }

    #[test]
    fn a_known_name_without_such_a_record_is_no_error() {
        for kind in [RecordType::AAAA, RecordType::HTTPS] {
            let reply = ask("flags.test.", kind);
            assert_eq!((reply.metadata.response_code, reply.answers.len()), (ResponseCode::NoError, 0));
        }
    }

    #[test]
    fn any_other_name_does_not_exist() {
        assert_eq!(ask("example.org.", RecordType::A).metadata.response_code, ResponseCode::NXDomain);
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        let names = Names::new();
        assert!(answer(b"garbage", &names).is_none());
        let reply = Message::response(7, OpCode::Query).to_vec().unwrap();
        assert!(answer(&reply, &names).is_none());
    }
}
