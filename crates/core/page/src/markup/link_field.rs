//! `Link` response fields (RFC 8288) of a document or of its 103 Early Hints, read like `<link>` elements.

use super::Markup;
use super::attributes::Attributes;
use crate::context::Context;
use url::Url;

/// Entries of one field that are read; more are ignored.
const MAX_ENTRIES: usize = 128;

/// Takes in one `Link` field value, of a 103 response if `early`. Malformed entries give nothing.
pub(crate) fn read(value: &str, early: bool, markup: &mut Markup, context: &mut Context) {
    for entry in entries(value).into_iter().take(MAX_ENTRIES) {
        // RFC 8288 §3.2: a link with another anchor is not about this document.
        let elsewhere = entry.value("anchor").is_some_and(|anchor| {
            context.document.join(anchor).map_or(true, |target| !same_page(&target, &context.document))
        });
        if !elsewhere {
            markup.link_field(&entry, early, context);
        }
    }
}

fn same_page(a: &Url, b: &Url) -> bool {
    let bare = |url: &Url| {
        let mut url = url.clone();
        url.set_fragment(None);
        url
    };
    bare(a) == bare(b)
}

/// One link: its target as `href` and its parameters.
struct Entry {
    parameters: Vec<(String, String)>,
}

impl Attributes for Entry {
    fn value(&self, name: &str) -> Option<&str> {
        // RFC 8288 §3: the first occurrence of a parameter counts.
        self.parameters.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// RFC 8288, appendix B.2.
fn entries(value: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some(start) = rest.find('<') {
        // Only blanks and commas may stand between links.
        if rest[..start].contains(|c: char| !matches!(c, ' ' | '\t' | ',')) {
            break;
        }
        let Some(end) = rest[start..].find('>') else { break };
        let mut parameters = vec![("href".to_owned(), rest[start + 1..start + end].to_owned())];
        rest = &rest[start + end + 1..];
        loop {
            rest = rest.trim_start_matches([' ', '\t']);
            let Some(tail) = rest.strip_prefix(';') else { break };
            let (parameter, tail) = parameter(tail);
            rest = tail;
            if !parameter.0.is_empty() && parameter.0 != "href" {
                parameters.push(parameter);
            }
        }
        found.push(Entry { parameters });
    }
    found
}

/// `name`, `name=token` or `name="quoted"`, and what follows it.
fn parameter(text: &str) -> ((String, String), &str) {
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find(['=', ';', ',', ' ', '\t']).unwrap_or(text.len());
    let name = text[..end].to_ascii_lowercase();
    let rest = text[end..].trim_start_matches([' ', '\t']);
    let Some(rest) = rest.strip_prefix('=') else { return ((name, String::new()), rest) };
    let rest = rest.trim_start_matches([' ', '\t']);
    if let Some(quoted) = rest.strip_prefix('"') {
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => return ((name, value), &quoted[at + 1..]),
                '\\' => value.extend(characters.next().map(|(_, c)| c)),
                c => value.push(c),
            }
        }
        return ((name, value), "");
    }
    let end = rest.find([';', ',', ' ', '\t']).unwrap_or(rest.len());
    ((name, rest[..end].to_owned()), &rest[end..])
}
