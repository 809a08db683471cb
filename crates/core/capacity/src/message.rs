//! The datagrams: one line of ASCII each, as docs/capacity.md has them.

use std::fmt;
use std::str::FromStr;

/// No datagram is longer.
pub const LONGEST: usize = 200;

/// The version that stands first.
const VERSION: &str = "CAPACITY/1";

/// What will have to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// The answer has the same.
    pub number: u32,
    /// So many bytes of IP packets are to be sent soon that have not been handed over yet, in place of what was said before.
    pub bytes: u64,
    /// By which terminal, counted from 0: for a centre that serves several. A modem speaks for itself.
    pub terminal: Option<u16>,
}

/// What is asked of a modem or a centre.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// What will have to be sent.
    Expect(Expect),
    /// What a terminal is given now.
    Tell(Tell),
}

/// What a terminal is given now is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tell {
    /// The answer has the same.
    pub number: u32,
    /// Which terminal, counted from 0: for a centre that serves several. A modem tells of itself.
    pub terminal: Option<u16>,
}

/// What the modem or centre says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is taken into account.
    Noted {
        /// Of the question.
        number: u32,
    },
    /// What the terminal was given over the last control round.
    Granted {
        /// Of the question.
        number: u32,
        /// In bits/s of IP packets.
        rate: u64,
    },
    /// It is not, nor will be for a while.
    Refused {
        /// Of the question.
        number: u32,
        /// Why, in words.
        reason: String,
    },
}

/// Why a datagram is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Too long, or no text.
    #[error("no line of at most {LONGEST} ASCII characters")]
    Form,
    /// Of another version, or of something else.
    #[error("it does not begin with {VERSION}")]
    Version,
    /// Of this version and not understood.
    #[error("not understood")]
    Words,
}

/// The words after the version.
fn words(datagram: &[u8]) -> Result<std::str::SplitN<'_, char>, MessageError> {
    let text = std::str::from_utf8(datagram).map_err(|_| MessageError::Form)?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    if datagram.len() > LONGEST || !line.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(MessageError::Form);
    }
    let mut words = line.splitn(4, ' ');
    if words.next() != Some(VERSION) {
        return Err(MessageError::Version);
    }
    Ok(words)
}

/// A number without sign, blanks or leading zeros.
fn number<T: FromStr>(word: &str) -> Result<T, MessageError> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    if plain { word.parse().map_err(|_| MessageError::Words) } else { Err(MessageError::Words) }
}

impl Expect {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(datagram: &[u8]) -> Result<Self, MessageError> {
        let mut words = words(datagram)?;
        let (Some("EXPECT"), Some(at), Some(rest)) = (words.next(), words.next(), words.next()) else {
            return Err(MessageError::Words);
        };
        let (bytes, terminal) = match rest.split_once(' ') {
            None => (rest, None),
            Some((bytes, terminal)) => (bytes, Some(number(terminal)?)),
        };
        Ok(Expect { number: number(at)?, bytes: number(bytes)?, terminal })
    }
}

impl Tell {
    fn parse(datagram: &[u8]) -> Result<Self, MessageError> {
        let mut words = words(datagram)?;
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("TELL"), Some(at), terminal, None) => {
                Ok(Tell { number: number(at)?, terminal: terminal.map(number).transpose()? })
            }
            _ => Err(MessageError::Words),
        }
    }
}

impl Question {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(datagram: &[u8]) -> Result<Self, MessageError> {
        Expect::parse(datagram).map(Question::Expect).or_else(|_| Tell::parse(datagram).map(Question::Tell))
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        match self {
            Question::Expect(expect) => expect.number,
            Question::Tell(tell) => tell.number,
        }
    }

    /// Of which terminal it is.
    pub fn terminal(&self) -> Option<u16> {
        match self {
            Question::Expect(expect) => expect.terminal,
            Question::Tell(tell) => tell.terminal,
        }
    }
}

impl fmt::Display for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION} TELL {}", self.number)?;
        match self.terminal {
            Some(terminal) => writeln!(f, " {terminal}"),
            None => writeln!(f),
        }
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION} EXPECT {} {}", self.number, self.bytes)?;
        match self.terminal {
            Some(terminal) => writeln!(f, " {terminal}"),
            None => writeln!(f),
        }
    }
}

