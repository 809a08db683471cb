//! Names of images that scripts mention without saying the folder: which folder that is shows itself when the browser
//! asks for the first of them, and then the others can be told (an icon set put together by a script).

use memchr::memchr_iter;
use std::collections::{HashMap, HashSet};
use url::Url;

/// Names kept for one page.
const MAX_NAMES: usize = 1_000;
/// A longer name is left out, in bytes.
const LONGEST: usize = 96;
/// Folders watched for one page.
const MAX_FOLDERS: usize = 32;
/// Names of one folder asked for before the others are told: one may be chance.
const ENOUGH: usize = 2;
/// Names told of a folder before one of them is known to be there, and with each that is: a folder in which they are not
/// costs a dozen.
const FIRST: usize = 12;
const FURTHER: usize = 2;
/// Names that may be missing of any folder.
const SOME: usize = 2;
/// Names told for one folder.
const MAX_TOLD: usize = 250;

/// Not `gif`: its names are those of counters, too.
const SUFFIXES: [&str; 6] = ["svg", "png", "jpg", "jpeg", "webp", "avif"];

/// What the scripts of a page mention, and where the browser has looked for it.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    /// In the order of mention.
    names: Vec<Box<str>>,
    known: HashSet<Box<str>>,
    folders: HashMap<(Place, &'static str), Folder>,
    /// Names mentioned since, of a folder that has shown itself.
    fresh: Vec<Url>,
}

/// Where names are looked for: everything of the URL up to the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place(String);

#[derive(Debug, Default)]
struct Folder {
    /// Asked for, or told.
    done: HashSet<Box<str>>,
    told: usize,
    /// So many may be told by now.
    most: usize,
    /// Of what was told, so many are there, and so many are not.
    there: usize,
    missing: usize,
}

impl Mentions {
    /// The browser asked for `url`, which nobody foresaw.
    pub(crate) fn asked(&mut self, url: &Url) {
        let Some((place, name)) = self.place(url) else { return };
        let Some(suffix) = suffix(name) else { return };
        let (key, name) = ((place, suffix), name.into());
        if self.folders.len() < MAX_FOLDERS || self.folders.contains_key(&key) {
            self.folders.entry(key).or_default().done.insert(name);
        }
    }

    /// The URLs of other names in the folder of `url` that the browser will probably ask for, in the order in which
    /// scripts mention them; each is told once. None before it has asked for enough of them.
    pub(crate) fn neighbours(&mut self, url: &Url) -> Vec<Url> {
        let Some((place, name)) = self.place(url) else { return Vec::new() };
        let Some(suffix) = suffix(name) else { return Vec::new() };
        let key = (place, suffix);
        let Some(folder) = self.folders.get_mut(&key).filter(|folder| folder.done.len() >= ENOUGH) else {
            return Vec::new();
        };
        folder.most = folder.most.max(FIRST);
        folder.tell_all(&key.0, self.names.iter().filter(|name| self::suffix(name) == Some(suffix)))
    }

    /// What was told at `url` was fetched, and is there or not: gives what follows from that.
    pub(crate) fn found(&mut self, url: &Url, is_there: bool) -> Vec<Url> {
        let Some((place, name)) = self.place(url) else { return Vec::new() };
        let Some(suffix) = suffix(name) else { return Vec::new() };
        let key = (place, suffix);
        let Some(folder) = self.folders.get_mut(&key) else { return Vec::new() };
        if is_there {
            folder.there += 1;
            folder.most = (folder.most + FURTHER).min(MAX_TOLD);
        } else {
            folder.missing += 1;
        }
        folder.tell_all(&key.0, self.names.iter().filter(|name| self::suffix(name) == Some(suffix)))
    }

    /// The URLs of names mentioned since the last call, where it is known in which folder such are.
    pub(crate) fn fresh(&mut self) -> Vec<Url> {
        std::mem::take(&mut self.fresh)
    }

    /// Splits a URL where one of the names begins, the longest that fits.
    fn place<'a>(&self, url: &'a Url) -> Option<(Place, &'a str)> {
        // What has a query is more often a call than a file.
        if url.query().is_some() {
            return None;
        }
        let path = url.path();
        let ends = path.char_indices().filter(|(_, mark)| *mark == '/').map(|(at, _)| at + 1);
        let at = ends.into_iter().find(|at| self.known.contains(&path[*at..]))?;
        let before = format!("{}{}", &url[..url::Position::BeforePath], &path[..at]);
        Some((Place(before), &path[at..]))
    }

    fn add(&mut self, name: &str) {
        // An absolute URL says its folder.
        if name.contains("//") {
            return;
        }
        let name = name.rsplit_once("../").map_or(name, |(_, name)| name);
        let name = name.trim_start_matches("./").trim_start_matches('/');
        if name.len() <= LONGEST && self.names.len() < MAX_NAMES && self.known.insert(name.into()) {
            self.names.push(name.into());
            let fits = |(own, folder): &(&(Place, &str), &mut Folder)| {
                Some(own.1) == suffix(name) && folder.done.len() >= ENOUGH
            };
            let folders = self.folders.iter_mut().filter(fits);
            let surest = folders.max_by_key(|(own, folder)| (folder.done.len(), &own.0.0));
            self.fresh.extend(surest.and_then(|((place, _), folder)| folder.tell(place, name)));
        }
    }
}

