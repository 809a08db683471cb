//! A page as the loader sees it: its objects, and which names which, from which byte on. Made from the folders of a page of
//! the lab by the reader that ground has, or by hand.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use farhop_page::{Confidence, Destination, Document, Hint, Initiator, Mode, Options, ResourceInfo, Timing};
use farhop_workload::origins::site::{Asset, Found, Site, sha256_hex};
use farhop_workload::pages::Page;
use url::Url;

/// What an object is to its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The page itself, or a page in a frame.
    Document,
    /// A style sheet.
    Style,
    /// A script.
    Script,
    /// An image.
    Image,
    /// A font.
    Font,
    /// Anything else.
    Other,
}

/// One object of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Where it is.
    pub url: Url,
    /// What it is.
    pub kind: Kind,
    /// Whether nothing can be painted without it.
    pub blocking: bool,
    /// What names it (`Referer`); none for the document.
    pub named_by: Option<Url>,
    /// Whether it is asked for by CORS without being of the document's own origin.
    pub cors: bool,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// Bytes that are sent to it, where it is an upload: the same for each length; `sha256` is theirs, and its origin answers what arrived.
    pub upload: Option<u64>,
    /// Its size in pixels, where it is an image.
    pub pixels: Option<(usize, usize)>,
    /// What it names.
    pub names: Vec<Named>,
}

/// That an object names another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The other one's place in [`PageGraph::objects`].
    pub object: usize,
    /// Known once so many bytes of the naming object are there, content coding undone.
    pub from: u64,
}

/// A page: the first object is its document, and every other is named by one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct PageGraph {
    /// All of it.
    pub objects: Vec<Object>,
}

/// Why a page is none that could be loaded.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// It has no site, or an address that is none.
    #[error("the page {0} has no address")]
    Address(String),
    /// Its document is not in the folder.
    #[error("the page {page} has no file {entry} in its first folder")]
    NoDocument {
        /// The page's name.
        page: String,
        /// The path of its document.
        entry: String,
    },
    /// A folder or file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// How finely the places are told at which a document names things: less than a packet's worth.
const STEP: usize = 512;

impl Object {
    /// An object with these bytes that blocks nothing and names nothing.
    pub fn new(url: Url, kind: Kind, bytes: &[u8]) -> Object {
        Object {
            url,
            kind,
            blocking: kind == Kind::Document,
            named_by: None,
            cors: false,
            sha256: sha256_hex(bytes),
            upload: None,
            pixels: pixels(kind, bytes),
            names: Vec::new(),
        }
    }

    /// An upload of so many bytes, by POST.
    pub fn upload(url: Url, bytes: u64) -> Object {
        Object { upload: Some(bytes), blocking: true, ..Object::new(url, Kind::Other, &upload_body(bytes)) }
    }

    fn of(url: Url, kind: Kind, asset: &Asset) -> Object {
        let pixels = asset.held.as_ref().and_then(|bytes| pixels(kind, bytes));
        Object { sha256: asset.sha256.clone(), pixels, ..Object::new(url, kind, &[]) }
    }
}

/// The bytes of an upload of this length: they look random and are the same everywhere (Marsaglia's xorshift64).
pub(crate) fn upload_body(count: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| step()).collect()
}

fn pixels(kind: Kind, bytes: &[u8]) -> Option<(usize, usize)> {
    let size = (kind == Kind::Image).then(|| imagesize::blob_size(bytes).ok()).flatten()?;
    Some((size.width, size.height))
}

impl PageGraph {
    /// A document that names every other object with its first byte.
    pub fn flat(document: Object, others: Vec<Object>) -> PageGraph {
        let named_by = Some(document.url.clone());
        let names = (1..=others.len()).map(|object| Named { object, from: 1 }).collect();
        let mut objects = vec![Object { names, ..document }];
        objects.extend(others.into_iter().map(|object| Object { named_by: named_by.clone(), ..object }));
        PageGraph { objects }
    }

