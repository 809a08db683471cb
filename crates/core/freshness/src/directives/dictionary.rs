//! Dictionaries of structured fields (RFC 9651 §3.2, §4.2.2), read as strictly as it is written there: what is wrong anywhere
//! is no dictionary. Parameters are read and left out.

/// Longest field that is read.
const LONGEST: usize = 8 * 1_024;

/// Of a member of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Boolean(bool),
    Integer(i64),
    String(String),
    Token(String),
    /// Of another type: no directive has such a value.
    Other,
}

/// The members in order, each name once, with the last value that it has.
pub(super) fn read(text: &str) -> Option<Vec<(String, Value)>> {
    if text.len() > LONGEST || !text.is_ascii() {
        return None;
    }
    Reader(text.as_bytes()).dictionary()
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn dictionary(mut self) -> Option<Vec<(String, Value)>> {
        let mut members: Vec<(String, Value)> = Vec::new();
        self.skip(b" ");
        while !self.0.is_empty() {
            let name = self.key()?;
            let value = match self.take(b'=') {
                true if self.peek() == Some(b'(') => self.inner_list()?,
                true => self.item()?,
                false => Value::Boolean(true),
            };
            self.parameters()?;
            match members.iter_mut().find(|(known, _)| *known == name) {
                Some((_, earlier)) => *earlier = value,
                None => members.push((name, value)),
            }
            self.skip(b" \t");
            if self.0.is_empty() {
                break;
            }
            // A comma has to be followed by another member.
            if !self.take(b',') {
                return None;
            }
            self.skip(b" \t");
            self.peek()?;
        }
        Some(members)
    }

    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_it = self.peek() == Some(wanted);
        if is_it {
            self.next();
        }
        is_it
    }

    fn skip(&mut self, spaces: &[u8]) {
        self.run(|byte| spaces.contains(&byte));
    }

    fn run(&mut self, is_of: impl Fn(u8) -> bool) -> &str {
        let length = self.0.iter().take_while(|byte| is_of(**byte)).count();
        let (run, rest) = self.0.split_at(length);
        self.0 = rest;
        // All of it is ASCII.
        str::from_utf8(run).unwrap_or_default()
    }

    /// RFC 9651 §4.2.3.3.
    fn key(&mut self) -> Option<String> {
        let begins = self.peek().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'*');
        let is_of = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte);
        begins.then(|| self.run(is_of).to_owned())
    }

    /// RFC 9651 §4.2.1.2.
    fn inner_list(&mut self) -> Option<Value> {
        self.take(b'(');
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Some(Value::Other);
            }
            self.item()?;
            self.parameters()?;
            if !matches!(self.peek()?, b' ' | b')') {
                return None;
            }
        }
    }

    /// RFC 9651 §4.2.3.2.
    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(b" ");
            self.key()?;
            if self.take(b'=') {
                self.item()?;
            }
        }
        Some(())
    }

    /// An item without its parameters (RFC 9651 §4.2.3.1).
    fn item(&mut self) -> Option<Value> {
        match self.peek()? {
            b'"' => self.string().map(Value::String),
            b'?' => {
                self.next();
                match self.next()? {
                    b'0' => Some(Value::Boolean(false)),
                    b'1' => Some(Value::Boolean(true)),
                    _ => None,
                }
            }
            b':' => self.bytes(),
            b'@' => {
                self.next();
                matches!(self.number()?, Value::Integer(_)).then_some(Value::Other)
            }
            b'%' => self.display_string(),
            byte if byte == b'-' || byte.is_ascii_digit() => self.number(),
            byte if byte.is_ascii_alphabetic() || byte == b'*' => {
                let is_of = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
                Some(Value::Token(self.run(is_of).to_owned()))
            }
            _ => None,
        }
    }

    /// RFC 9651 §4.2.4: an integer of 15 digits at most, or a decimal of 12 before the point and 3 behind it.
    fn number(&mut self) -> Option<Value> {
        let sign = if self.take(b'-') { -1 } else { 1 };
        let whole = self.run(|byte| byte.is_ascii_digit()).to_owned();
        if whole.is_empty() {
            return None;
        }
        if self.take(b'.') {
            let behind = self.run(|byte| byte.is_ascii_digit()).len();
            return (whole.len() <= 12 && (1..=3).contains(&behind)).then_some(Value::Other);
        }
        let number = whole.parse::<i64>().ok().filter(|_| whole.len() <= 15)?;
        Some(Value::Integer(sign * number))
    }

    /// RFC 9651 §4.2.5.
    fn string(&mut self) -> Option<String> {
        self.take(b'"');
        let mut text = String::new();
        loop {
            match self.next()? {
                b'"' => return Some(text),
                b'\\' => text.push(char::from(self.next().filter(|byte| b"\"\\".contains(byte))?)),
                byte @ b' '..=b'~' => text.push(char::from(byte)),
                _ => return None,
            }
        }
    }

    /// RFC 9651 §4.2.7.
    fn bytes(&mut self) -> Option<Value> {
        self.take(b':');
        self.run(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        self.take(b':').then_some(Value::Other)
    }

    /// RFC 9651 §4.2.10.
    fn display_string(&mut self) -> Option<Value> {
        self.take(b'%');
        if !self.take(b'"') {
            return None;
        }
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                b'"' => return str::from_utf8(&bytes).ok().map(|_| Value::Other),
                b'%' => {
                    let mut digit = || match self.next()? {
                        byte @ b'0'..=b'9' => Some(byte - b'0'),
                        byte @ b'a'..=b'f' => Some(byte - b'a' + 10),
                        _ => None,
                    };
                    bytes.push((digit()? << 4) | digit()?);
                }
                byte @ b' '..=b'~' => bytes.push(byte),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Option<Value> {
        match read(text)?.as_slice() {
            [(name, value)] if name == "a" => Some(value.clone()),
            _ => None,
        }
    }

    #[test]
    fn members_have_the_types_that_they_are_written_in() {
        let text = |text: &str| text.to_owned();
        for (field, expected) in [
            ("a", Value::Boolean(true)),
            ("a;b=1;c", Value::Boolean(true)),
            ("a=?0", Value::Boolean(false)),
            ("a=60", Value::Integer(60)),
            ("a=-999999999999999", Value::Integer(-999_999_999_999_999)),
            ("a=1.500", Value::Other),
            ("a=\"x \\\"\\\\\"", Value::String(text("x \"\\"))),
            ("a=x-b/c", Value::Token(text("x-b/c"))),
            ("a=*", Value::Token(text("*"))),
            ("a=:aGk=:", Value::Other),
            ("a=@1659578233", Value::Other),
            ("a=%\"f%c3%bc\"", Value::Other),
            ("a=( 1 \"b\";p  c )", Value::Other),
            ("a=()", Value::Other),
            ("  a=1;p=\"q\"  ", Value::Integer(1)),
            ("a=1, a=2", Value::Integer(2)),
        ] {
            assert_eq!(one(field), Some(expected), "{field}");
        }
        let several = read("b=2 ,\t*c, a=1").unwrap();
        assert_eq!(several.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b", "*c", "a"]);
        assert_eq!(read(""), Some(vec![]));
    }

    #[test]
    fn what_is_wrong_anywhere_is_no_dictionary() {
        for field in [
            "a,",
            ",a",
            "a,,b",
            "a b",
            "a =1",
            "a= 1",
            "A=1",
            "a=",
            "a=1.",
            "a=1.2345",
            "a=-",
            "a=1234567890123456",
            "a=1234567890123.1",
            "a=?2",
            "a=?",
            "a=\"x",
            "a=\"\\x\"",
            "a=:a*:",
            "a=:aa",
            "a=@1.5",
            "a=%\"%C3\"",
            "a=%\"%c3\"",
            "a=%x",
            "a=(1",
            "a=(1,2)",
            "a=(1\"b\")",
            "a;=1",
            "a;B",
            "a=é",
            "&&&&&",
            "1=a",
            "a=1;",
        ] {
            assert_eq!(read(field), None, "{field}");
        }
        assert_eq!(read(&format!("a=\"{}\"", "x".repeat(LONGEST))), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_dictionary_or_none(parts in proptest::collection::vec("[a-z*]{1,3}|=|\"|\\(|\\)|,| |;|\\\\|:|%|@|\\?|[0-9.-]{1,4}", 0..20), any in "\\PC{0,40}") {
            let _ = read(&parts.concat());
            let _ = read(&any);
        }
    }
}
