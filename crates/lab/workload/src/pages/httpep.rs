//! The test pages of HTTPEP's study (Davern et al., IJNGC 2011, §4): the same text on each, with 1 to 30 JPEG images that
//! weigh 10 KB on average. The study took photographs of the Caltech 101 set; these are made up, at its pictures' size.
//! Writes files into the folder it is given, nothing else.

use std::fmt::Write;
use std::path::Path;

use super::photos::photo;
use super::{HTTPEP, PageError, jpeg, write};

/// How many images the page of this name has; none for a name that is no page of the study.
pub(super) fn images(name: &str) -> Option<u32> {
    HTTPEP.contains(&name).then(|| name.strip_prefix("httpep-")?.parse().ok()).flatten()
}

/// Writes the page with so many images into `folder`.
pub(super) fn build(folder: &Path, images: u32) -> Result<(), PageError> {
    let mut gallery = String::new();
    for number in 1..=images {
        let scene = photo(number);
        let name = format!("images/{number:02}.jpg");
        write(&folder.join(&name), &jpeg(&scene)?)?;
        let _ = writeln!(
            gallery,
            "<img src=\"{name}\" width=\"{}\" height=\"{}\" alt=\"\">",
            scene.width, scene.height
        );
    }
    let page = include_str!("httpep.html").replace("<!-- images -->", &gallery);
    write(&folder.join("index.html"), page.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_study_has_as_many_images_as_its_name_says() {
        assert_eq!(HTTPEP.map(images), [Some(1), Some(5), Some(10), Some(20), Some(30)]);
        assert_eq!(images("httpep-2"), None);
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), 5).unwrap();
        let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
        assert_eq!(page.matches("<img ").count(), 5);
        assert_eq!(std::fs::read_dir(folder.path().join("images")).unwrap().count(), 5);
    }
}
