//! Messages as another implementation writes and reads them.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use farhop_dns::{Answer, Query, Wanted};
use hickory_proto::op::{Edns, Message, OpCode, Query as Question, ResponseCode};
use hickory_proto::rr::rdata::{A, NULL, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};

pub const RRSIG: u16 = 46;

pub fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

/// A client's question.
pub fn question(of: &str, kind: RecordType) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(Question::query(name(of), kind));
    message
}

pub fn with_edns(mut message: Message, size: u16, dnssec_ok: bool) -> Message {
    let mut edns = Edns::new();
    edns.set_max_payload(size).set_dnssec_ok(dnssec_ok);
    message.set_edns(edns);
    message
}

pub fn read(message: &Message) -> Query {
    Query::read(&message.to_vec().unwrap()).unwrap_or_else(|refusal| panic!("{message:?}: {refusal:?}"))
}

/// How a name server answers what crossed.
pub fn answered(wanted: &Wanted, code: ResponseCode, fill: impl FnOnce(&mut Message)) -> Option<Answer> {
    Answer::read(&message(wanted, code, fill), 9, wanted)
}

pub fn message(wanted: &Wanted, code: ResponseCode, fill: impl FnOnce(&mut Message)) -> Vec<u8> {
    let asked = Message::from_vec(&wanted.to_message(9)).unwrap();
    let mut reply = Message::response(9, OpCode::Query);
    reply.metadata.response_code = code;
    reply.metadata.recursion_desired = true;
    reply.metadata.recursion_available = true;
    reply.add_queries(asked.queries.clone());
    reply.set_edns(Edns::default());
    fill(&mut reply);
    reply.to_vec().unwrap()
}

pub fn address(of: &str, ttl: u32, last: u8) -> Record {
    Record::from_rdata(name(of), ttl, RData::A(A::new(192, 0, 2, last)))
}

pub fn signature(of: &str, ttl: u32) -> Record {
    let data = NULL::with((0..96).collect());
    Record::from_rdata(name(of), ttl, RData::Unknown { code: RecordType::from(RRSIG), rdata: data })
}

pub fn soa(ttl: u32, minimum: u32) -> Record {
    let data = SOA::new(name("ns.test."), name("admin.test."), 1, 7200, 600, 86400, minimum);
    Record::from_rdata(name("test."), ttl, RData::SOA(data))
}

/// A question for an address and an answer that is good for this long.
pub fn held(of: &str, ttl: u32) -> (Wanted, std::sync::Arc<Answer>) {
    let wanted = read(&question(of, RecordType::A)).wanted;
    let answer = answered(&wanted, ResponseCode::NoError, |reply| {
        reply.add_answer(address(of, ttl, 7));
    });
    (wanted, answer.unwrap().into())
}
