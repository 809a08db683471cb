//! Whether what the browser got is what the folders hold: by hash, and for recoded images by their size. Reads the folders
//! through the same code that serves them; judges one load at a time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use farhop_workload::browser::{PageLoad, Resource, THROWN_AWAY};
use farhop_workload::origins::media::is_text;
use farhop_workload::origins::site::{Asset, Found, Site, sha256_hex};
use url::Url;

/// The sites of a page, by host name.
pub(crate) type Sites = HashMap<String, Arc<Site>>;

/// What the check of one load found.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Resources as the folder has them, what it rightly lacks included.
    pub(crate) ok: u64,
    /// What was wrong, one line each.
    pub(crate) bad: Vec<String>,
    /// The files that the browser used, each once.
    pub(crate) used: Vec<Arc<Asset>>,
    /// Resources that came and of which the browser kept no byte.
    pub(crate) unseen: u64,
    /// Body bytes of images that came recoded, by the file that they stand for.
    pub(crate) recoded: HashMap<PathBuf, u64>,
}

/// The verdict on one resource.
enum Verdict {
    Right(Option<Arc<Asset>>),
    Wrong(String),
    /// It came, and there is nothing to compare.
    Unseen,
    /// Of no site of the page, or given up by the page itself: says nothing about the way it came.
    Foreign,
}

/// Checks every resource of a load; `may_recode` accepts images of other bytes and the same size.
pub(crate) fn check(sites: &Sites, load: &PageLoad, may_recode: bool) -> Checked {
    let mut checked = Checked::default();
    for resource in &load.resources {
        match judge(sites, resource, may_recode) {
            Verdict::Right(asset) => {
                checked.ok += 1;
                if let (Some(asset), Some(bytes), Some(hash)) = (&asset, resource.bytes, &resource.sha256)
                    && resource.status == Some(200)
                    && *hash != asset.sha256
                    && !is_text(asset.media_type)
                {
                    checked.recoded.insert(asset.path.clone(), bytes);
                }
                let new = asset.filter(|asset| !checked.used.iter().any(|known| known.path == asset.path));
                checked.used.extend(new);
            }
            Verdict::Wrong(why) => checked.bad.push(format!("{}: {why}", resource.url)),
            Verdict::Unseen => checked.unseen += 1,
            Verdict::Foreign => {}
        }
    }
    checked
}

fn judge(sites: &Sites, resource: &Resource, may_recode: bool) -> Verdict {
    let Ok(url) = Url::parse(&resource.url) else { return Verdict::Foreign };
    let Some(site) = url.host_str().and_then(|host| sites.get(host)) else { return Verdict::Foreign };
    if let Some(failure) = &resource.failure {
        if failure == THROWN_AWAY {
            return Verdict::Unseen;
        }
        // The page or its browser gave it up, as it would over any way.
        let given_up = failure == "net::ERR_ABORTED" && resource.status.is_none();
        return if given_up { Verdict::Foreign } else { Verdict::Wrong(failure.clone()) };
    }
    let status = resource.status.unwrap_or(0);
    match site.find(url.path()) {
        Ok(Found::File(asset)) if status == 200 => match same(&asset, resource, may_recode) {
            Ok(()) => Verdict::Right(Some(asset)),
            Err(why) => Verdict::Wrong(why),
        },
        // A range or a validation that the page asked for: the browser puts no whole body before us.
        Ok(Found::File(asset)) if matches!(status, 206 | 304) => Verdict::Right(Some(asset)),
        Ok(Found::Folder) if status == 301 => Verdict::Right(None),
        Ok(Found::Nothing) if status == 404 => Verdict::Right(None),
        Ok(found) => Verdict::Wrong(format!("status {status} for {}", described(&found))),
        Err(error) => Verdict::Wrong(format!("its file cannot be read: {error}")),
    }
}

fn described(found: &Found) -> &'static str {
    match found {
        Found::File(_) => "a file of the folder",
        Found::Folder => "a folder named without its slash",
        Found::Nothing => "what the folder lacks",
    }
}

fn same(asset: &Asset, resource: &Resource, may_recode: bool) -> Result<(), String> {
    let Some(hash) = &resource.sha256 else { return Err("no body was seen".into()) };
    if *hash == asset.sha256 {
        return Ok(());
    }
    // The browser hands text over decoded: it is compared as each charset that pages use would have it.
    if is_text(asset.media_type)
        && let Some(bytes) = &asset.held
        && CHARSETS.iter().any(|charset| sha256_hex(charset.decode(bytes).0.as_bytes()) == *hash)
    {
        return Ok(());
    }
    if may_recode && let Some(decoded) = resource.decoded {
        return match asset.held.as_ref().and_then(|bytes| imagesize::blob_size(bytes).ok()) {
            Some(size) if (size.width as u64, size.height as u64) == (decoded.0.into(), decoded.1.into()) => {
                Ok(())
            }
            _ => Err(format!("a recoded image of {}x{}, not the original's size", decoded.0, decoded.1)),
        };
    }
    let (got, right) = (resource.bytes.unwrap_or(0), asset.len);
    Err(format!("other bytes than the folder's ({got} bytes, the file has {right})"))
}

