//! Documents, style sheets and scripts to measure reading with, made up here after kinds that are usual on the web: the
//! plain ones and those that cost most for their size.

use farhop_page::{Destination, Document, Options, ResourceInfo};
use std::fmt::Write;
use url::Url;

/// What the network gives at a time.
const PIECE: usize = 16 * 1024;
/// Bytes of a style sheet or script.
const LONG: usize = 150 * 1024;

/// Something to read.
pub(crate) struct Case {
    pub(crate) name: String,
    /// What a page has it for; `None`: it is a page.
    pub(crate) file: Option<Destination>,
    pub(crate) text: String,
    /// MB/s at which a core has to read it at least.
    pub(crate) least: u32,
}

impl Case {
    pub(crate) fn new(name: &str, file: Option<Destination>, text: String) -> Self {
        Case { name: name.to_owned(), file, text, least: 100 }
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    let page = |name, text| Case::new(name, None, text);
    let sheet = |name, text| Case::new(name, Some(Destination::Style), text);
    let script = |name, text| Case::new(name, Some(Destination::Script), text);
    vec![
        page("HTML", article()),
        page("HTML with a style element", article().replace("</head>", STYLE)),
        page("HTML with style attributes", newsletter()),
        page("HTML, deeply nested", nested()),
        // An element for every 25 bytes (docs/decisions/0015).
        Case { least: 40, ..page("HTML of table cells", cells()) },
        page("HTML beyond ASCII, with a web font", words()),
        sheet("CSS of components", components()),
        sheet("CSS minified on one line", minified()),
        sheet("CSS of icons in files", icon_files()),
        sheet("CSS of icons in a font", icon_font()),
        script("JavaScript", bundle()),
        script("JavaScript of strings", strings()),
    ]
}

impl Case {
    /// Reads it from its first byte to its last; gives the hints found. `None` if it is not read at all.
    pub(crate) fn read(&self) -> Option<usize> {
        let mut document =
            Document::new(&Url::parse("http://site.test/page.html").ok()?, Some("utf-8"), Options::default());
        let Some(destination) = self.file else {
            let found: usize =
                self.text.as_bytes().chunks(PIECE).map(|piece| document.html(piece).len()).sum();
            return Some(found + document.html_end().len());
        };
        let mut hints = document.html(SMALL_PAGE.as_bytes());
        hints.extend(document.html_end());
        let hint = hints.iter().find(|hint| hint.destination == destination)?;
        let id = document.resource_begins(hint, &hint.url, &ResourceInfo::default())?;
        let found: usize =
            self.text.as_bytes().chunks(PIECE).map(|piece| document.resource(id, piece).len()).sum();
        Some(found + document.resource_end(id).len())
    }
}

const SMALL_PAGE: &str = "<!doctype html><link rel=stylesheet href=/css/a.css><script type=module src=a.js></script>\
    <body class='home wide'><main id=main><ul class=list><li class='item first'><a class='link icon-6' href=x>x</a></ul>\
    <p class=lead>x<i class=glyph-5></i></main>";

/// Articles with navigation, cards, images and texts, as content management systems write them.
fn article() -> String {
    let mut page = String::from(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>An article</title>\
         <script defer src=/js/main.js></script></head><body class=\"page home\">",
    );
    for at in 0..150 {
        let _ = write!(
            page,
            "\n  <article id=\"post-{at}\" class=\"post card card-{} shadow-sm\" data-id=\"{at}\">\n    \
             <h2 class=\"entry-title\"><a href=\"/posts/{at}/about-something\" rel=\"bookmark\">Title &amp; more</a></h2>\n    \
             <p>{}</p>\n    <ul class=\"tags\"><li><a href=\"/tag/a\">one</a><li><a href=\"/tag/b\">two</a></ul>\n    \
             <p>{}<em>with emphasis</em> and <code>code</code>.</p>\n  </article>",
            at % 7,
            "Some words of a text that goes on for a while, as texts do. ".repeat(6),
            "More words, a line or three of them, before the next. ".repeat(5),
        );
        if at % 10 == 0 {
            let _ = write!(
                page,
                "<img src=\"/img/{at}.jpg\" width=640 height=480 alt=\"A picture\" loading=lazy>"
            );
        }
    }
    page + "</body></html>"
}

/// Rules for most of the elements of [`article`], one of which has an image.
const STYLE: &str = "<style>@font-face{font-family:Text;src:url(/text.woff2)}body{font-family:Text,sans-serif}\
     .card{display:block}.card-3{background:url(/card.png)}.entry-title a{font-weight:600}.tags li{display:inline}\
     p em{font-style:normal}code{font-family:monospace}.menu>li{list-style:url(/dot.png)}</style></head>";

/// What mail programs and page builders make: a `style` attribute on nearly every element.
fn newsletter() -> String {
    let mut page = String::from(
        "<!doctype html><html><head><meta charset=utf-8><title>News</title></head>\
         <body style=\"margin:0;padding:0;background-color:#f4f4f4;font-family:Arial,Helvetica,sans-serif\">",
    );
    for at in 0..200 {
        let _ = write!(
            page,
            "<table role=\"presentation\" width=\"600\" cellpadding=\"0\" cellspacing=\"0\" style=\"border-collapse:collapse;\
             width:600px;margin:0 auto;background:#ffffff\"><tr><td style=\"padding:24px 32px;font-family:Arial,Helvetica,\
             sans-serif;font-size:16px;line-height:24px;color:#333333\"><p style=\"margin:0 0 16px 0;font-weight:bold;\
             display:block\">Heading {at}</p><p style=\"margin: 0 0 16px; color: #555\">A sentence or two of what is new this \
             week, and why it matters.</p><a href=\"/news/{at}\" style=\"display:inline-block;padding:12px 24px;background-color:\
             #0d6efd;border-radius:4px;color:#fff;text-decoration:none\">Read more</a></td></tr></table>\
             <div class=\"tile\" style=\"background-image:url('/tiles/{}.jpg');background-size:cover;width:33.333%;\
             transform:translate3d({at}px,0,0)\"></div>",
            at % 40
        );
    }
    page + "</body></html>"
}

/// Page builders' boxes within boxes, with little text, and rules that ask for what stands around them.
fn nested() -> String {
    let mut page = String::from(
        "<!doctype html><html><head><title>Boxes</title><style>.column .column .widget{display:block}\
         .section .row .widget-inner{background:url(/box.png)}.wrap div>span{font-weight:700}.dark .widget p{color:#fff}\
         </style></head><body class=dark>",
    );
    for at in 0..50 {
        for level in 0..15 {
            let _ = write!(
                page,
                "<div class=\"section column column-{} row\" data-id=\"{at:04x}{level}\" data-element_type=\"column\">\n\
                 <div class=\"widget wrap widget-{at}\" data-widget_type=\"text-editor.default\">\n",
                level % 12
            );
        }
        let _ = writeln!(
            page,
            "<div class=\"widget-inner\"><p>Box {at}, and a word or two</p><span>x</span></div>"
        );
        page.push_str(&"</div>\n".repeat(30));
    }
    page + "</body></html>"
}

/// A table of short cells: as much mark-up and as little text as there can be.
fn cells() -> String {
    let mut page = String::from(
        "<!doctype html><html><head><title>Table</title><style>td.number{font-weight:bold}.changed{background:#ff0}\
         .next{background:url(/next.png)}</style></head><body><table class=table id=t><tbody>\n",
    );
    for at in 0..800 {
        let _ = write!(
            page,
            "<tr><td class=\"next\"></td><td class=\"number\" id=\"from_{at}\">{at}</td><td nowrap=\"nowrap\">value\
             &nbsp;<span class=\"changed\">{}</span></td><td><a href=\"#from_{at}\">t</a></td></tr>",
            at * 7
        );
    }
    page + "</tbody></table></body></html>"
}

/// Texts of other scripts, in fonts of the page's own.
fn words() -> String {
    let mut page = String::from(
        "<!doctype html><html lang=ru><head><meta charset=utf-8><title>Статьи</title><style>@font-face{font-family:Text;\
         src:url(/latin.woff2);unicode-range:U+0-FF}@font-face{font-family:Text;src:url(/cyrillic.woff2);unicode-range:U+400-4FF}\
         @font-face{font-family:Text;src:url(/han.woff2);unicode-range:U+3000-9FFF}body{font-family:Text}</style></head><body>",
    );
    for at in 0..150 {
        let han: String =
            (0..120).filter_map(|place| char::from_u32(0x4e00 + (at * 131 + place * 977) % 5_000)).collect();
        let _ = write!(
            page,
            "<article class=post><h2><a href=\"/{at}\">Заголовок {at}</a></h2><p>{}</p><p lang=zh>{han}。</p></article>",
            "Немного слов текста, который продолжается ещё какое-то время. ".repeat(5)
        );
    }
    page + "</body></html>"
}

/// A component library as written: most rules fetch nothing, some set fonts or `display`, few name images.
pub(crate) fn components() -> String {
    let mut css = String::from(
        "@charset \"utf-8\";:root{--primary:#0d6efd;--gap:1.5rem;--font:\"Text\",sans-serif}\
         @font-face{font-family:Text;src:url(/f/text.woff2) format(\"woff2\")}\
         @font-face{font-family:Icons;src:url(/f/icons.woff2) format(\"woff2\"),url(/f/icons.woff) format(\"woff\")}\
         body{margin:0;font-family:var(--font);color:#212529}\n",
    );
    let mut at = 0;
    while css.len() < LONG {
        let _ = write!(
            css,
            ".card-{at} > .card-body .title, .card-{at}:hover .title {{\n  margin: 0 auto var(--gap);\n  padding: .5rem 1rem;\n  \
             border: 1px solid rgba(0, 0, 0, .125);\n  border-radius: .25rem;\n  color: var(--primary);\n}}\n\
             .btn-{at}{{position:relative;transition:color .15s ease-in-out,background-color .15s ease-in-out;\
             text-decoration:none;white-space:nowrap;vertical-align:middle}}\n\
             @media (max-width: 575.98px) {{ .col-{at} {{ flex: 0 0 50%; max-width: 50%; }} }}\n"
        );
        match at % 4 {
            0 => {
                let _ = writeln!(css, ".icon-{at}::before{{content:\"\\f{at:03x}\";font-family:Icons}}");
            }
            1 => {
                let _ =
                    writeln!(css, ".hero-{at}{{background:#eee url('../img/hero-{at}.jpg') center/cover}}");
            }
            2 => {
                let _ = writeln!(css, ".navbar .dropdown-{at}{{display:none;font-weight:600}}");
            }
            _ => {}
        }
        at += 1;
    }
    css
}

/// The same kind as minifiers write it: utilities of one declaration, states, breakpoints, and variables of components.
fn minified() -> String {
    let mut css =
        String::from(":root{--bs-blue:#0d6efd;--bs-gray-100:#f8f9fa;--bs-font:system-ui,sans-serif}");
    let mut at = 0;
    while css.len() < LONG {
        let _ = write!(
            css,
            ".m-{at}{{margin:{at}px!important}}.d-{at}{{display:flex!important}}.fw-{at}{{font-weight:{}00}}\
             .text-{at}{{--bs-text-opacity:1;color:rgba(var(--bs-primary-rgb),var(--bs-text-opacity))!important}}\
             .btn-{at}{{--bs-btn-padding-x:0.75rem;--bs-btn-font-family: ;--bs-btn-bg:transparent;display:inline-block;\
             padding:var(--bs-btn-padding-y) var(--bs-btn-padding-x);font-family:var(--bs-btn-font-family);cursor:pointer;\
             background-color:var(--bs-btn-bg);transition:color .15s ease-in-out,box-shadow .15s ease-in-out}}\
             .btn-{at}:hover,.btn-{at}:focus-visible{{color:var(--bs-btn-hover-color);background:#fff}}\
             .list-{at}>li:not(:last-child)::after{{content:\", \"}}\
             @media (min-width:768px){{.col-md-{at}{{flex:0 0 auto;width:{at}%}}.d-md-{at}{{display:none!important}}}}",
            1 + at % 9
        );
        at += 1;
    }
    css + ".home .link{background-image:url(../img/used.png)}"
}

/// Nothing but icons, each a file of its own: every rule names one, nearly all for nothing.
fn icon_files() -> String {
    let mut css = String::new();
    let mut at = 0;
    while css.len() < LONG {
        let _ = match at % 2 {
            0 => writeln!(css, ".icon-{at} {{\n  background-image: url(../flags/4x3/{at}.svg);\n}}"),
            _ => {
                writeln!(css, ".icon-{at}.square{{background:url(\"../flags/1x1/{at}.svg\") no-repeat 50%}}")
            }
        };
        at += 1;
    }
    css
}

/// Nothing but icons of one font, minified.
fn icon_font() -> String {
    let mut css = String::from(
        "@font-face{font-family:Icons;src:url(/f/icons.woff2)}[class^=glyph-]{font-family:Icons}",
    );
    let mut at = 0;
    while css.len() < LONG {
        let _ = match at % 3 {
            0 => write!(css, ".glyph-{at}::before,.glyph-{at}-alt::before{{content:\"\\f{at:03x}\"}}"),
            _ => write!(css, ".glyph-{at}:before{{content:\"\\e{at:03x}\"}}"),
        };
        at += 1;
    }
    css
}

/// A bundle as minifiers write it.
fn bundle() -> String {
    let mut text = String::new();
    for at in 0..600 {
        let _ = write!(
            text,
            "function f{at}(e,t,n){{var r=e.length>0?t[n]:null;if(!r||typeof r!==\"object\")return/^[a-z]+$/i.test(e)?e/2:\
             'value-{at}';for(var o=0;o<r.items.length;o++)r.items[o]=Object.assign({{}},r.items[o],{{index:o,label:`${{e}}-${{o}}`}});\
             return n.dispatch({{type:\"UPDATE_{at}\",payload:r}}),r}}"
        );
    }
    text + "export{f1 as a};import\"./other.js\";"
}

/// Tables of words, labels, paths and class names: more strings than code.
fn strings() -> String {
    let mut text = String::from("import\"./other.js\";export const t={");
    let mut at = 0;
    while text.len() < LONG {
        let _ = write!(
            text,
            "\"menu.item.{at}\":\"Entry {at} of the menu\",'label-{at}':'It\\'s no. {at}',k{at}:[\"on\",\"off\",'left',\"/icons/{at}.svg\",\
             \"btn btn-primary btn-{at}\",\"https://site.test/help/{at}\",\"application/json\",\"M12 2L2 7l10 5 10-5z\"],"
        );
        at += 1;
    }
    text + "};"
}
