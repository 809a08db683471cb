//! A folder as a site: which file a path names, its bytes, its validators, its coded twins. Reads files and keeps what it
//! compressed, so that the server never is the bottleneck of a measurement; knows nothing of HTTP messages or sockets.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;

use super::media::{is_text, known, media_type};

/// gzip level of text resources.
pub const GZIP_LEVEL: u32 = 5;
/// A file of this name in a folder tells the media types of files whose names do not: a path, a tab and the type on each line.
/// It is served to nobody.
pub(crate) const MEDIA_TYPES: &str = ".media-types";
/// Brotli level of text resources, where they are coded so: what is made ahead is made as well as can be.
pub const BROTLI_LEVEL: u32 = 11;
/// Brotli's window, as its libraries have it unless they are told otherwise.
const BROTLI_WINDOW_LOG: u32 = 22;
/// Smaller bodies are sent as they are.
const CODED_LEAST: u64 = 256;
/// Larger files are read from disk for each request.
const HELD_MOST: u64 = 8 << 20;

/// One file of a site as it is served.
#[derive(Debug)]
pub struct Asset {
    /// Where the file is.
    pub path: PathBuf,
    /// Its length in bytes.
    pub len: u64,
    /// Its bytes, when it is small enough to be held.
    pub held: Option<Bytes>,
    /// Its gzip twin, for text that becomes smaller.
    pub gzip: Option<Bytes>,
    /// Its Brotli twin, for the same, where the site has any.
    pub brotli: Option<Bytes>,
    /// Its media type.
    pub media_type: &'static str,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// When it was last changed.
    pub modified: SystemTime,
}

/// What a request path names.
#[derive(Debug)]
pub enum Found {
    /// A file.
    File(Arc<Asset>),
    /// A folder named without its final slash.
    Folder,
    /// Nothing.
    Nothing,
}

/// A folder served as a site.
#[derive(Debug)]
pub struct Site {
    root: PathBuf,
    /// Text has Brotli twins.
    brotli: bool,
    media_types: HashMap<PathBuf, &'static str>,
    assets: Mutex<HashMap<PathBuf, Arc<Asset>>>,
}

impl Site {
    /// Opens `folder` and prepares every file in it.
    ///
    /// # Errors
    /// The folder cannot be read. A file in it that cannot is left for its request to report.
    pub fn open(folder: &Path) -> io::Result<Site> {
        Site::prepare(folder, false)
    }

    /// The same with Brotli twins of its text, made as well as can be: that takes a second for each megabyte or two.
    ///
    /// # Errors
    /// The same.
    pub fn with_brotli(folder: &Path) -> io::Result<Site> {
        Site::prepare(folder, true)
    }

    fn prepare(folder: &Path, brotli: bool) -> io::Result<Site> {
        let root = folder.canonicalize()?;
        let told = std::fs::read_to_string(root.join(MEDIA_TYPES)).unwrap_or_default();
        let told = told.lines().filter_map(|line| line.split_once('\t'));
        let media_types = told.filter_map(|(path, media)| Some((root.join(path), known(media)?))).collect();
        let site = Site { root, brotli, media_types, assets: Mutex::default() };
        let mut folders = vec![site.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                // Links are followed at their request, not here: a loop of them must not hang the start.
                match path.symlink_metadata() {
                    Ok(about) if about.is_dir() => folders.push(path),
                    Ok(about) if about.is_file() => drop(site.asset(&path)),
                    _ => {}
                }
            }
        }
        Ok(site)
    }

    /// What the path of a request target (percent-encoded, without query) names.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn find(&self, target: &str) -> io::Result<Found> {
        let Some(mut path) = self.locate(target) else { return Ok(Found::Nothing) };
        match path.metadata() {
            Ok(about) if about.is_dir() && !target.ends_with('/') => return Ok(Found::Folder),
            Ok(about) if about.is_dir() => path.push("index.html"),
            Ok(_) if target.ends_with('/') => return Ok(Found::Nothing),
            Ok(_) => {}
            Err(_) => return Ok(Found::Nothing),
        }
        match path.canonicalize() {
            Ok(real) if real.starts_with(&self.root) && real.is_file() => self.asset(&real).map(Found::File),
            _ => Ok(Found::Nothing), // a link that leads out of the folder is no part of the site
        }
    }

    /// The file path of a request path, if it stays within the folder.
    fn locate(&self, target: &str) -> Option<PathBuf> {
        let decoded = percent_decode(target.strip_prefix('/')?)?;
        let mut path = self.root.clone();
        for segment in decoded.split('/') {
            match segment {
                "" | "." => {}
                ".." => return None,
                name if name.contains('\0') || name == MEDIA_TYPES => return None,
                name => path.push(name),
            }
        }
        Some(path)
    }

    /// The asset of a file, prepared anew when the file has changed.
    fn asset(&self, path: &Path) -> io::Result<Arc<Asset>> {
        let about = path.metadata()?;
        let modified = about.modified()?;
        if let Some(known) = self.lock().get(path)
            && known.len == about.len()
            && known.modified == modified
        {
            return Ok(known.clone());
        }
        let media = self.media_types.get(path).copied();
        let media = media.unwrap_or_else(|| media_type(&path.to_string_lossy()));
        let asset = Arc::new(Asset::read(path, media, about.len(), modified, self.brotli)?);
        self.lock().insert(path.to_path_buf(), asset.clone());
        Ok(asset)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<Asset>>> {
        // A panic elsewhere leaves the map whole: each insertion is one call.
        self.assets.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Asset {
    fn read(
        path: &Path,
        media_type: &'static str,
        len: u64,
        modified: SystemTime,
        has_brotli: bool,
    ) -> io::Result<Asset> {
        let (held, sha256) = if len <= HELD_MOST {
            let bytes = std::fs::read(path)?;
            let sha256 = sha256_hex(&bytes);
            (Some(Bytes::from(bytes)), sha256)
        } else {
            (None, sha256_of_file(path)?)
        };
        let text = held.as_ref().filter(|_| is_text(media_type) && len >= CODED_LEAST);
        let twin = |coded: fn(&[u8]) -> io::Result<Bytes>| -> io::Result<Option<Bytes>> {
            let Some(bytes) = text else { return Ok(None) };
            Ok(Some(coded(bytes)?).filter(|small| small.len() < bytes.len()))
        };
        let gzip = twin(gzip)?;
        let brotli = if has_brotli { twin(brotli)? } else { None };
        let len = held.as_ref().map_or(len, |bytes| bytes.len() as u64);
        Ok(Asset { path: path.to_path_buf(), len, held, gzip, brotli, media_type, sha256, modified })
    }
}

/// SHA-256 of bytes, hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// SHA-256 of a file of any size, hexadecimal.
fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(context.finish().as_ref())),
            n => context.update(&piece[..n]),
        }
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn gzip(bytes: &[u8]) -> io::Result<Bytes> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.into())
}

