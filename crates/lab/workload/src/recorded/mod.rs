//! Pages that were recorded elsewhere, as HAR or WARC, made folders again that the lab's origins serve: each host under its
//! own name, each file at its own path. What a folder cannot be is left out and counted: queries (the first answer to a path
//! stands for all), anything but answers to GET with status 200, and a file whose path is another's folder.

mod har;
mod warc;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::Uri;

use crate::origins::media::media_type;
use crate::origins::site::{MEDIA_TYPES, percent_decode};
use crate::pages::{Page, Site};

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What was asked for.
    pub url: String,
    /// The media type, without parameters, in lower case.
    pub media_type: String,
    /// The body, every coding undone.
    pub body: Vec<u8>,
}

/// Answers in the order in which they were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// Those that count.
    pub entries: Vec<Entry>,
    /// How many do not.
    pub left_out: usize,
}

/// Why a recording is none.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is not what its name says.
    #[error("{path}: {reason}")]
    Form {
        /// The recording.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl RecordingError {
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> RecordingError {
        let path = path.to_path_buf();
        move |source| RecordingError::File { path, source }
    }
}

impl Recording {
    /// Reads a recording: a WARC where its name ends in `.warc` or `.warc.gz`, else a HAR.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Recording, RecordingError> {
        let bytes = std::fs::read(path).map_err(RecordingError::file(path))?;
        let name = path.to_string_lossy();
        let is_warc = name.ends_with(".warc") || name.ends_with(".warc.gz");
        let read = if is_warc { warc::read(&bytes) } else { har::read(&bytes) };
        let read = read.map_err(|reason| RecordingError::Form { path: path.to_path_buf(), reason })?;
        if read.document(None).is_none() {
            let reason = "it has no answer to a GET with status 200 that is an HTML page".to_owned();
            return Err(RecordingError::Form { path: path.to_path_buf(), reason });
        }
        Ok(read)
    }

    /// The entry at this URL, or else the first HTML page.
    fn document(&self, url: Option<&str>) -> Option<&Entry> {
        let wanted = |entry: &&Entry| match url {
            Some(url) => entry.url == url,
            None => matches!(entry.media_type.as_str(), "text/html" | "application/xhtml+xml"),
        };
        self.entries.iter().find(wanted)
    }

    /// Writes a folder for each host below `folder`: the page that begins with this document, or with the first one.
    ///
    /// # Errors
    /// There is no such document, or the disk refuses.
    pub fn unfold(&self, name: &str, document: Option<&str>, folder: &Path) -> Result<Page, RecordingError> {
        let missing = || RecordingError::Form {
            path: folder.to_path_buf(),
            reason: format!("the recording has no page {}", document.unwrap_or("at all")),
        };
        let first = self.document(document).and_then(|entry| Place::of(&entry.url)).ok_or_else(missing)?;
        let mut types: BTreeMap<String, String> = BTreeMap::new();
        let mut hosts = vec![first.host.clone()];
        for entry in &self.entries {
            let Some(place) = Place::of(&entry.url) else { continue };
            let root = folder.join(&place.host);
            let file = root.join(&place.file);
            if file.exists() || write(&file, &entry.body)?.is_none() {
                continue;
            }
            if media_type(&place.file) != entry.media_type {
                types
                    .entry(place.host.clone())
                    .or_default()
                    .push_str(&format!("{}\t{}\n", place.file, entry.media_type));
            }
            if !hosts.contains(&place.host) {
                hosts.push(place.host);
            }
        }
        for (host, told) in types {
            let file = folder.join(host).join(MEDIA_TYPES);
            std::fs::write(&file, told).map_err(RecordingError::file(&file))?;
        }
        let sites = hosts.into_iter().map(|host| Site::new(host.clone(), folder.join(host))).collect();
        Ok(Page { name: name.to_owned(), entry: first.path, sites })
    }
}

/// Where an answer goes.
struct Place {
    host: String,
    /// As in the URL.
    path: String,
    /// Relative to the host's folder.
    file: String,
}