    /// What a browser would load of a page in folders, its mark-up, style sheets and module scripts read as ground reads
    /// them: all that is named for sure or nearly so, without what comes only by scrolling, and without the icon. `secure`
    /// gives https to every URL.
    ///
    /// # Errors
    /// It has no document, or a folder cannot be read.
    pub fn of(page: &Page, secure: bool) -> Result<PageGraph, GraphError> {
        let no_address = || GraphError::Address(page.name.clone());
        let mut sites = HashMap::new();
        for site in &page.sites {
            let open = Site::open(&site.folder);
            let open = open.map_err(|source| GraphError::File { path: site.folder.clone(), source })?;
            sites.insert(site.host.clone(), open);
        }
        let host = &page.sites.first().ok_or_else(no_address)?.host;
        let scheme = if secure { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{host}{}", page.entry)).map_err(|_| no_address())?;
        let reading =
            Reading { sites, secure, graph: PageGraph { objects: Vec::new() }, places: HashMap::new() };
        let missing = GraphError::NoDocument { page: page.name.clone(), entry: page.entry.clone() };
        reading.read(url)?.ok_or(missing)
    }
}

/// A page being read.
struct Reading {
    sites: HashMap<String, Site>,
    secure: bool,
    graph: PageGraph,
    /// Where each URL is among the objects.
    places: HashMap<Url, usize>,
}

impl Reading {
    fn asset(&self, url: &Url) -> Result<Option<std::sync::Arc<Asset>>, GraphError> {
        let Some(site) = url.host_str().and_then(|host| self.sites.get(host)) else { return Ok(None) };
        match site.find(url.path()) {
            Ok(Found::File(asset)) => Ok(Some(asset)),
            Ok(_) => Ok(None),
            Err(source) => Err(GraphError::File { path: url.path().into(), source }),
        }
    }

    /// The whole page; none where there is no document.
    fn read(mut self, url: Url) -> Result<Option<PageGraph>, GraphError> {
        let Some(asset) = self.asset(&url)? else { return Ok(None) };
        self.places.insert(url.clone(), 0);
        self.graph.objects.push(Object::of(url.clone(), Kind::Document, &asset));
        let text = bytes_of(&asset)?;
        let mut document = Document::new(&url, None, Options::default());
        let mut waiting = VecDeque::new();
        let mut read = 0;
        for piece in text.chunks(STEP) {
            read += piece.len() as u64;
            self.take(document.html(piece), 0, read, &mut waiting)?;
        }
        self.take(document.html_end(), 0, read, &mut waiting)?;
        while let Some((place, hint)) = waiting.pop_front() {
            let Some(asset) = self.asset(&self.graph.objects[place].url)? else { continue };
            let begun = document.resource_begins(&hint, &hint.url, &ResourceInfo::default());
            let Some(id) = begun else {
                let hints = document.resource_lost(&hint);
                self.take(hints, place, asset.len, &mut waiting)?;
                continue;
            };
            let mut read = 0;
            for piece in bytes_of(&asset)?.chunks(STEP) {
                read += piece.len() as u64;
                self.take(document.resource(id, piece), place, read, &mut waiting)?;
            }
            self.take(document.resource_end(id), place, read, &mut waiting)?;
        }
        Ok(Some(self.graph))
    }

