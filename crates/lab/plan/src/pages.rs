//! The pages of a plan, built into folders: those that the lab makes, those of others, and those of so many objects of one
//! size.

use std::fmt::Write as _;
use std::path::Path;

use farhop_loader::{GraphError, Object, PageGraph};
use farhop_workload::pages::{self, Page, Site};
use farhop_workload::recorded::Recording;
use farhop_workload::{noise, npm, picture};
use url::Url;

use crate::error::PlanError;
use crate::plan::{PageKind, PageSpec};

/// Builds a page into `folder`.
///
/// # Errors
/// The disk refuses, or a package is missing.
pub(crate) fn build(page: &PageSpec, folder: &Path) -> Result<Page, PlanError> {
    let host = format!("{}.test", page.name);
    let one = |folder: &Path, entry: &str| Page {
        name: page.name.clone(),
        entry: entry.to_owned(),
        sites: vec![Site::new(&host, folder)],
    };
    match &page.kind {
        PageKind::Known(name) => Ok(pages::build(name, folder, &npm::cache_folder())?),
        PageKind::Upload(_) => {
            let own = folder.join(&page.name);
            std::fs::create_dir_all(&own).map_err(PlanError::file(&own))?;
            let file = own.join("index.html");
            std::fs::write(&file, "<!doctype html>\n<title>Uploads</title>\n")
                .map_err(PlanError::file(&file))?;
            Ok(one(&own, "/"))
        }
        PageKind::Recording(file, document) => {
            let recording = Recording::read(file)?;
            Ok(recording.unfold(&page.name, document.as_deref(), &folder.join(&page.name))?)
        }
        PageKind::Folder(place, entry) => Ok(one(place, entry)),
        PageKind::Made { objects, object, document } => {
            let own = folder.join(&page.name);
            let images = own.join("objects");
            std::fs::create_dir_all(&images).map_err(PlanError::file(&images))?;
            let mut html = "<!doctype html>\n<title>Objects of one size</title>\n".to_owned();
            for number in 1..=*objects {
                let file = images.join(format!("{number:04}.gif"));
                // A browser that cannot decode one throws its bytes away: then nobody could compare them.
                std::fs::write(&file, picture(u64::from(number), object.0 as usize))
                    .map_err(PlanError::file(&file))?;
                let _ = writeln!(html, "<img src=\"objects/{number:04}.gif\" alt=\"\">");
            }
            // A comment that no coding shrinks fills it up.
            let missing = document.0.saturating_sub(html.len() as u64 + 7);
            let filler: String =
                noise(0, missing as usize).into_iter().map(|byte| char::from(b'0' + byte % 64)).collect();
            let filler = filler.replace('>', "?").replace('<', "!");
            if missing > 0 {
                let _ = write!(html, "<!--{filler}-->");
            }
            let file = own.join("index.html");
            std::fs::write(&file, html).map_err(PlanError::file(&file))?;
            Ok(one(&own, "/"))
        }
    }
}

/// Whether what a page names beside the plan is there, and is a page.
///
/// # Errors
/// It is not.
pub(crate) fn check(page: &PageSpec) -> Result<(), PlanError> {
    match &page.kind {
        PageKind::Recording(file, _) => Recording::read(file).map(drop).map_err(PlanError::from),
        // Nothing of it is built anywhere.
        PageKind::Folder(..) => graph(&build(page, Path::new(""))?, page, false).map(drop),
        PageKind::Known(_) | PageKind::Made { .. } | PageKind::Upload(_) => Ok(()),
    }
}

/// What the loader loads of a page that was built.
///
/// # Errors
/// It cannot be read.
pub(crate) fn graph(page: &Page, spec: &PageSpec, secure: bool) -> Result<PageGraph, PlanError> {
    let PageKind::Upload(bytes) = spec.kind else { return Ok(PageGraph::of(page, secure)?) };
    let no_address = || GraphError::Address(page.name.clone());
    let host = &page.sites.first().ok_or_else(no_address)?.host;
    let scheme = if secure { "https" } else { "http" };
    let url = Url::parse(&format!("{scheme}://{host}/upload")).map_err(|_| no_address())?;
    Ok(PageGraph { objects: vec![Object::upload(url, bytes.0)] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::Bytes;

    #[test]
    fn a_page_that_a_plan_names_and_that_is_not_there_is_no_page() {
        let folder = tempfile::tempdir().unwrap();
        let checked = |kind| {
            let spec = PageSpec { name: "mine".into(), kind, at: None, group: None };
            check(&spec).map_err(|error| error.to_string())
        };
        let site = |entry: &str| PageKind::Folder(folder.path().into(), entry.into());
        assert!(checked(site("/")).unwrap_err().contains("mine"));
        std::fs::write(folder.path().join("index.html"), "<p>a page").unwrap();
        assert_eq!(checked(site("/")), Ok(()));
        assert!(checked(PageKind::Folder("/nowhere".into(), "/".into())).unwrap_err().contains("/nowhere"));
        let lost = PageKind::Recording("/nowhere/a.har".into(), None);
        assert!(checked(lost).unwrap_err().contains("/nowhere/a.har"));
        let wrong = PageKind::Recording(folder.path().join("index.html"), None);
        assert!(checked(wrong).is_err());
    }

    #[test]
    fn an_upload_is_one_request_to_an_origin_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let spec =
            PageSpec { name: "up".into(), kind: PageKind::Upload(Bytes(9_000)), at: None, group: None };
        let page = build(&spec, folder.path()).unwrap();
        let graph = graph(&page, &spec, true).unwrap();
        assert_eq!((graph.objects.len(), graph.objects[0].upload), (1, Some(9_000)));
        assert_eq!(graph.objects[0].url.as_str(), "https://up.test/upload");
    }

    #[test]
    fn a_made_page_has_its_objects_at_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let kind = PageKind::Made { objects: 12, object: Bytes(5_000), document: Bytes(4_000) };
        let spec = PageSpec { name: "made".into(), kind, at: None, group: None };
        let page = build(&spec, folder.path()).unwrap();
        let graph = PageGraph::of(&page, false).unwrap();
        assert_eq!(graph.objects.len(), 13);
        let hashes: std::collections::HashSet<_> =
            graph.objects.iter().map(|it| it.sha256.as_str()).collect();
        assert_eq!(hashes.len(), 13, "no two are alike");
        let size = |name: &str| std::fs::metadata(folder.path().join("made").join(name)).unwrap().len();
        assert_eq!((size("index.html"), size("objects/0007.gif")), (4_000, 5_000));
    }
}
