//! Cuts style sheets into rules and blocks into declarations, as CSS Syntax 3 ends them: brackets, strings, comments,
//! escapes and unquoted URLs told apart, nothing else understood.

/// Brackets open at once that are followed; a sheet that goes deeper is read no further.
const MAX_DEPTH: usize = 64;

/// One piece of a sheet or block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// Up to a semicolon or the end: a declaration, or an at-rule without a block.
    Statement(&'a str),
    /// `prelude { body }`.
    Block { prelude: &'a str, body: &'a str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Comment,
    String(u8),
    /// After `url(`: a quote decides whether a function or a bare URL begins.
    UrlStart,
    Url,
}

/// Where a cut is, in bytes of the text it was given.
#[derive(Debug)]
struct Scan {
    /// Everything before was looked at.
    at: usize,
    /// Where the current item starts.
    start: usize,
    /// The brace that opens the item's block.
    brace: Option<usize>,
    /// Closing brackets awaited, `depth` of them.
    open: [u8; MAX_DEPTH],
    depth: usize,
    mode: Mode,
    /// The items stand in a block, where a semicolon ends any of them; outside it ends only at-rules.
    in_block: bool,
    /// How the current item begins, once that mattered.
    beginning: Option<Beginning>,
    gave_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    AtRule,
    CustomProperty,
    Other,
}

/// Bytes that can change the state in plain text: anywhere, and within brackets.
static TELLING: [[bool; 256]; 2] = [table(b"{}()[];\"'\\/"), table(b"{}()[]\"'\\/")];

const fn table(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
}

impl Scan {
    fn new(in_block: bool) -> Self {
        Scan {
            at: 0,
            start: 0,
            brace: None,
            open: [0; MAX_DEPTH],
            depth: 0,
            mode: Mode::Plain,
            in_block,
            beginning: None,
            gave_up: false,
        }
    }

    /// The next item that `text` completes. With `last` the text ends there, which closes whatever is open.
    fn next<'a>(&mut self, text: &'a str, last: bool) -> Option<Item<'a>> {
        let bytes = text.as_bytes();
        while self.at < bytes.len() && !self.gave_up {
            let done = match self.mode {
                Mode::Plain => self.plain(text, last)?,
                Mode::Comment => self.comment(bytes, last)?,
                Mode::String(quote) => self.string(bytes, quote, last)?,
                Mode::UrlStart => self.url_start(bytes),
                Mode::Url => self.url(bytes, last)?,
            };
            if let Some(end) = done {
                let item = self.item(text, end);
                self.start = self.at;
                self.brace = None;
                self.beginning = None;
                return Some(item);
            }
        }
        if !last || self.gave_up || self.start >= bytes.len() {
            return None;
        }
        let item = self.item(text, bytes.len());
        self.start = bytes.len();
        self.brace = None;
        Some(item)
    }

    /// Moves what is before the current item out of the text; returns its length.
    fn forget(&mut self) -> usize {
        let done = std::mem::take(&mut self.start);
        self.at -= done;
        self.brace = self.brace.map(|brace| brace - done);
        done
    }

    fn item<'a>(&self, text: &'a str, end: usize) -> Item<'a> {
        match self.brace {
            Some(brace) => Item::Block { prelude: &text[self.start..brace], body: &text[brace + 1..end] },
            None => Item::Statement(&text[self.start..end]),
        }
    }

    /// `Some(Some(end))` at the end of an item, `None` when more text is needed.
    fn plain(&mut self, text: &str, last: bool) -> Option<Option<usize>> {
        let bytes = text.as_bytes();
        let telling = &TELLING[usize::from(self.depth > 0)];
        let Some(skip) = bytes[self.at..].iter().position(|&byte| telling[usize::from(byte)]) else {
            self.at = bytes.len();
            return Some(None);
        };
        let at = self.at + skip;
        self.at = at;
        match bytes[at] {
            b'/' => match bytes.get(at + 1) {
                Some(b'*') => {
                    self.mode = Mode::Comment;
                    self.at += 1;
                }
                None if !last => return None,
                _ => {}
            },
            b'\\' => {
                if at + 1 >= bytes.len() && !last {
                    return None;
                }
                self.at += 1;
            }
            quote @ (b'"' | b'\'') => self.mode = Mode::String(quote),
            b'(' if names_url(&bytes[self.start..at]) => self.mode = Mode::UrlStart,
            b'(' => self.push(b')'),
            b'[' => self.push(b']'),
            b'{' => {
                // Braces are part of a custom property's value.
                if self.depth == 0 && !(self.in_block && self.beginning(text) == Beginning::CustomProperty) {
                    self.brace = Some(at);
                }
                self.push(b'}');
            }
            b';' if self.depth == 0 && (self.in_block || self.beginning(text) == Beginning::AtRule) => {
                self.at = at + 1;
                return Some(Some(at));
            }
            closing @ (b'}' | b')' | b']') if self.depth > 0 && self.open[self.depth - 1] == closing => {
                self.depth -= 1;
                if self.depth == 0 && self.brace.is_some() {
                    self.at = at + 1;
                    return Some(Some(at));
                }
            }
            _ => {}
        }
        self.at = (self.at + 1).min(bytes.len());
        Some(None)
    }

    fn beginning(&mut self, text: &str) -> Beginning {
        *self.beginning.get_or_insert_with(|| match trim_start(&text[self.start..self.at]) {
            at_rule if at_rule.starts_with('@') => Beginning::AtRule,
            custom if custom.starts_with("--") => Beginning::CustomProperty,
            _ => Beginning::Other,
        })
    }

    fn push(&mut self, closing: u8) {
        match self.open.get_mut(self.depth) {
            Some(place) => {
                *place = closing;
                self.depth += 1;
            }
            None => self.gave_up = true,
        }
    }

    fn comment(&mut self, bytes: &[u8], last: bool) -> Option<Option<usize>> {
        match bytes[self.at..].iter().position(|&byte| byte == b'*') {
            None => self.at = bytes.len(),
            Some(skip) => {
                self.at += skip;
                match bytes.get(self.at + 1) {
                    Some(b'/') => {
                        self.at += 2;
                        self.mode = Mode::Plain;
                    }
                    None if !last => return None,
                    _ => self.at += 1,
                }
            }
        }
        Some(None)
    }

    fn string(&mut self, bytes: &[u8], quote: u8, last: bool) -> Option<Option<usize>> {
        // A newline ends a string that was never closed (CSS Syntax 3, §4.3.5).
        self.plain_after(|byte| byte == quote || matches!(byte, b'\n' | b'\r' | b'\x0c'), bytes, last)
    }

    fn url_start(&mut self, bytes: &[u8]) -> Option<usize> {
        match bytes[self.at] {
            byte if byte.is_ascii_whitespace() => self.at += 1,
            b'"' | b'\'' => {
                self.mode = Mode::Plain;
                self.push(b')');
            }
            _ => self.mode = Mode::Url,
        }
        None
    }

    fn url(&mut self, bytes: &[u8], last: bool) -> Option<Option<usize>> {
        self.plain_after(|byte| byte == b')', bytes, last)
    }

    /// Skips to behind the byte that ends the mode; what is escaped does not.
    fn plain_after(&mut self, ends: impl Fn(u8) -> bool, bytes: &[u8], last: bool) -> Option<Option<usize>> {
        match bytes[self.at..].iter().position(|&byte| byte == b'\\' || ends(byte)) {
            None => self.at = bytes.len(),
            Some(skip) => {
                self.at += skip;
                if bytes[self.at] == b'\\' {
                    return self.escape(bytes, last);
                }
                self.mode = Mode::Plain;
                self.at += 1;
            }
        }
        Some(None)
    }

    /// Skips a backslash and the byte after it, once that is there.
    fn escape(&mut self, bytes: &[u8], last: bool) -> Option<Option<usize>> {
        if self.at + 1 >= bytes.len() && !last {
            return None;
        }
        self.at = (self.at + 2).min(bytes.len());
        Some(None)
    }
}

