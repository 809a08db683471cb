//! The page `article`: a text with style sheets that import each other, web fonts, scripts and pictures over four origins:
//! its own two, a host of type faces and a host of pictures that counts visits. Its packages (Chart.js and Day.js, MIT;
//! Inter and Source Serif, OFL) come from npm. Writes files into the folder it is given and beside it, nothing else.

use std::path::Path;
use std::time::Duration;

use super::landscape::Scene;
use super::{PageError, Site, copy, jpeg, write};
use crate::npm::{self, Package};

/// The site's own second origin: scripts and the first picture.
const STATIC_HOST: &str = "static.article.test";

/// A third party: the style sheet of one type face and its font files, which cross origins by CORS.
const LETTERS: (&str, Duration) = ("letters.test", Duration::from_millis(40));

/// Another: pictures, and the script that counts who looks at them.
const PICTURES_HOST: (&str, Duration) = ("pictures.test", Duration::from_millis(60));

const CHART: Package = Package { name: "chart.js", version: "^4.4" };
const DAYJS: Package = Package { name: "dayjs", version: "^1.11" };
const SANS: Package = Package { name: "@fontsource/inter", version: "^5.0" };
const SERIF: Package = Package { name: "@fontsource/source-serif-4", version: "^5.0" };

/// Pictures: name, width, height, quality. The first, at the top of the page, is on the site's own origin.
const PICTURES: [(&str, u32, u32, u8); 5] = [
    ("hero", 960, 420, 78),
    ("harbour", 480, 320, 82),
    ("station", 480, 320, 80),
    ("village", 480, 320, 76),
    ("antenna", 480, 320, 84),
];

/// Writes the document's site into `folder` and the other three beside it; gives those.
pub(super) fn build(folder: &Path, node: &Path) -> Result<[Site; 3], PageError> {
    npm::ensure(node, &[CHART, DAYJS, SANS, SERIF])?;
    let beside = |host: &str, delay| Site {
        delay,
        ..Site::new(host, folder.with_file_name(format!("article-{host}")))
    };
    let own_static = beside(STATIC_HOST, Duration::ZERO);
    let letters = beside(LETTERS.0, LETTERS.1);
    let pictures = beside(PICTURES_HOST.0, PICTURES_HOST.1);
    let mut page = include_str!("article_files/index.html").to_owned();
    for (name, site) in [("STATIC", &own_static), ("LETTERS", &letters), ("PICTURES", &pictures)] {
        page = page.replace(name, &format!("//{}", site.host));
    }
    write(&folder.join("index.html"), page.as_bytes())?;
    for (name, text) in [
        ("base.css", include_str!("article_files/base.css")),
        ("article.css", include_str!("article_files/article.css")),
        ("figures.css", include_str!("article_files/figures.css")),
        ("fonts.css", include_str!("article_files/fonts.css")),
    ] {
        write(&folder.join("style").join(name), text.as_bytes())?;
    }
    write(&letters.folder.join("source-serif.css"), include_bytes!("article_files/source-serif.css"))?;
    for (package, file, to) in [
        (SANS, "files/inter-latin-400-normal.woff2", folder.join("fonts/inter-400.woff2")),
        (SANS, "files/inter-latin-700-normal.woff2", folder.join("fonts/inter-700.woff2")),
        (SANS, "LICENSE", folder.join("fonts/LICENSE")),
        (SERIF, "files/source-serif-4-latin-400-normal.woff2", letters.folder.join("files/serif-400.woff2")),
        (
            SERIF,
            "files/source-serif-4-latin-400-italic.woff2",
            letters.folder.join("files/serif-400-italic.woff2"),
        ),
        (SERIF, "LICENSE", letters.folder.join("files/LICENSE")),
        (CHART, "dist/chart.umd.js", own_static.folder.join("script/chart.js")),
        (DAYJS, "dayjs.min.js", own_static.folder.join("script/dayjs.js")),
    ] {
        copy(node, package.name, file, &to)?;
    }
    write(&own_static.folder.join("script/article.js"), include_bytes!("article_files/article.js"))?;
    write(&pictures.folder.join("visits.js"), include_bytes!("article_files/visits.js"))?;
    for (place, (name, width, height, quality)) in PICTURES.into_iter().enumerate() {
        let scene = Scene { seed: 104_729 + place as u32, width, height, quality };
        let host = if place == 0 { &own_static } else { &pictures };
        write(&host.folder.join(format!("pictures/{name}.jpg")), &jpeg(&scene)?)?;
    }
    Ok([own_static, letters, pictures])
}
