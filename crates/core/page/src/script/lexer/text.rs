//! What a lexer passes over as one: strings, templates, comments, regular expressions.

use super::{Before, Bracket, Lexer, MAX_TOKEN, State, Step};

impl Lexer {
    pub(super) fn string(&mut self, quote: u8) -> Step {
        let bytes = self.buffer.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        self.before = Before::Operand;
        loop {
            let found = memchr::memchr3(quote, b'\\', b'\n', &bytes[at..]);
            let end = found.map_or(bytes.len(), |found| at + found);
            if end - start > MAX_TOKEN {
                self.at = start;
                self.state = State::Long(quote);
                return Step::Again;
            }
            match bytes.get(end) {
                Some(b'\\') => at = end + 2,
                Some(&byte) => {
                    // A line break ends a string that lacks its quote.
                    self.at = end + 1;
                    return if byte == quote { Step::Text(start, end) } else { Step::Value };
                }
                None => return if self.ended { self.finish() } else { Step::Wait },
            }
            if at > bytes.len() {
                return if self.ended { self.finish() } else { Step::Wait };
            }
        }
    }

    fn finish(&mut self) -> Step {
        self.at = self.buffer.len();
        Step::Wait
    }

    pub(super) fn skip_string(&mut self, quote: u8) -> Step {
        let bytes = self.buffer.as_bytes();
        loop {
            let Some(found) = memchr::memchr3(quote, b'\\', b'\n', &bytes[self.at..]) else {
                return self.finish();
            };
            let at = self.at + found;
            if bytes[at] != b'\\' {
                self.at = at + 1;
                self.state = State::Code;
                return Step::Value;
            }
            if at + 1 >= bytes.len() {
                self.at = at;
                return if self.ended { self.finish() } else { Step::Wait };
            }
            self.at = after_escape(&self.buffer, at);
        }
    }

    /// A template that holds nothing but a little text is told as that; another one is skipped piece by piece.
    pub(super) fn whole_template(&mut self) -> Step {
        let bytes = self.buffer.as_bytes();
        let start = self.at;
        let mut at = start;
        while at < bytes.len() && at - start <= MAX_TOKEN {
            match bytes[at] {
                b'`' => {
                    self.at = at + 1;
                    self.before = Before::Operand;
                    return Step::Text(start, at);
                }
                b'\\' => at += 2,
                b'$' if bytes.get(at + 1) == Some(&b'{') => break,
                // What it is the next byte tells.
                b'$' if at + 1 == bytes.len() => {
                    at += 1;
                    break;
                }
                _ => at += 1,
            }
        }
        if at >= bytes.len() && at - start <= MAX_TOKEN && !self.ended {
            self.at -= 1; // its quote, to come back to
            return Step::Wait;
        }
        self.state = State::Template;
        Step::Again
    }

    pub(super) fn template(&mut self) -> Step {
        let bytes = self.buffer.as_bytes();
        loop {
            let Some(found) = memchr::memchr3(b'`', b'\\', b'$', &bytes[self.at..]) else {
                return self.finish();
            };
            let at = self.at + found;
            if bytes[at] == b'`' {
                self.at = at + 1;
                self.state = State::Code;
                self.before = Before::Operand;
                return Step::Value;
            }
            let Some(&next) = bytes.get(at + 1) else {
                self.at = at;
                return if self.ended { self.finish() } else { Step::Wait };
            };
            if bytes[at] == b'$' {
                self.at = at + 1;
                if next == b'{' {
                    self.at = at + 2;
                    self.state = State::Code;
                    self.before = Before::Operator;
                    self.push(Bracket::Substitution);
                    return Step::Value;
                }
            } else {
                self.at = after_escape(&self.buffer, at);
            }
        }
    }

    pub(super) fn skip_line(&mut self) -> Step {
        match memchr::memchr(b'\n', &self.buffer.as_bytes()[self.at..]) {
            Some(found) => {
                self.at += found + 1;
                self.state = State::Code;
                Step::Again
            }
            None => self.finish(),
        }
    }

    pub(super) fn skip_comment(&mut self) -> Step {
        let bytes = &self.buffer.as_bytes()[self.at..];
        match memchr::memmem::find(bytes, b"*/") {
            Some(found) => {
                self.at += found + 2;
                self.state = State::Code;
                Step::Again
            }
            None => {
                // Its `*` may be the last byte so far.
                let keep = usize::from(bytes.last() == Some(&b'*') && !self.ended);
                self.at = self.buffer.len() - keep;
                Step::Wait
            }
        }
    }

    pub(super) fn slash(&mut self) -> Step {
        let bytes = self.buffer.as_bytes();
        match bytes.get(self.at + 1) {
            None if !self.ended => return Step::Wait,
            Some(b'/') => {
                self.at += 2;
                self.state = State::LineComment;
                return Step::Again;
            }
            Some(b'*') => {
                self.at += 2;
                self.state = State::BlockComment;
                return Step::Again;
            }
            _ => {}
        }
        if self.before == Before::Operand {
            return self.mark(b'/');
        }
        let (mut at, mut class) = (self.at + 1, false);
        loop {
            match bytes.get(at) {
                None if at - self.at <= MAX_TOKEN && !self.ended => return Step::Wait,
                Some(b'\\') if bytes.get(at + 1).is_none_or(|byte| *byte != b'\n') => at += 1,
                Some(b'[') => class = true,
                Some(b']') => class = false,
                Some(b'/') if !class => break,
                // No regular expression after all.
                None | Some(b'\n' | b'\r' | b'\\') => return self.mark(b'/'),
                Some(_) => {}
            }
            at += 1;
            if at - self.at > MAX_TOKEN {
                return self.mark(b'/');
            }
        }
        self.at = at + 1;
        // Its flags are a word of their own, which ends an operand as well.
        self.before = Before::Operand;
        Step::Value
    }
}

/// Behind the escape that starts at `at` with its backslash and has at least one byte more.
fn after_escape(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at + 2)
}
