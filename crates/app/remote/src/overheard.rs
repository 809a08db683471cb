//! Answers for names that pass as datagrams, between a client and a name server of its choice: the addresses that it is told lead to
//! what it asked for. An answer counts only to a question that was heard. No I/O.

use std::collections::VecDeque;

use farhop_dns::{Answer, Query};

/// Questions of a flow that wait for their answers: resolvers ask both kinds of address at once, each from a port of its own or not.
const MOST_WAITING: usize = 8;

/// See the module; of one flow.
#[derive(Default)]
pub(crate) struct Overheard(VecDeque<Query>);

impl Overheard {
    /// The client says this.
    pub(crate) fn said(&mut self, payload: &[u8]) {
        let Ok(query) = Query::read(payload) else { return };
        self.0.retain(|waiting| waiting.id != query.id);
        if self.0.len() == MOST_WAITING {
            self.0.pop_front();
        }
        self.0.push_back(query);
    }

    /// The name server says this: the name that was asked for, and the answer, where it is one.
    pub(crate) fn heard(&mut self, payload: &[u8]) -> Option<(String, Answer)> {
        let id = u16::from_be_bytes(*payload.first_chunk()?);
        let at = self.0.iter().position(|query| query.id == id)?;
        let query = &self.0[at];
        let answer = Answer::read(payload, id, &query.wanted)?;
        let name = query.wanted.name();
        self.0.remove(at);
        Some((name, answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_dns::Names;
    use std::net::IpAddr;
    use std::time::Duration;

    fn question(id: u8, name: u8) -> Vec<u8> {
        [&[0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, name][..], b"\x04test\0\0\x01\0\x01"].concat()
    }

    fn answer(question: &[u8], address: [u8; 4]) -> Vec<u8> {
        let mut message = question.to_vec();
        (message[2], message[7]) = (0x81, 1);
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        message.extend(address);
        message
    }

    #[test]
    fn an_answer_counts_once_and_only_to_a_question_that_was_heard() {
        let mut flow = Overheard::default();
        let asked = question(7, b'a');
        assert!(flow.heard(&answer(&asked, [192, 0, 2, 1])).is_none());
        flow.said(&asked);
        assert!(flow.heard(&answer(&question(7, b'b'), [192, 0, 2, 1])).is_none(), "another name");
        assert!(flow.heard(&answer(&question(8, b'a'), [192, 0, 2, 1])).is_none(), "another number");
        assert!(flow.heard(&[0]).is_none() && flow.heard(&[0, 7]).is_none());
        let (name, told) = flow.heard(&answer(&asked, [192, 0, 2, 1])).unwrap();
        let (mut names, at) = (Names::default(), IpAddr::from([192, 0, 2, 1]));
        names.tell(Duration::ZERO, None, &name, &told);
        assert_eq!(
            names.of(Duration::ZERO, None, at).map(|name| name.trim_end_matches('.')).collect::<Vec<_>>(),
            ["a.test"]
        );
        assert!(flow.heard(&answer(&asked, [192, 0, 2, 1])).is_none());
    }

    #[test]
    fn however_many_are_asked_few_are_kept() {
        let mut flow = Overheard::default();
        (0..100).for_each(|id| flow.said(&question(id, b'a')));
        assert_eq!(flow.0.len(), MOST_WAITING);
    }
}