impl Answer {
    /// Of which question.
    pub fn number(&self) -> u32 {
        match self {
            Answer::Noted { number } | Answer::Granted { number, .. } | Answer::Refused { number, .. } => {
                *number
            }
        }
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(datagram: &[u8]) -> Result<Self, MessageError> {
        let mut words = words(datagram)?;
        match (words.next(), words.next(), words.next()) {
            (Some("NOTED"), Some(at), None) => Ok(Answer::Noted { number: number(at)? }),
            (Some("GRANTED"), Some(at), Some(rate)) => {
                Ok(Answer::Granted { number: number(at)?, rate: number(rate)? })
            }
            (Some("REFUSED"), Some(at), Some(reason)) if !reason.is_empty() => {
                Ok(Answer::Refused { number: number(at)?, reason: reason.to_owned() })
            }
            _ => Err(MessageError::Words),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Noted { number } => writeln!(f, "{VERSION} NOTED {number}"),
            Answer::Granted { number, rate } => writeln!(f, "{VERSION} GRANTED {number} {rate}"),
            Answer::Refused { number, reason } => writeln!(f, "{VERSION} REFUSED {number} {reason}"),
        }
    }
}

/// Entry of the fuzzer: what is understood is written as it was read.
///
/// # Panics
/// It is not.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let line = |text: String| text.trim_end_matches('\n').as_bytes().to_vec();
    let said = data.strip_suffix(b"\n").unwrap_or(data);
    match Question::parse(data) {
        Ok(Question::Expect(expect)) => assert_eq!(line(expect.to_string()), said),
        Ok(Question::Tell(tell)) => assert_eq!(line(tell.to_string()), said),
        Err(_) => {}
    }
    if let Ok(answer) = Answer::parse(data) {
        assert_eq!(line(answer.to_string()), said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_datagrams_are_those_of_the_document() {
        let modem = Expect { number: 7, bytes: 12_000, terminal: None };
        assert_eq!(modem.to_string(), "CAPACITY/1 EXPECT 7 12000\n");
        let centre = Expect { number: 8, bytes: 0, terminal: Some(3) };
        assert_eq!(centre.to_string(), "CAPACITY/1 EXPECT 8 0 3\n");
        assert_eq!(Answer::Noted { number: 7 }.to_string(), "CAPACITY/1 NOTED 7\n");
        let tell = Tell { number: 9, terminal: None };
        assert_eq!(tell.to_string(), "CAPACITY/1 TELL 9\n");
        assert_eq!(
            Question::parse(b"CAPACITY/1 TELL 9 3"),
            Ok(Question::Tell(Tell { terminal: Some(3), ..tell }))
        );
        let granted = Answer::Granted { number: 9, rate: 256_000 };
        assert_eq!(granted.to_string(), "CAPACITY/1 GRANTED 9 256000\n");
        let refused = Answer::Refused { number: 8, reason: "no terminal 3".into() };
        assert_eq!(refused.to_string(), "CAPACITY/1 REFUSED 8 no terminal 3\n");
        assert_eq!(Answer::parse(b"CAPACITY/1 REFUSED 8 no terminal 3\n"), Ok(refused));
    }

    #[test]
    fn what_is_something_else_is_refused() {
        let refused = |text: &str| Question::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refused(""), MessageError::Version);
        assert_eq!(refused("CAPACITY/2 EXPECT 1 1"), MessageError::Version);
        assert_eq!(refused("CAPACITY/1 EXPECT 1 1\nCAPACITY/1 EXPECT 2 2\n"), MessageError::Form);
        assert_eq!(refused(&format!("CAPACITY/1 EXPECT 1 {}", "1".repeat(200))), MessageError::Form);
        for text in [
            "EXPECT 1",
            "EXPECT 1 -1",
            "EXPECT +1 1",
            "EXPECT 01 1",
            "EXPECT 1 1 70000",
            "NOTED 1",
            "EXPECT 1 1 1 1",
            "TELL",
            "TELL 1 1 1",
            "TELL 1 70000",
        ] {
            assert_eq!(refused(&format!("CAPACITY/1 {text}")), MessageError::Words, "{text}");
        }
        assert_eq!(Answer::parse(b"CAPACITY/1 NOTED 1 2"), Err(MessageError::Words));
        assert_eq!(Answer::parse(b"CAPACITY/1 REFUSED 1"), Err(MessageError::Words));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(at: u32, bytes: u64, terminal: Option<u16>, reason in "[!-~][ -~]{0,60}") {
            let expect = Expect { number: at, bytes, terminal };
            prop_assert_eq!(Expect::parse(expect.to_string().as_bytes()), Ok(expect));
            let tell = Tell { number: at, terminal };
            prop_assert_eq!(Question::parse(tell.to_string().as_bytes()), Ok(Question::Tell(tell)));
            for answer in [Answer::Noted { number: at }, Answer::Granted { number: at, rate: bytes }, Answer::Refused { number: at, reason }] {
                prop_assert_eq!(Answer::parse(answer.to_string().as_bytes()), Ok(answer));
            }
        }

        #[test]
        fn anything_else_is_refused_without_harm(data: Vec<u8>) {
            fuzz(&data);
        }
    }
}