fn brotli(bytes: &[u8]) -> io::Result<Bytes> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 64 << 10, BROTLI_LEVEL, BROTLI_WINDOW_LOG);
    encoder.write_all(bytes)?;
    Ok(encoder.into_inner().into())
}

/// RFC 3986 §2.1; none when an escape is broken or the result is not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            out.push((high * 16 + low) as u8);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("index.html"), "<p>hello</p>".repeat(100)).unwrap();
        std::fs::write(folder.path().join("a b.png"), [7u8; 1000]).unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("sub/index.html"), "sub").unwrap();
        folder
    }

    fn file(site: &Site, target: &str) -> Arc<Asset> {
        match site.find(target).unwrap() {
            Found::File(asset) => asset,
            other => panic!("{target}: {other:?}"),
        }
    }

    #[test]
    fn folders_answer_with_their_index_and_ask_for_their_slash() {
        let folder = folder();
        let site = Site::open(folder.path()).unwrap();
        assert_eq!(file(&site, "/").len, 1200);
        assert_eq!(file(&site, "/sub/").held.as_deref(), Some(&b"sub"[..]));
        assert!(matches!(site.find("/sub").unwrap(), Found::Folder));
        assert!(matches!(site.find("/index.html/").unwrap(), Found::Nothing));
        assert_eq!(file(&site, "/a%20b.png").len, 1000);
    }

    #[test]
    fn nothing_outside_the_folder_is_served() {
        let outer = folder();
        let inner = outer.path().join("sub");
        std::os::unix::fs::symlink(outer.path().join("index.html"), inner.join("link.html")).unwrap();
        let site = Site::open(&inner).unwrap();
        for target in
            ["/../index.html", "/%2e%2e/index.html", "/..%2findex.html", "/link.html", "/%zz", "/%00", "x"]
        {
            assert!(matches!(site.find(target).unwrap(), Found::Nothing), "{target}");
        }
    }

    #[test]
    fn text_has_a_gzip_twin_and_photographs_have_none() {
        let folder = folder();
        let site = Site::open(folder.path()).unwrap();
        let page = file(&site, "/");
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&page.gzip.as_ref().unwrap()[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(Some(plain), page.held.as_ref().map(|b| b.to_vec()));
        assert!(file(&site, "/a%20b.png").gzip.is_none());
    }

    #[test]
    fn what_a_folder_tells_of_media_types_holds_and_is_served_to_nobody() {
        let folder = folder();
        std::fs::write(folder.path().join("article"), "<p>text").unwrap();
        std::fs::write(folder.path().join(MEDIA_TYPES), "article\ttext/html\nsub/index.html\tno/such\n")
            .unwrap();
        let site = Site::open(folder.path()).unwrap();
        assert_eq!(file(&site, "/article").media_type, "text/html");
        assert_eq!(file(&site, "/sub/").media_type, "text/html", "by its name");
        assert!(matches!(site.find("/.media-types").unwrap(), Found::Nothing));
    }

    #[test]
    fn a_changed_file_is_served_changed() {
        let folder = folder();
        let site = Site::open(folder.path()).unwrap();
        let before = file(&site, "/").sha256.clone();
        std::fs::write(folder.path().join("index.html"), "new").unwrap();
        let after = file(&site, "/");
        assert_ne!(before, after.sha256);
        assert_eq!(after.sha256, sha256_hex(b"new"));
    }

    #[test]
    fn a_file_too_large_to_hold_is_hashed_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let body = vec![1u8; HELD_MOST as usize + 1];
        std::fs::write(folder.path().join("big.bin"), &body).unwrap();
        let site = Site::open(folder.path()).unwrap();
        let asset = file(&site, "/big.bin");
        assert!(asset.held.is_none());
        assert_eq!(asset.sha256, sha256_hex(&body));
    }
}
