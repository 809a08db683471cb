//! Whether a document is shown in quirks mode, by what stands at its beginning (HTML, §13.2.6.4.1).

/// Bytes of comments that are looked through for a document type.
const LONGEST: usize = 4 * 1024;

/// Reads the beginning of a document.
#[derive(Debug, Default)]
pub(crate) struct Doctype {
    /// Until it is known.
    head: String,
    quirks: Option<bool>,
}

impl Doctype {
    /// The next text of the document.
    pub(crate) fn feed(&mut self, text: &str) {
        if self.quirks.is_some() {
            return;
        }
        let room = LONGEST - self.head.len();
        self.head.push_str(&text[..text.floor_char_boundary(room)]);
        self.quirks = quirks(&self.head).or((text.len() > room).then_some(true));
        if self.quirks.is_some() {
            self.head = String::new();
        }
    }

    /// Whether the document is in quirks mode, or may be.
    pub(crate) fn is_quirky(&self) -> bool {
        self.quirks.unwrap_or(true)
    }
}

/// `None` until more of the document is there.
fn quirks(head: &str) -> Option<bool> {
    const START: &str = "<!doctype";
    let mut rest = head;
    loop {
        rest = rest.trim_start();
        let is_doctype = rest.get(..START.len()).is_some_and(|start| start.eq_ignore_ascii_case(START));
        let end = match rest {
            "" | "<" | "<!" | "<!-" => return None,
            _ if is_doctype => return rest.find('>').map(|end| is_quirky(&rest[START.len()..end])),
            _ if rest.starts_with("<!--") => rest.find("-->")? + 3,
            _ if rest.starts_with("<!") && START.len() > rest.len() => return None,
            _ if rest.starts_with("<!") || rest.starts_with("<?") => rest.find('>')? + 1,
            _ => return Some(true),
        };
        rest = &rest[end..];
    }
}

/// Whether this document type may mean quirks mode: those that surely do not are few.
fn is_quirky(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let Some(rest) = text.strip_prefix("html") else { return true };
    let mut quoted = rest.split(['"', '\'']);
    let (keyword, first, second) = (quoted.next(), quoted.next(), quoted.nth(1));
    match keyword.map(str::trim) {
        Some("") => first.is_some(),
        Some("system") => first != Some("about:legacy-compat"),
        Some("public") => {
            let public = first.unwrap_or_default();
            let is = |names: &[&str]| {
                let name = public.strip_prefix("-//w3c//dtd ");
                name.is_some_and(|name| names.iter().any(|own| name.starts_with(own)))
            };
            let strict = is(&["xhtml ", "html 4.01//", "html 4.0//"]);
            !strict && (second.is_none() || !is(&["html 4.01 transitional//", "html 4.01 frameset//"]))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_types_tell_quirks_mode_however_they_are_cut() {
        let strict = "http://www.w3.org/TR/html4/strict.dtd";
        let loose =
            |id: &str| format!("<!DOCTYPE HTML PUBLIC \"{id}\" \"http://www.w3.org/TR/html4/loose.dtd\">");
        for (head, quirks) in [
            ("<!doctype html><p>".to_owned(), false),
            (" <?xml version='1.0'?><!-- > --> <!x>\n<!DocType  HTML >".into(), false),
            ("<!doctype html system 'about:legacy-compat'>".into(), false),
            (format!("<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"{strict}\">"), false),
            ("<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Transitional//EN'>".into(), false),
            (loose("-//W3C//DTD HTML 4.01 Transitional//EN"), false),
            ("<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\">".into(), true),
            (loose("-//W3C//DTD HTML 4.0 Transitional//EN"), true),
            (loose("-//IETF//DTD HTML 2.0//EN"), true),
            ("<!doctype>".into(), true),
            ("<!doctype svg>".into(), true),
            ("<html>".into(), true),
            ("text".into(), true),
            ("<!-- without end".into(), true),
        ] {
            for size in [1, 7, head.len()] {
                let mut doctype = Doctype::default();
                head.as_bytes().chunks(size).for_each(|piece| doctype.feed(&String::from_utf8_lossy(piece)));
                assert_eq!(doctype.is_quirky(), quirks, "{head} by {size}");
            }
        }
        let mut doctype = Doctype::default();
        doctype.feed(&format!("<!--{}", "x".repeat(2 * LONGEST)));
        doctype.feed("--><!doctype html>");
        assert!(doctype.is_quirky() && doctype.head.capacity() == 0, "what comes late is not waited for");
    }
}
