//! As much of XML as a manifest needs: elements with their attributes and where they stand. What could mean something else to a
//! whole parser (entities of its own, another encoding, tags that do not match) is an error.

/// Elements within elements.
const DEEPEST: usize = 32;

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// An element begins; `closed` where it ends at once. With where its tag begins and ends.
    Start { name: &'a str, attributes: Vec<(&'a str, &'a str)>, closed: bool, from: usize, to: usize },
    /// It ends; with where its last tag ends.
    End { name: &'a str, to: usize },
    /// What stands between, as it is written.
    Text(&'a str),
}

/// It is no XML, or more than is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotXml;

pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    open: Vec<&'a str>,
    done: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Reader<'a> {
        // XML 1.0 allows the mark.
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Reader { text, at, open: Vec::new(), done: false }
    }

    /// The next event; none at the end of the document.
    pub(crate) fn next(&mut self) -> Result<Option<Event<'a>>, NotXml> {
        loop {
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                return if self.open.is_empty() && self.done { Ok(None) } else { Err(NotXml) };
            }
            if let Some(comment) = rest.strip_prefix("<!--") {
                self.at += 4 + comment.find("-->").ok_or(NotXml)? + 3;
            } else if let Some(data) = rest.strip_prefix("<![CDATA[") {
                let end = data.find("]]>").ok_or(NotXml)?;
                self.at += 9 + end + 3;
                if self.open.is_empty() {
                    return Err(NotXml);
                }
                return Ok(Some(Event::Text(&data[..end])));
            } else if let Some(instruction) = rest.strip_prefix("<?") {
                let end = instruction.find("?>").ok_or(NotXml)?;
                let is_declaration = instruction.starts_with("xml ");
                if is_declaration && !is_utf8(&instruction[..end]) {
                    return Err(NotXml);
                }
                self.at += 2 + end + 2;
            } else if rest.starts_with("<!") {
                return Err(NotXml);
            } else if let Some(tag) = rest.strip_prefix("</") {
                let end = tag.find('>').ok_or(NotXml)?;
                let name = tag[..end].trim_end();
                if self.open.pop() != Some(name) {
                    return Err(NotXml);
                }
                self.at += 2 + end + 1;
                self.done |= self.open.is_empty();
                return Ok(Some(Event::End { name: local(name), to: self.at }));
            } else if let Some(tag) = rest.strip_prefix('<') {
                return self.start(tag).map(Some);
            } else {
                let end = rest.find('<').unwrap_or(rest.len());
                self.at += end;
                let text = &rest[..end];
                if self.open.is_empty() {
                    if text.trim().is_empty() { continue } else { return Err(NotXml) }
                }
                return Ok(Some(Event::Text(text)));
            }
        }
    }

    fn start(&mut self, tag: &'a str) -> Result<Event<'a>, NotXml> {
        let from = self.at;
        if (self.open.is_empty() && self.done) || self.open.len() >= DEEPEST {
            return Err(NotXml);
        }
        let end = tag.find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/').ok_or(NotXml)?;
        let (full, mut rest) = tag.split_at(end);
        if full.is_empty() || full.contains(['<', '"', '\'', '=', '&']) {
            return Err(NotXml);
        }
        let mut attributes = Vec::new();
        loop {
            let trimmed = rest.trim_start();
            let closed = trimmed.starts_with("/>");
            if closed || trimmed.starts_with('>') {
                self.at = self.text.len() - trimmed.len() + if closed { 2 } else { 1 };
                if !closed {
                    self.open.push(full);
                } else if self.open.is_empty() {
                    self.done = true;
                }
                return Ok(Event::Start { name: local(full), attributes, closed, from, to: self.at });
            }
            if trimmed.len() == rest.len() {
                return Err(NotXml);
            }
            let (name, value) = trimmed.split_once('=').ok_or(NotXml)?;
            let name = name.trim_end();
            if name.is_empty() || name.contains(['<', '>', '"', '\'', '/', ' ', '\t', '\r', '\n']) {
                return Err(NotXml);
            }
            let value = value.trim_start();
            let quote = value.chars().next().filter(|it| matches!(it, '"' | '\'')).ok_or(NotXml)?;
            let (value, after) = value[1..].split_once(quote).ok_or(NotXml)?;
            if value.contains('<') || attributes.iter().any(|(other, _)| *other == name) {
                return Err(NotXml);
            }
            attributes.push((name, value));
            rest = after;
        }
    }
}

/// A name without its namespace's prefix.
fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

fn is_utf8(declaration: &str) -> bool {
    let declaration = declaration.to_ascii_lowercase();
    declaration
        .split_once("encoding")
        .is_none_or(|(_, encoding)| encoding.contains("utf-8") || encoding.contains("us-ascii"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Event<'_>>, NotXml> {
        let (mut reader, mut events) = (Reader::new(text), Vec::new());
        while let Some(event) = reader.next()? {
            events.push(event);
        }
        Ok(events)
    }

    #[test]
    fn elements_come_with_their_attributes_and_places() {
        let text = "<?xml version='1.0' encoding=\"UTF-8\"?>\n<a:b c = 'd>' e=\"\"><!-- <x> --><f/>g<![CDATA[<h>]]></a:b >\n";
        let (root, leaf) = (text.find("<a:b").unwrap(), text.find("<f/>").unwrap());
        assert_eq!(
            all(text).unwrap(),
            [
                Event::Start {
                    name: "b",
                    attributes: vec![("c", "d>"), ("e", "")],
                    closed: false,
                    from: root,
                    to: text.find("<!--").unwrap()
                },
                Event::Start { name: "f", attributes: vec![], closed: true, from: leaf, to: leaf + 4 },
                Event::Text("g"),
                Event::Text("<h>"),
                Event::End { name: "b", to: text.len() - 1 },
            ]
        );
    }

    #[test]
    fn what_a_whole_parser_may_read_otherwise_is_none() {
        for text in [
            "",
            "a",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a/>b",
            "<a b=c/>",
            "<a b='c'd='e'/>",
            "<a b='1' b='2'/>",
            "<a b='<'/>",
            "<!DOCTYPE a><a/>",
            "<?xml version='1.0' encoding='utf-16'?><a/>",
            "<a",
            "<a b='",
            "<!-- <a/>",
        ] {
            assert_eq!(all(text), Err(NotXml), "{text}");
        }
        assert_eq!(all(&"<a>".repeat(100)), Err(NotXml));
    }
}
