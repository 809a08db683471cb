//! The page `article`: a text with style sheets that import each other, web fonts, scripts and pictures over two origins.
//! Its packages (Chart.js and Day.js, MIT; Inter and Source Serif, OFL) come from npm. Writes files into the folders it
//! is given, nothing else.

use std::path::Path;

use super::landscape::Scene;
use super::{PageError, copy, jpeg, write};
use crate::npm::{self, Package};

/// The origin of scripts and pictures; style and fonts stay with the document, since fonts of another origin need CORS.
pub(super) const STATIC_HOST: &str = "static.article.test";

const CHART: Package = Package { name: "chart.js", version: "^4.4" };
const DAYJS: Package = Package { name: "dayjs", version: "^1.11" };
const SANS: Package = Package { name: "@fontsource/inter", version: "^5.0" };
const SERIF: Package = Package { name: "@fontsource/source-serif-4", version: "^5.0" };

/// Pictures: name, width, height, quality.
const PICTURES: [(&str, u32, u32, u8); 5] = [
    ("hero", 960, 420, 78),
    ("harbour", 480, 320, 82),
    ("station", 480, 320, 80),
    ("village", 480, 320, 76),
    ("antenna", 480, 320, 84),
];

/// Writes the document's site and the static site.
pub(super) fn build(folder: &Path, static_folder: &Path, node: &Path) -> Result<(), PageError> {
    npm::ensure(node, &[CHART, DAYJS, SANS, SERIF])?;
    let page = include_str!("article_files/index.html").replace("STATIC", &format!("//{STATIC_HOST}"));
    write(&folder.join("index.html"), page.as_bytes())?;
    for (name, text) in [
        ("base.css", include_str!("article_files/base.css")),
        ("article.css", include_str!("article_files/article.css")),
        ("figures.css", include_str!("article_files/figures.css")),
        ("fonts.css", include_str!("article_files/fonts.css")),
    ] {
        write(&folder.join("style").join(name), text.as_bytes())?;
    }
    for (package, file, name) in [
        (SANS, "files/inter-latin-400-normal.woff2", "inter-400.woff2"),
        (SANS, "files/inter-latin-700-normal.woff2", "inter-700.woff2"),
        (SERIF, "files/source-serif-4-latin-400-normal.woff2", "serif-400.woff2"),
        (SERIF, "files/source-serif-4-latin-400-italic.woff2", "serif-400-italic.woff2"),
        (SANS, "LICENSE", "inter-LICENSE"),
        (SERIF, "LICENSE", "serif-LICENSE"),
    ] {
        copy(node, package.name, file, &folder.join("fonts").join(name))?;
    }
    copy(node, CHART.name, "dist/chart.umd.js", &static_folder.join("script/chart.js"))?;
    copy(node, DAYJS.name, "dayjs.min.js", &static_folder.join("script/dayjs.js"))?;
    write(&static_folder.join("script/article.js"), include_bytes!("article_files/article.js"))?;
    for (place, (name, width, height, quality)) in PICTURES.into_iter().enumerate() {
        let scene = Scene { seed: 104_729 + place as u32, width, height, quality };
        write(&static_folder.join(format!("pictures/{name}.jpg")), &jpeg(&scene)?)?;
    }
    Ok(())
}