/// Whether `before`, which ends at a parenthesis, ends with the function name `url`.
fn names_url(before: &[u8]) -> bool {
    let Some(start) = before.len().checked_sub(3) else { return false };
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte >= 0x80 || matches!(byte, b'-' | b'_');
    before[start..].eq_ignore_ascii_case(b"url") && !(start > 0 && in_name(before[start - 1]))
}

/// Cuts a sheet that arrives in pieces into its top-level rules. Holds only the rule that is not complete yet.
#[derive(Debug)]
pub(super) struct Cutter {
    text: String,
    scan: Scan,
}

impl Cutter {
    pub(super) fn new() -> Self {
        Cutter { text: String::new(), scan: Scan::new(false) }
    }

    /// Takes the next piece of the sheet; [`next`](Cutter::next) gives the rules that it completes.
    pub(super) fn push(&mut self, text: &str) {
        if self.scan.gave_up {
            return;
        }
        self.text.drain(..self.scan.forget());
        self.text.push_str(text);
    }

    /// The next complete rule; with `last` also what the end of the sheet closes.
    pub(super) fn next(&mut self, last: bool) -> Option<Item<'_>> {
        self.scan.next(&self.text, last)
    }
}

/// The items of a block.
pub(super) fn items(body: &str) -> impl Iterator<Item = Item<'_>> {
    let mut scan = Scan::new(true);
    std::iter::from_fn(move || scan.next(body, true))
}

