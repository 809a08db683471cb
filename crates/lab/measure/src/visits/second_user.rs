//! A second user's first visit to a page that the remote holds: only what is private or stale crosses.

use std::path::Path;

use farhop_compare::Who;
use farhop_workload::{npm, pages};

use super::{not_loaded, tell, up};
use crate::group::Context;
use crate::{MeasureError, Row};

/// What begins with these paths is the user's own on the page of two users, or stale at once; the rest is anyone's for an hour.
const PRIVATE: &str = "/private/";
const STALE: &str = "/stale/";

/// A page whose things are anyone's, the user's own, or stale at once, visited by one user and then by another.
pub(super) fn row(context: &Context) -> Result<Row, MeasureError> {
    let what = "a second user's first visit to a page that the remote holds";
    let bound = "only what is private or stale crosses, files right";
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let mut page = pages::build("photos", folder.path(), &npm::cache_folder())
        .map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let site = page.sites.first_mut().ok_or_else(|| not_loaded("photos"))?;
    let own = divided(&site.folder)?;
    site.caching = [("/", "max-age=3600"), (PRIVATE, "private, max-age=3600"), (STALE, "max-age=0")]
        .map(|(path, caching)| (path.to_owned(), caching.to_owned()))
        .into();
    let mut visits = up(context, &page)?;
    visits.begin()?;
    let first = visits.visit(&page, Who::User)?;
    tell("photos", 1, "first user", &first);
    let second = visits.visit(&page, Who::Neighbour)?;
    tell("photos", 1, "second user", &second);
    let may =
        |url: &str| [PRIVATE, STALE].iter().any(|path| url.contains(path)) || url.ends_with("/favicon.ico");
    let others: Vec<&String> = second.crossed.iter().map(|(url, _)| url).filter(|url| !may(url)).collect();
    // What crosses unasked crosses, too: what the private things weigh, and a little for each.
    let most = own + (second.right + 2) * 1_000;
    let wrong: Vec<&String> = first.wrong.iter().chain(&second.wrong).collect();
    for line in others.iter().chain(&wrong) {
        eprintln!("second user: {line}");
    }
    let measured = format!(
        "{} requests crossed, {} of them else; {} bytes towards the user ({own} are private), first visit {}; {} files wrong",
        second.crossed.len(),
        others.len(),
        second.bytes[0],
        first.bytes[0],
        wrong.len()
    );
    let pass = others.is_empty()
        && wrong.is_empty()
        && second.right > 10
        && second.bytes[0] <= most
        && first.bytes[0] > 2 * second.bytes[0];
    Ok(Row::judged(what, measured, format!("{bound}, ≤ {most} bytes"), pass))
}

/// Moves two of the pictures of a page to where things are private and two to where they are stale, with the names in the
/// document; the bytes of the private ones.
fn divided(folder: &Path) -> Result<u64, MeasureError> {
    let failed = MeasureError::system("the page photos");
    let document = folder.join("index.html");
    let mut text = std::fs::read_to_string(&document).map_err(&failed)?;
    let mut private = 0;
    let named: Vec<String> = text
        .split("src=\"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"').map(|(name, _)| name.to_owned()))
        .filter(|name| name.ends_with(".jpg") && folder.join(name).is_file())
        .take(4)
        .collect();
    if named.len() < 4 {
        return Err(MeasureError::Unexpected("the page photos names fewer than four pictures".into()));
    }
    for (number, name) in named.iter().enumerate() {
        let to = if number % 2 == 0 { PRIVATE } else { STALE };
        let moved = format!("{}{number}.jpg", to.trim_start_matches('/'));
        let target = folder.join(&moved);
        std::fs::create_dir_all(target.parent().unwrap_or(folder)).map_err(&failed)?;
        std::fs::rename(folder.join(name), &target).map_err(&failed)?;
        if to == PRIVATE {
            private += target.metadata().map_err(&failed)?.len();
        }
        text = text.replace(&format!("src=\"{name}\""), &format!("src=\"{moved}\""));
    }
    std::fs::write(&document, text).map_err(&failed)?;
    Ok(private)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_move_to_where_they_are_private_or_stale_and_the_document_knows() {
        let folder = tempfile::tempdir().unwrap();
        let mut html = String::new();
        for number in 0..6 {
            std::fs::write(folder.path().join(format!("{number}.jpg")), vec![7; 100]).unwrap();
            html.push_str(&format!("<img src=\"{number}.jpg\">"));
        }
        std::fs::write(folder.path().join("index.html"), html).unwrap();
        assert_eq!(divided(folder.path()).unwrap(), 200);
        let html = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
        assert_eq!(html.matches("src=\"private/").count(), 2);
        assert_eq!(html.matches("src=\"stale/").count(), 2);
        assert!(folder.path().join("private/0.jpg").is_file() && folder.path().join("stale/1.jpg").is_file());
    }
}