impl Place {
    /// None where it is no URL of the web, or none that a folder could answer.
    fn of(url: &str) -> Option<Place> {
        let uri: Uri = url.split('#').next()?.parse().ok()?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return None;
        }
        let host = uri.host()?.to_ascii_lowercase();
        let plain =
            |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', ':']);
        let decoded = percent_decode(uri.path().strip_prefix('/')?)?;
        let mut parts: Vec<&str> = decoded.split('/').filter(|part| !part.is_empty()).collect();
        if uri.path().ends_with('/') {
            parts.push("index.html");
        }
        let good = |part: &str| !matches!(part, "." | ".." | MEDIA_TYPES) && !part.contains('\0');
        let file = parts.iter().all(|part| good(part)).then(|| parts.join("/"))?;
        plain(&host).then(|| Place { host, path: uri.path().to_owned(), file })
    }
}

/// None where another file stands where a folder is needed, or a folder where the file would be.
fn write(file: &Path, bytes: &[u8]) -> Result<Option<()>, RecordingError> {
    let Some(folder) = file.parent() else { return Ok(None) };
    if folder.ancestors().any(Path::is_file) || file.is_dir() {
        return Ok(None);
    }
    std::fs::create_dir_all(folder).map_err(RecordingError::file(folder))?;
    std::fs::write(file, bytes).map(Some).map_err(RecordingError::file(file))
}

/// A `Content-Type` without its parameters.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origins::site::{Found, Site as Served};

    fn entry(url: &str, media_type: &str, body: &str) -> Entry {
        Entry { url: url.into(), media_type: media_type.into(), body: body.into() }
    }

    #[test]
    fn every_host_is_a_folder_and_every_file_at_its_path_with_its_type() {
        let recording = Recording {
            entries: vec![
                entry("https://a.example/x.css", "text/css", "x"),
                entry("https://a.example/article?id=3", "text/html", "<p>the page"),
                entry("https://a.example/article?id=4", "text/html", "another answer"),
                entry("https://a.example/article/below", "text/html", "no folder can have it"),
                entry("https://b.example:8443/img/%C3%A4.png", "image/png", "b"),
                entry("https://b.example/", "text/html", "root"),
                entry("https://b.example/../../etc/passwd", "text/plain", "outside"),
                entry("data:text/plain,x", "text/plain", "x"),
            ],
            left_out: 0,
        };
        let folder = tempfile::tempdir().unwrap();
        let page = recording.unfold("recorded", None, folder.path()).unwrap();
        assert_eq!(page.entry, "/article");
        let hosts: Vec<&str> = page.sites.iter().map(|site| site.host.as_str()).collect();
        assert_eq!(hosts, ["a.example", "b.example"]);
        let found = |site: usize, path: &str| {
            let site = Served::open(&page.sites[site].folder).unwrap();
            match site.find(path).unwrap() {
                Found::File(asset) => Some((asset.media_type, asset.held.as_ref().unwrap().to_vec())),
                _ => None,
            }
        };
        assert_eq!(found(0, "/article"), Some(("text/html", b"<p>the page".to_vec())));
        assert_eq!(found(0, "/article/below"), None);
        assert_eq!(found(1, "/img/%C3%A4.png"), Some(("image/png", b"b".to_vec())));
        assert_eq!(found(1, "/"), Some(("text/html", b"root".to_vec())));
        assert!(!folder.path().join("b.example/etc").exists() && !folder.path().join("etc").exists());
        let other = tempfile::tempdir().unwrap();
        let page = recording.unfold("recorded", Some("https://b.example/"), other.path()).unwrap();
        assert_eq!((page.entry.as_str(), page.sites[0].host.as_str()), ("/", "b.example"));
        let missing = recording.unfold("recorded", Some("https://c.example/"), other.path());
        assert!(missing.unwrap_err().to_string().contains("no page https://c.example/"));
    }

    #[test]
    fn a_recording_without_a_page_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.har");
        std::fs::write(&file, r#"{"log": {"entries": []}}"#).unwrap();
        let error = Recording::read(&file).unwrap_err().to_string();
        assert!(error.contains("x.har: it has no answer to a GET"), "{error}");
        assert!(Recording::read(&folder.path().join("y.warc")).unwrap_err().to_string().contains("y.warc: "));
    }
}