/// `text` without whitespace and comments in front.
pub(super) fn trim_start(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        match text.strip_prefix("/*") {
            None => return text,
            Some(comment) => match comment.split_once("*/") {
                None => return "",
                Some((_, rest)) => text = rest,
            },
        }
    }
}

/// Where the parenthesis that opens at `open` closes; the end of `text` if it does not.
pub(super) fn closing(text: &str, open: usize) -> usize {
    let mut depth = 0_u32;
    let mut quote = None;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match (byte, quote) {
            _ if escaped => escaped = false,
            (b'\\', _) => escaped = true,
            (byte, Some(own)) if byte == own => quote = None,
            (_, Some(_)) => {}
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'(', None) => depth += 1,
            (b')', None) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(sheet: &str, size: usize) -> Vec<String> {
        let mut cutter = Cutter::new();
        let mut found = Vec::new();
        let mut take = |cutter: &mut Cutter, last| {
            while let Some(item) = cutter.next(last) {
                found.push(match item {
                    Item::Statement(text) => text.trim().to_owned(),
                    Item::Block { prelude, body } => format!("{}|{}", prelude.trim(), body.trim()),
                });
            }
        };
        let characters: Vec<char> = sheet.chars().collect();
        for piece in characters.chunks(size) {
            cutter.push(&piece.iter().collect::<String>());
            take(&mut cutter, false);
        }
        take(&mut cutter, true);
        found.retain(|item| !item.is_empty());
        found
    }

    #[test]
    fn rules_end_where_the_syntax_says_in_any_chunking() {
        let cases: &[(&str, &[&str])] = &[
            ("a{b:c}d{e:f}", &["a|b:c", "d|e:f"]),
            ("@import 'x;y';a{}", &["@import 'x;y'", "a|"]),
            ("@media x{a{b:c}}d{}", &["@media x|a{b:c}", "d|"]),
            ("a{b:'}'}c{}", &["a|b:'}'", "c|"]),
            ("a{b:\"\\\"}\"}c{}", &["a|b:\"\\\"}\"", "c|"]),
            ("a{/* } */b:c}d{}", &["a|/* } */b:c", "d|"]),
            ("/*/ a{ /*/b{}", &["/*/ a{ /*/b|"]),
            ("a{b:url(data:x;}'\"{)}c{}", &["a|b:url(data:x;}'\"{)", "c|"]),
            ("a{b:url( ';)' )}c{}", &["a|b:url( ';)' )", "c|"]),
            ("a{b:curl({)})}c{}", &["a|b:curl({)})", "c|"]),
            ("a{b:url(x\\)})}c{}", &["a|b:url(x\\)})", "c|"]),
            ("a\\{{b:c}d{}", &["a\\{|b:c", "d|"]),
            ("a{};b{}c{}", &["a|", ";b|", "c|"]),
            ("a{b:c", &["a|b:c"]),
            ("a{b:'x\n}c{}", &["a|b:'x", "c|"]),
            ("a[b='{']{}c{}", &["a[b='{']|", "c|"]),
            ("ä{ö:ü}é{}", &["ä|ö:ü", "é|"]),
            ("/*a*/@import 'x'; /*;*/ b{}", &["/*a*/@import 'x'", "/*;*/ b|"]),
            ("a{}/", &["a|", "/"]),
            ("a{}\\", &["a|", "\\"]),
        ];
        for (sheet, expected) in cases {
            for size in [1, 2, 3, 5, 1000] {
                assert_eq!(cut(sheet, size), *expected, "{sheet:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn blocks_give_declarations_and_nested_rules() {
        let body = "a:b;--c:{d;e};&:hover{f:g}h:url(;i);j:k";
        let found: Vec<Item<'_>> = items(body).collect();
        assert_eq!(
            found,
            [
                Item::Statement("a:b"),
                Item::Statement("--c:{d;e}"),
                Item::Block { prelude: "&:hover", body: "f:g" },
                Item::Statement("h:url(;i)"),
                Item::Statement("j:k"),
            ]
        );
    }

    #[test]
    fn endless_nesting_ends_the_sheet() {
        assert_eq!(cut(&format!("a{{}}{}", "b{".repeat(100_000)), 4096), ["a|"]);
    }
}
