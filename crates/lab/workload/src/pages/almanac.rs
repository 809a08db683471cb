//! Pages composed as those of the web are: kinds and bytes of the median home page of the Web Almanac 2025 (2.9 MB in 80
//! requests: images 1.06 MB, scripts 0.70 MB, fonts 0.14 MB, style sheets 82 KB, the document 22 KB, the rest media and data)
//! over 16 origins, for seven sizes between a small page and the 90th percentile's 185 requests; bytes and requests in
//! proportion. How many requests are of which kind, and what names what, is made up. Contents are made up too, of bytes that
//! a coding shrinks to the sizes told. Writes files into the folder it is given, nothing else.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::{PageError, Site, write};
use crate::noise;

/// The pages by name: so many requests each.
pub const ALMANAC: [&str; 7] =
    ["almanac-20", "almanac-40", "almanac-60", "almanac-80", "almanac-110", "almanac-145", "almanac-185"];

/// Origins of a page, its own included.
const ORIGINS: usize = 16;
/// What the others' hosts add before each answer.
const ELSEWHERE: Duration = Duration::from_millis(20);

/// Of the median page: how many, how many bytes together as they cross, and the ending of their names.
const KINDS: [(usize, usize, &str); 5] = [
    (7, 82_000, "css"),
    (24, 700_000, "js"),
    (4, 140_000, "woff2"),
    (30, 1_060_000, "jpg"),
    (14, 896_000, "dat"),
];
const DOCUMENT: usize = 22_000;
const MEDIAN: usize = 80;

/// How many requests the page of this name makes; none for a name that is none of these pages.
pub(super) fn requests(name: &str) -> Option<usize> {
    ALMANAC.contains(&name).then(|| name.strip_prefix("almanac-")?.parse().ok()).flatten()
}

/// Writes the page into `folder`, a folder for each origin beside its own; its other sites.
pub(super) fn build(name: &str, folder: &Path, requests: usize) -> Result<Vec<Site>, PageError> {
    let hosts: Vec<String> = (1..ORIGINS).map(|number| format!("cdn-{number}.{name}.test")).collect();
    let place = |number: usize| folder.with_file_name(format!("{name}-cdn-{number}"));
    for number in 1..ORIGINS {
        std::fs::create_dir_all(place(number))
            .map_err(|source| PageError::File { path: place(number), source })?;
    }
    let own = |kind: &str| kind == "css"; // style comes from the page's own host, all else from everywhere
    let (mut head, mut body, mut faces) = (String::new(), String::new(), String::new());
    let (mut number, mut upto) = (0, 0);
    for (count, bytes, kind) in KINDS {
        // In proportion, and together as many as the page is named after, its document included.
        let before = upto * (requests - 1) / (MEDIAN - 1);
        upto += count;
        let scaled = upto * (requests - 1) / (MEDIAN - 1) - before;
        // Large and small ones: a quarter, three quarters, once and twice the mean in turn.
        let mean = bytes / count;
        for object in 0..scaled {
            number += 1;
            let size = [mean / 4, mean * 3 / 4, mean, mean * 2][object % 4];
            let file = format!("{kind}/{object:03}.{kind}");
            let host = if own(kind) { 0 } else { number % ORIGINS };
            let (folder, url) = match host {
                0 => (folder.to_path_buf(), format!("/{file}")),
                host => (place(host), format!("//{}/{file}", hosts[host - 1])),
            };
            write(&folder.join(&file), &content(kind, number as u64, size))?;
            let _ = match kind {
                "css" => writeln!(head, "<link rel=\"stylesheet\" href=\"{url}\">"),
                // Every fourth holds rendering up.
                "js" if object % 4 == 0 => writeln!(head, "<script src=\"{url}\"></script>"),
                "js" => writeln!(body, "<script src=\"{url}\" defer></script>"),
                "woff2" => writeln!(
                    faces,
                    "@font-face {{ font-family: f{object}; src: url({url}) }}\n.f{object} {{ font-family: f{object} }}"
                ),
                "jpg" => writeln!(body, "<p class=\"f{}\">Text<img src=\"{url}\" alt=\"\"></p>", object % 4),
                _ => writeln!(head, "<link rel=\"preload\" as=\"image\" href=\"{url}\">"),
            };
        }
    }
    let start =
        format!("<!doctype html>\n<title>A page of {requests} requests</title>\n<style>\n{faces}</style>\n");
    let document = format!("{start}{head}{body}");
    let filler = text(0, (DOCUMENT * requests / MEDIAN).saturating_sub(document.len()));
    write(&folder.join("index.html"), format!("{document}<!-- {filler} -->\n").as_bytes())?;
    let sites = hosts.into_iter().enumerate();
    Ok(sites.map(|(at, host)| Site { delay: ELSEWHERE, ..Site::new(host, place(at + 1)) }).collect())
}

/// A file of a kind that crosses in about `size` bytes.
fn content(kind: &str, seed: u64, size: usize) -> Vec<u8> {
    match kind {
        "css" | "js" => format!("/* {} */\n", text(seed, size)).into_bytes(),
        _ => noise(seed, size),
    }
}

/// Text that gzip makes about `size` bytes of: six bits of chance in each letter.
fn text(seed: u64, size: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_ ";
    noise(seed, size * 4 / 3).into_iter().map(|byte| char::from(LETTERS[usize::from(byte % 64)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh(folder: &Path) -> (usize, u64) {
        let mut sum = (0, 0);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let (files, bytes) =
                if path.is_dir() { weigh(&path) } else { (1, std::fs::metadata(&path).unwrap().len()) };
            sum = (sum.0 + files, sum.1 + bytes);
        }
        sum
    }

    #[test]
    fn the_median_page_has_the_almanacs_requests_bytes_and_origins() {
        let folder = tempfile::tempdir().unwrap();
        let sites = build("almanac-80", &folder.path().join("almanac-80"), 80).unwrap();
        assert_eq!(sites.len() + 1, 16);
        let (files, bytes) = weigh(folder.path());
        assert_eq!(files, 80);
        // A third more in text, which its coding takes away again.
        assert!((2_700_000..3_300_000).contains(&bytes), "{bytes}");
        assert!(sites.iter().all(|site| weigh(&site.folder).0 > 0), "every origin has something");
    }

    #[test]
    fn requests_grow_with_the_name() {
        assert_eq!(ALMANAC.map(requests), [20, 40, 60, 80, 110, 145, 185].map(Some));
        assert_eq!(requests("almanac-81"), None);
        let folder = tempfile::tempdir().unwrap();
        build("almanac-20", &folder.path().join("almanac-20"), 20).unwrap();
        let (files, bytes) = weigh(folder.path());
        assert!(files == 20 && (500_000..1_000_000).contains(&bytes), "{files} {bytes}");
    }
}
