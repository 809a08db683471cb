//! The pages of a plan, built into folders: those that the lab makes, those of others, and those of so many objects of one
//! size.

use std::fmt::Write as _;
use std::path::Path;

use farhop_workload::npm;
use farhop_workload::pages::{self, Page, Site};

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
        PageKind::Folder(place, entry) => Ok(one(place, entry)),
        PageKind::Made { objects, object, document } => {
            let own = folder.join(&page.name);
            let images = own.join("objects");
            std::fs::create_dir_all(&images).map_err(PlanError::file(&images))?;
            let mut html = "<!doctype html>\n<title>Objects of one size</title>\n".to_owned();
            for number in 1..=*objects {
                let file = images.join(format!("{number:04}.bin"));
                std::fs::write(&file, noise(u64::from(number), object.0)).map_err(PlanError::file(&file))?;
                let _ = writeln!(html, "<img src=\"objects/{number:04}.bin\" alt=\"\">");
            }
            // A comment that no coding shrinks fills it up.
            let missing = document.0.saturating_sub(html.len() as u64 + 7);
            let filler: String =
                noise(0, missing).into_iter().map(|byte| char::from(b'0' + byte % 64)).collect();
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

/// Bytes that look random and are the same on every machine (Marsaglia's xorshift64).
fn noise(seed: u64, count: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| step()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_loader::PageGraph;
    use farhop_units::Bytes;

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
        assert_eq!((size("index.html"), size("objects/0007.bin")), (4_000, 5_000));
    }
}