impl Folder {
    fn tell_all<'a>(&mut self, place: &Place, names: impl Iterator<Item = &'a Box<str>>) -> Vec<Url> {
        names.filter_map(|name| self.tell(place, name)).collect()
    }

    /// The URL of a name in this folder, once.
    fn tell(&mut self, place: &Place, name: &str) -> Option<Url> {
        // Some names are always of other folders.
        let is_elsewhere = self.missing > SOME && self.missing > self.there;
        if is_elsewhere || self.told >= self.most || !self.done.insert(name.into()) {
            return None;
        }
        self.told += 1;
        Url::parse(&format!("{}{name}", place.0)).ok()
    }
}

/// Looks for names in the text of one script as it passes.
#[derive(Debug, Default)]
pub(crate) struct MentionScanner {
    /// A name that the next piece may go on with.
    tail: Vec<u8>,
}

impl MentionScanner {
    pub(crate) fn feed(&mut self, text: &str, mentions: &mut Mentions) {
        let text = text.as_bytes();
        let Some(border) = text.iter().position(|byte| !is_of_name(*byte)) else { return self.keep(text) };
        let text = if self.tail.is_empty() {
            text
        } else {
            let (rest_of_name, after) = text.split_at(border);
            self.keep(rest_of_name);
            let mut name = std::mem::take(&mut self.tail);
            name.extend(after.first());
            scan(&name, mentions);
            after
        };
        let tail = text.iter().rposition(|byte| !is_of_name(*byte)).map_or(0, |border| border + 1);
        let (whole, tail) = text.split_at(tail);
        scan(whole, mentions);
        self.keep(tail);
    }

    /// A byte more than a name may have shows that it is none.
    fn keep(&mut self, text: &[u8]) {
        let room = (LONGEST + 1).saturating_sub(self.tail.len());
        self.tail.extend_from_slice(&text[..text.len().min(room)]);
    }
}

/// Takes every run of a name's characters that ends in the suffix of an image.
fn scan(text: &[u8], mentions: &mut Mentions) {
    for dot in memchr_iter(b'.', text) {
        let after = &text[dot + 1..];
        let Some(suffix) = SUFFIXES.into_iter().find(|suffix| after.starts_with(suffix.as_bytes())) else {
            continue;
        };
        let end = dot + 1 + suffix.len();
        // Within a string, so that it is no member of an object.
        if !text.get(end).is_some_and(|byte| b"\"'`\\#?&< ".contains(byte)) {
            continue;
        }
        let from = dot.saturating_sub(LONGEST + 1);
        let begin =
            text[from..dot].iter().rposition(|byte| !is_of_name(*byte)).map_or(from, |at| from + at + 1);
        // A letter before the suffix, as in any name.
        let named = begin < dot && text[dot - 1].is_ascii_alphanumeric();
        if let Ok(name) = std::str::from_utf8(&text[begin..end])
            && named
        {
            mentions.add(name);
        }
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'@' | b'~')
}