    /// Puts what was found among the objects, named by the one at `place` from its byte `from` on. What rules of a sheet
    /// want comes out when the last sheet is there, whichever it belongs to.
    fn take(
        &mut self,
        hints: Vec<Hint>,
        place: usize,
        from: u64,
        waiting: &mut VecDeque<(usize, Hint)>,
    ) -> Result<(), GraphError> {
        for mut hint in hints {
            if hint.confidence == Confidence::Guess
                || hint.timing == Timing::Lazy
                || hint.destination == Destination::Icon
            {
                continue;
            }
            if self.secure {
                // As the lab's origins have it (`upgrade-insecure-requests`).
                let _ = hint.url.set_scheme("https");
            }
            let Some(asset) = self.asset(&hint.url)? else { continue };
            if self.places.contains_key(&hint.url) {
                continue;
            }
            let object = self.graph.objects.len();
            self.places.insert(hint.url.clone(), object);
            let document = self.graph.objects[0].url.clone();
            let by = match &hint.initiator {
                Initiator::Document => document.clone(),
                Initiator::Sheet(url) | Initiator::Module(url) => url.clone(),
            };
            let kind = kind(hint.destination);
            self.graph.objects.push(Object {
                blocking: hint.timing == Timing::Blocking && hint.applies,
                cors: matches!(hint.mode, Mode::Cors | Mode::CorsWithCredentials)
                    && hint.url.origin() != document.origin(),
                named_by: Some(by),
                ..Object::of(hint.url.clone(), kind, &asset)
            });
            self.graph.objects[place].names.push(Named { object, from });
            if matches!(kind, Kind::Style | Kind::Script) {
                waiting.push_back((object, hint));
            }
        }
        Ok(())
    }
}

fn kind(destination: Destination) -> Kind {
    match destination {
        Destination::Script => Kind::Script,
        Destination::Style => Kind::Style,
        Destination::Image | Destination::Icon | Destination::Object | Destination::Embed => Kind::Image,
        Destination::Font => Kind::Font,
        Destination::Frame => Kind::Document,
        Destination::Manifest
        | Destination::Json
        | Destination::Fetch
        | Destination::Track
        | Destination::Worker
        | Destination::SharedWorker
        | Destination::Prefetch => Kind::Other,
    }
}

fn bytes_of(asset: &Asset) -> Result<Vec<u8>, GraphError> {
    match &asset.held {
        Some(bytes) => Ok(bytes.to_vec()),
        None => {
            std::fs::read(&asset.path).map_err(|source| GraphError::File { path: asset.path.clone(), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_workload::pages;

    fn page(files: &[(&str, &str)]) -> (tempfile::TempDir, Page) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let sites = vec![pages::Site::new("a.test", folder.path())];
        (folder, Page { name: "a".into(), entry: "/".into(), sites })
    }

    #[test]
    fn a_page_has_what_its_mark_up_and_its_sheets_name() {
        let filler = "text ".repeat(400);
        let html =
            format!("<!doctype html><link rel=stylesheet href=a.css><p class=x>{filler}<img src=b.png>");
        let (_folder, page) = page(&[
            ("index.html", &html),
            ("a.css", ".x { background: url(c.png) } .y { background: url(d.png) }"),
            ("b.png", "b"),
            ("c.png", "c"),
            ("d.png", "d"),
        ]);
        let graph = PageGraph::of(&page, true).unwrap();
        let at = |path: &str| graph.objects.iter().position(|object| object.url.path() == path);
        let (sheet, image, rule) = (at("/a.css").unwrap(), at("/b.png").unwrap(), at("/c.png").unwrap());
        assert_eq!((graph.objects.len(), at("/d.png")), (4, None), "no element is of class y");
        let document = &graph.objects[0];
        assert_eq!(document.names[0], Named { object: sheet, from: STEP as u64 });
        assert_eq!(document.names[1], Named { object: image, from: html.len() as u64 }, "named at the end");
        assert_eq!(graph.objects[sheet].names[0].object, rule);
        assert!(graph.objects[sheet].blocking && !graph.objects[image].blocking);
        assert_eq!(graph.objects[rule].named_by.as_ref().unwrap().as_str(), "https://a.test/a.css");
        assert_eq!(graph.objects[image].sha256, sha256_hex(b"b"));
    }

    #[test]
    fn a_page_without_its_document_is_refused_by_name() {
        let (_folder, page) = page(&[("other.html", "")]);
        let error = PageGraph::of(&page, false).unwrap_err().to_string();
        assert_eq!(error, "the page a has no file / in its first folder");
    }
}
