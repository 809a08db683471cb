//! Whole pages in small: mark-up and sheets in, what a browser would fetch out. Expectations were checked against
//! Chromium where the standards leave a choice.

use super::*;
use crate::decode::Charset;
use crate::steps::Steps;
use crate::tree::Position;

mod bounds;
mod matching;
mod sheets;

const AROUND: Around = Around { charset: Charset::UTF_8, scope: Scope::DOCUMENT };

/// One page while it loads.
struct Page {
    tree: Tree,
    styles: Styles,
    found: Vec<Found>,
}

impl Page {
    fn new() -> Self {
        Page {
            tree: Tree::new(10_000, 1_000_000),
            styles: Styles::new(&Options::default()),
            found: Vec::new(),
        }
    }

    /// Adds well-formed mark-up below `<body>`: names, quoted or bare attributes, text.
    fn html(&mut self, markup: &str) -> &mut Self {
        let base = Url::parse("http://site.test/page.html").unwrap();
        if self.tree.len() == 0 {
            let html = self.tree.push("html", [].into_iter(), None, None, Position::default());
            self.tree.push("body", [].into_iter(), html, None, Position::default());
        }
        // Open elements, and the last child of each so far.
        let mut open = vec![(NodeId(1), None)];
        for piece in markup.split_inclusive('>').flat_map(|piece| piece.split_inclusive_before('<')) {
            let Some(tag) = piece.strip_prefix('<').and_then(|tag| tag.strip_suffix('>')) else {
                self.styles.text(open.last().unwrap().0, piece, false);
                continue;
            };
            if tag.starts_with('/') {
                open.pop();
                continue;
            }
            let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
            let pairs: Vec<(&str, &str)> = attributes(rest);
            let (parent, previous) = *open.last().unwrap();
            let hidden_itself = pairs.iter().any(|(name, _)| *name == "hidden");
            let position = Position { hidden_itself, ..Position::default() };
            let node = self.tree.push(name, pairs.iter().copied(), Some(parent), previous, position).unwrap();
            if let Some((_, style)) = pairs.iter().find(|(name, _)| *name == "style") {
                self.styles.inline(node, style, &base, Charset::UTF_8);
            }
            open.last_mut().unwrap().1 = Some(node);
            if !matches!(name, "img" | "br" | "input") {
                open.push((node, None));
            }
        }
        self.styles.nodes(&self.tree);
        self.take()
    }

    fn take(&mut self) -> &mut Self {
        self.found.extend(self.styles.take());
        self
    }

    fn announce(&mut self, url: &str) -> SheetId {
        let url = Url::parse(url).unwrap();
        let id = self.styles.sheet(Owner::File { url }, AROUND, true, &self.tree);
        self.take();
        id
    }

    fn answer(&mut self, id: SheetId, text: &str) -> &mut Self {
        self.styles.feed(id, text);
        self.styles.end(id, &self.tree);
        self.take()
    }

    fn css(&mut self, text: &str) -> &mut Self {
        let id = self.announce(&format!("http://site.test/css/{}.css", self.styles.sheets.len()));
        self.answer(id, text)
    }

    fn end(&mut self) -> &mut Self {
        self.styles.document_end(&self.tree);
        self.take()
    }

    /// File names found, sorted.
    fn names(&self) -> String {
        let mut names: Vec<&str> =
            self.found.iter().map(|found| found.url.path().rsplit('/').next().unwrap()).collect();
        names.sort_unstable();
        names.join(" ")
    }
}

trait SplitBefore {
    fn split_inclusive_before(&self, mark: char) -> impl Iterator<Item = &str>;
}

impl SplitBefore for str {
    fn split_inclusive_before(&self, mark: char) -> impl Iterator<Item = &str> {
        let at = self.find(mark).unwrap_or(0);
        [&self[..at], &self[at..]].into_iter().filter(|piece| !piece.is_empty())
    }
}

fn attributes(text: &str) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = &rest[end..];
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            (value, rest) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap(),
                None => after.split_at(after.find(' ').unwrap_or(after.len())),
            };
        }
        pairs.push((name, value));
        rest = rest.trim_start();
    }
    pairs
}

/// What a page of this mark-up and this one sheet fetches.
fn fetched(html: &str, css: &str) -> String {
    Page::new().html(html).css(css).end().names()
}

/// A family of four faces.
const FACES: &str = "@font-face{font-family:A;src:url(a400)}@font-face{font-family:A;font-weight:700;src:url(a700)}\
                     @font-face{font-family:A;font-style:italic;src:url(a-italic)}\
                     @font-face{font-family:Icons;src:local(x),url(icons.woff2) format('woff2')}\
                     @font-face{font-family:R;src:url(r-latin);unicode-range:U+0-FF}\
                     @font-face{font-family:R;src:url(r-cyrillic);unicode-range:U+400-4FF}";