fn suffix(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    SUFFIXES.into_iter().find(|suffix| *suffix == end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCRIPT: &str = r#"
        const e = t.imgPath; n.innerHTML = `<b-tool src="text.svg" title="x"></b-tool><b-tool src="line.svg">`;
        o(e + "/circle.svg"), p("./sub/rect.svg"); q("photo.png"), r(s.svg, u.svg.x, ".svg", "http://a.test/b.svg")
    "#;

    fn mentions(pieces: &[&str]) -> Mentions {
        let (mut mentions, mut scanner) = (Mentions::default(), MentionScanner::default());
        pieces.iter().for_each(|piece| scanner.feed(piece, &mut mentions));
        mentions
    }

    fn asked(mentions: &mut Mentions, url: &str) -> Vec<String> {
        let url = Url::parse(url).unwrap();
        mentions.asked(&url);
        mentions.neighbours(&url).into_iter().map(String::from).collect()
    }

    #[test]
    fn the_second_name_asked_for_tells_where_the_others_are() {
        let mut mentions = mentions(&[SCRIPT]);
        assert_eq!(asked(&mut mentions, "http://site.test/images/line.svg"), [""; 0], "one may be chance");
        assert_eq!(
            asked(&mut mentions, "http://site.test/images/text.svg"),
            ["http://site.test/images/circle.svg", "http://site.test/images/sub/rect.svg",],
        );
        assert_eq!(asked(&mut mentions, "http://site.test/images/circle.svg"), [""; 0], "told once");
    }

    #[test]
    fn a_folder_in_which_most_are_not_there_is_given_up() {
        let many: String = (0..100).map(|number| format!("'n{number}.svg' ")).collect();
        let mut mentions = mentions(&[&many]);
        asked(&mut mentions, "http://site.test/n1.svg");
        let told = asked(&mut mentions, "http://site.test/n2.svg");
        let mut found = |at: usize, is_there| mentions.found(&Url::parse(&told[at]).unwrap(), is_there).len();
        assert_eq!(found(0, false), 0);
        assert_eq!(found(1, true), FURTHER, "some names are of other folders");
        assert_eq!((found(2, false), found(3, false)), (0, 0));
        assert_eq!(found(4, true), 0, "most are");
        assert_eq!(asked(&mut mentions, "http://site.test/n50.svg"), [""; 0]);
    }

    #[test]
    fn what_later_scripts_mention_is_told_at_once() {
        let mut mentions = mentions(&[SCRIPT]);
        asked(&mut mentions, "http://site.test/images/line.svg");
        asked(&mut mentions, "http://site.test/images/text.svg");
        MentionScanner::default().feed("add('grid.svg', 'text.svg', 'grid.svg', 'grid.png')", &mut mentions);
        let fresh: Vec<String> = mentions.fresh().into_iter().map(String::from).collect();
        assert_eq!(fresh, ["http://site.test/images/grid.svg"]);
        assert!(mentions.fresh().is_empty());
    }

    #[test]
    fn other_folders_suffixes_and_queries_are_other_places() {
        let mut mentions = mentions(&[SCRIPT]);
        for url in [
            "http://site.test/a/line.svg",
            "http://site.test/b/text.svg",
            "http://site.test/c/text.svg?v=1",
            "http://site.test/c/line.svg?v=1",
            "http://other.test/a/text.svg",
            "http://site.test/a/photo.png",
            "http://site.test/a/unmentioned.svg",
        ] {
            assert_eq!(asked(&mut mentions, url), [""; 0], "{url}");
        }
        assert_eq!(asked(&mut mentions, "http://site.test/a/circle.svg").len(), 2);
    }

    #[test]
    fn a_name_with_a_folder_of_its_own_is_taken_whole() {
        let mut mentions = mentions(&["'icons/a.svg' 'icons/b.svg' 'a.svg' 'big/c.svg'"]);
        asked(&mut mentions, "http://site.test/x/icons/a.svg");
        let told = asked(&mut mentions, "http://site.test/x/icons/b.svg");
        assert!(told.contains(&"http://site.test/x/big/c.svg".into()), "{told:?}");
    }

    #[test]
    fn what_is_kept_and_told_is_bounded() {
        let many: String = (0..5_000).map(|number| format!("'n{number}.svg' ")).collect();
        let mut mentions = mentions(&[&many]);
        assert_eq!(mentions.names.len(), MAX_NAMES);
        asked(&mut mentions, "http://site.test/n1.svg");
        let mut told = asked(&mut mentions, "http://site.test/n2.svg");
        assert_eq!(told.len(), FIRST);
        while let Some(url) = told.pop() {
            let more = mentions.found(&Url::parse(&url).unwrap(), true);
            assert!(more.len() <= FURTHER);
            told.extend(more.into_iter().map(String::from));
        }
        let folder = mentions.folders.values().next().unwrap();
        assert_eq!(folder.told, MAX_TOLD);
        for number in 0..1_000 {
            asked(&mut mentions, &format!("http://site.test/{number}/n1.svg"));
        }
        assert_eq!(mentions.folders.len(), MAX_FOLDERS);
        let long = format!("'{}.svg'", "a".repeat(LONGEST));
        assert!(self::mentions(&[&long]).names.is_empty());
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(cuts in prop::collection::vec(0..SCRIPT.len(), 0..6)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (mut from, mut pieces) = (0, Vec::new());
            for cut in cuts {
                pieces.push(&SCRIPT[from..cut]);
                from = cut;
            }
            pieces.push(&SCRIPT[from..]);
            prop_assert_eq!(mentions(&pieces).names, mentions(&[SCRIPT]).names);
        }
    }
}