/// The charsets that more than a trace of the web is written in.
const CHARSETS: [&encoding_rs::Encoding; 12] = [
    encoding_rs::UTF_8,
    encoding_rs::WINDOWS_1252,
    encoding_rs::UTF_16LE,
    encoding_rs::UTF_16BE,
    encoding_rs::WINDOWS_1251,
    encoding_rs::ISO_8859_2,
    encoding_rs::SHIFT_JIS,
    encoding_rs::EUC_JP,
    encoding_rs::GB18030,
    encoding_rs::BIG5,
    encoding_rs::EUC_KR,
    encoding_rs::KOI8_R,
];

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0";

    fn sites() -> (tempfile::TempDir, Sites) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.js"), "let a = 1;").unwrap();
        std::fs::write(folder.path().join("latin.html"), b"caf\xe9").unwrap();
        std::fs::write(folder.path().join("bom.css"), b"\xef\xbb\xbfp {}").unwrap();
        std::fs::write(folder.path().join("p.png"), PNG).unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let site = Arc::new(Site::open(folder.path()).unwrap());
        (folder, Sites::from([("a.test".to_owned(), site)]))
    }

    fn resource(path: &str, status: u16, body: &[u8]) -> Resource {
        Resource {
            url: format!("http://a.test{path}"),
            destination: "other".into(),
            status: Some(status),
            protocol: None,
            media_type: None,
            sha256: Some(sha256_hex(body)),
            bytes: Some(body.len() as u64),
            decoded: None,
            start_ms: None,
            sent_ms: None,
            first_byte_ms: None,
            end_ms: None,
            initiator: None,
            redirected_to: None,
            failure: None,
        }
    }

    fn checked(sites: &Sites, resources: Vec<Resource>, may_recode: bool) -> Checked {
        let load = PageLoad {
            browser: None,
            load_ms: None,
            first_paint_ms: None,
            largest_paint_ms: None,
            began_ms: None,
            connections: None,
            first_byte_ms: None,
            url: String::new(),
            errors: Vec::new(),
            resources,
        };
        check(sites, &load, may_recode)
    }

    fn judged(sites: &Sites, resource: Resource, may_recode: bool) -> (u64, Vec<String>) {
        let checked = checked(sites, vec![resource], may_recode);
        (checked.ok, checked.bad)
    }

    #[test]
    fn the_folders_bytes_are_right_and_any_others_wrong() {
        let (_folder, sites) = sites();
        assert_eq!(judged(&sites, resource("/a.js?v=2", 200, b"let a = 1;"), false).0, 1);
        let (ok, bad) = judged(&sites, resource("/a.js", 200, b"let a = 2;"), true);
        assert_eq!(
            (ok, bad),
            (0, vec!["http://a.test/a.js: other bytes than the folder's (10 bytes, the file has 10)".into()])
        );
    }

    #[test]
    fn text_is_right_in_the_charset_in_which_the_browser_decoded_it() {
        let (_folder, sites) = sites();
        assert_eq!(judged(&sites, resource("/latin.html", 200, "café".as_bytes()), false).0, 1);
        assert_eq!(judged(&sites, resource("/bom.css", 200, b"p {}"), false).0, 1);
        assert_eq!(judged(&sites, resource("/latin.html", 200, b"cafe"), false).0, 0);
    }

    #[test]
    fn a_status_has_to_fit_what_the_folder_has() {
        let (_folder, sites) = sites();
        let table = [
            ("/favicon.ico", 404, 1),
            ("/sub", 301, 1),
            ("/a.js", 304, 1),
            ("/favicon.ico", 200, 0),
            ("/a.js", 502, 0),
        ];
        for (path, status, ok) in table {
            assert_eq!(judged(&sites, resource(path, status, b""), false).0, ok, "{path} {status}");
        }
    }

    #[test]
    fn a_recoded_image_is_right_where_allowed_and_of_the_same_size() {
        let (_folder, sites) = sites();
        let recoded = |decoded| Resource { decoded: Some(decoded), ..resource("/p.png", 200, b"smaller") };
        assert_eq!(judged(&sites, recoded((3, 2)), true).0, 1);
        let checked = checked(&sites, vec![recoded((3, 2)), resource("/a.js", 200, b"let a = 1;")], true);
        assert_eq!(checked.recoded.into_values().collect::<Vec<_>>(), [7], "its size is that of what came");
        assert_eq!(judged(&sites, recoded((3, 2)), false).0, 0);
        assert_eq!(judged(&sites, recoded((2, 2)), true).0, 0);
        assert_eq!(judged(&sites, resource("/p.png", 200, b"undecodable"), true).0, 0);
    }

    #[test]
    fn failures_count_unless_the_page_itself_gave_up() {
        let (_folder, sites) = sites();
        let failed = |failure: &str, status| Resource {
            failure: Some(failure.into()),
            status,
            ..resource("/a.js", 200, b"")
        };
        assert_eq!(judged(&sites, failed("net::ERR_EMPTY_RESPONSE", None), false).1.len(), 1);
        assert_eq!(judged(&sites, failed("net::ERR_ABORTED", Some(200)), false).1.len(), 1);
        assert_eq!(judged(&sites, failed("net::ERR_ABORTED", None), false), (0, vec![]));
        assert_eq!(judged(&sites, failed(THROWN_AWAY, Some(200)), false), (0, vec![]), "nothing to compare");
        assert_eq!(checked(&sites, vec![failed(THROWN_AWAY, Some(200))], false).unseen, 1);
        let elsewhere =
            Resource { url: "http://other.test/".into(), ..failed("net::ERR_NAME_NOT_RESOLVED", None) };
        assert_eq!(judged(&sites, elsewhere, false), (0, vec![]));
    }
}
