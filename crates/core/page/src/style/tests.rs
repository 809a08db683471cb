//! Whole pages in small: mark-up and sheets in, what a browser would fetch out. Expectations were checked against
//! Chromium where the standards leave a choice.

use super::*;
use crate::steps::Steps;
use crate::tree::Position;
use proptest::prelude::*;

/// One page while it loads.
struct Page {
    tree: Tree,
    styles: Styles,
    found: Vec<Found>,
}

impl Page {
    fn new() -> Self {
        Page {
            tree: Tree::new(10_000, 1_000_000),
            styles: Styles::new(&Options::default()),
            found: Vec::new(),
        }
    }

    /// Adds well-formed mark-up below `<body>`: names, quoted or bare attributes, text.
    fn html(&mut self, markup: &str) -> &mut Self {
        let base = Url::parse("http://site.test/page.html").unwrap();
        if self.tree.len() == 0 {
            let html = self.tree.push("html", [].into_iter(), None, None, Position::default());
            self.tree.push("body", [].into_iter(), html, None, Position::default());
        }
        // Open elements, and the last child of each so far.
        let mut open = vec![(NodeId(1), None)];
        for piece in markup.split_inclusive('>').flat_map(|piece| piece.split_inclusive_before('<')) {
            let Some(tag) = piece.strip_prefix('<').and_then(|tag| tag.strip_suffix('>')) else {
                self.styles.text(open.last().unwrap().0, piece);
                continue;
            };
            if tag.starts_with('/') {
                open.pop();
                continue;
            }
            let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
            let pairs: Vec<(&str, &str)> = attributes(rest);
            let (parent, previous) = *open.last().unwrap();
            let hidden_itself = pairs.iter().any(|(name, _)| *name == "hidden");
            let position = Position { hidden_itself, below_fold: false };
            let node = self.tree.push(name, pairs.iter().copied(), Some(parent), previous, position).unwrap();
            if let Some((_, style)) = pairs.iter().find(|(name, _)| *name == "style") {
                self.styles.inline(node, style, &base);
            }
            open.last_mut().unwrap().1 = Some(node);
            if !matches!(name, "img" | "br" | "input") {
                open.push((node, None));
            }
        }
        self.styles.nodes(&self.tree);
        self.take()
    }

    fn take(&mut self) -> &mut Self {
        self.found.extend(self.styles.take());
        self
    }

    fn announce(&mut self, url: &str) -> SheetId {
        let url = Url::parse(url).unwrap();
        let id = self.styles.sheet(Owner::File { url }, true, &self.tree);
        self.take();
        id
    }

    fn answer(&mut self, id: SheetId, text: &str) -> &mut Self {
        self.styles.feed(id, text);
        self.styles.end(id, &self.tree);
        self.take()
    }

    fn css(&mut self, text: &str) -> &mut Self {
        let id = self.announce(&format!("http://site.test/css/{}.css", self.styles.sheets.len()));
        self.answer(id, text)
    }

    fn end(&mut self) -> &mut Self {
        self.styles.document_end(&self.tree);
        self.take()
    }

    /// File names found, sorted.
    fn names(&self) -> String {
        let mut names: Vec<&str> =
            self.found.iter().map(|found| found.url.path().rsplit('/').next().unwrap()).collect();
        names.sort_unstable();
        names.join(" ")
    }
}

trait SplitBefore {
    fn split_inclusive_before(&self, mark: char) -> impl Iterator<Item = &str>;
}

impl SplitBefore for str {
    fn split_inclusive_before(&self, mark: char) -> impl Iterator<Item = &str> {
        let at = self.find(mark).unwrap_or(0);
        [&self[..at], &self[at..]].into_iter().filter(|piece| !piece.is_empty())
    }
}

fn attributes(text: &str) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = &rest[end..];
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            (value, rest) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap(),
                None => after.split_at(after.find(' ').unwrap_or(after.len())),
            };
        }
        pairs.push((name, value));
        rest = rest.trim_start();
    }
    pairs
}

/// What a page of this mark-up and this one sheet fetches.
fn fetched(html: &str, css: &str) -> String {
    Page::new().html(html).css(css).end().names()
}

#[test]
fn of_five_hundred_icons_only_those_shown_are_fetched() {
    let rules = |prefix: &str| -> String {
        (0..500).map(|at| format!(".{prefix}-{at}{{background-image:url(../{prefix}/{at}.svg)}}\n")).collect()
    };
    let html = "<i class=\"icon icon-7\"></i><i class=\"icon icon-499\"></i><p><i class=icon-12></i></p>";
    assert_eq!(fetched(html, &rules("icon")), "12.svg 499.svg 7.svg");
    let nested = format!(".icon{{width:1em;{}}}", rules("icon").replace('.', "&."));
    assert_eq!(
        fetched(html, &nested.replace("url(&.&.", "url(..").replace("&.svg", ".svg")),
        "499.svg 7.svg"
    );
}

#[test]
fn selectors_match_as_in_browsers() {
    let html = "<div id=a class=\"x y\"><p class=p1>one</p><p class=p2 lang=de-AT>two</p><ul><li>1</li><li>2</li>\
                <li>3</li></ul></div><a href=\"/x.PDF\" data-k=\"a b-c\">l</a><input type=CHECKBOX checked>";
    let cases = [
        ("p", true),
        ("P.p1", true),
        ("*", true),
        (".X", false),
        ("#a .p2", true),
        ("#a > .p2", true),
        ("body > .p2", false),
        ("body li", true),
        (".p1 + .p2", true),
        (".p2 + .p1", false),
        (".p1 ~ ul li", true),
        ("ul ~ p", false),
        (".x.y", true),
        (".x.z", false),
        ("[lang|=de]", true),
        ("[href$=\".pdf\"]", false),
        ("[href$=\".pdf\" i]", true),
        ("[data-k~=\"b-c\"]", true),
        ("[data-k*=\"b-\"]", true),
        ("[data-k^=b]", false),
        ("[type=checkbox]", true),
        ("li:first-child", true),
        ("li:nth-child(2n+3)", true),
        ("li:nth-child(4)", false),
        ("li:nth-child(-n+1)", true),
        ("p:first-of-type", true),
        ("ul:nth-of-type(2)", false),
        ("li:last-child", true),
        ("p:last-child", false),
        ("li:nth-last-child(3)", true),
        ("p:nth-last-of-type(2)", true),
        ("div:empty", false),
        ("input:empty", true),
        (":root", true),
        ("html", true),
        ("div:root", false),
        ("p:not(.p1)", true),
        ("p:not(.p1,.p2)", false),
        ("p:not(:hover)", true),
        ("p:hover", false),
        ("p:is(.nope,.p1)", true),
        (":is(div,section) p", true),
        ("p:where(.p1)", true),
        ("a:link", true),
        ("a:visited", false),
        ("p:lang(de)", true),
        ("p:lang(d)", false),
        ("input:checked", true),
        ("div:has(> p)", true),
        ("div:has(li)", true),
        ("div:has(> li)", false),
        ("p:has(+ p)", true),
        ("p::before", false),
        ("p:unknown", false),
        ("p, p:unknown", false),
        ("p, ::-webkit-thing", true),
        ("p, ::-moz-thing", false),
        ("p:not(:unknown)", false),
        (":is(p,:unknown)", true),
        ("& p", true),
        ("p..x", false),
        ("> p", false),
        ("p >", false),
        ("", false),
        ("div p:first-child:not(.p2)", true),
        (".\\70 1", true),
        ("div > * > li", true),
        ("body div p + p ~ ul > li", true),
    ];
    for (selector, matches) in cases {
        let found = fetched(html, &format!("{selector}{{background:url(hit)}}"));
        assert_eq!(found, if matches { "hit" } else { "" }, "{selector}");
    }
}

#[test]
fn what_is_overruled_is_not_fetched() {
    let html = "<p id=i class=c style=\"color:red\">x</p>";
    let cases = [
        (".c{background:url(a)}p{background:url(b)}", "a"),
        ("p{background:url(a)}p{background:url(b)}", "b"),
        ("p{background:url(a)}p{background:none}", ""),
        ("p{background:url(a)}p{background-image:inherit}", ""),
        ("p{background:url(a)!important}#i{background:url(b)}", "a"),
        ("#i{background:url(a)}.c.c.c{background:url(b)}", "a"),
        (":where(#i){background:url(a)}p{background:url(b)}", "b"),
        (":is(#i,q){background:url(a)}.c{background:url(b)}", "a"),
        ("p{background:url(a);background:-moz-element(#x)}", "a"),
        ("p{background:url(a);background:linear-gradient(red,blue)}", ""),
        ("@layer l{#i{background:url(a)}}p{background:url(b)}", "b"),
        ("@layer l{p{background:url(a)!important}}p{background:url(b)!important}", "a"),
        ("@layer a,b;@layer b{p{background:url(b)}}@layer a{#i{background:url(a)}}", "b"),
        ("@layer a{p{background:url(x)}@layer b{p{background:url(y)}}}", "x"),
        ("p{background:url(a)}@media print{p{background:url(b)}}", "a"),
    ];
    for (css, expected) in cases {
        assert_eq!(fetched(html, css), expected, "{css}");
    }
    let attached = "<p id=i style=\"background:url(s)\">x</p>";
    assert_eq!(fetched(attached, "#i{background:url(a)}"), "s");
    assert_eq!(
        Page::new().html("<b></b>").css("#i{background:url(a)!important}").html(attached).names(),
        "a"
    );
}

#[test]
fn nothing_that_is_not_displayed_is_fetched() {
    let cases = [
        ("<p class=c>x</p>", ".c{display:none}", ""),
        ("<p><b class=c>x</b></p>", "p{display:none}", ""),
        ("<p class=c>x</p>", "p{display:none}.c{display:block}", "i"),
        ("<p class=c hidden>x</p>", "", ""),
        ("<p class=c hidden>x</p>", "[hidden]{display:block}", "i"),
        ("<p class=c>x</p>", ".c{visibility:hidden;opacity:0}", "i"),
        ("<p class=c>x</p>", ".c{display:contents}", "i"),
    ];
    for (html, css, expected) in cases {
        assert_eq!(fetched(html, &format!(".c{{background:url(i)}}{css}")), expected, "{html} {css}");
    }
}

#[test]
fn pseudo_elements_need_content() {
    let cases = [
        ("p::before{background:url(i)}", ""),
        ("p::before{content:'';background:url(i)}", "i"),
        ("p:after{content:'';background:url(i)}", "i"),
        ("p::before{content:none;background:url(i)}", ""),
        ("p::before{background:url(i)}p:before{content:'x'}", "i"),
        ("p::before{content:'';display:none;background:url(i)}", ""),
        ("p::before{content:url(i)}", "i"),
        ("p::after{content:'';background:url(i)}p::before{content:''}", "i"),
        ("p::first-line{background:url(i)}", "i"),
        ("p::selection{background:url(i)}", ""),
        ("p::before{content:var(--c);background:url(i)}", ""),
        ("p::before{--c:'';content:var(--c);background:url(i)}", "i"),
        (
            "@property --c{syntax:'*';inherits:false;initial-value:''}p::before{content:var(--c);background:url(i)}",
            "i",
        ),
    ];
    for (css, expected) in cases {
        assert_eq!(fetched("<p>x</p>", css), expected, "{css}");
    }
}

#[test]
fn variables_carry_images_to_where_they_are_used() {
    let cases = [
        (":root{--i:url(i)}p{background:var(--i)}", "i"),
        (":root{--i:url(i)}", ""),
        (":root{--i:url(i)}p{background:var(--j,var(--i)) no-repeat}", "i"),
        ("p{background:url(a)}p{background:var(--none)}", ""),
        ("p{--a:var(--b)}body{--b:url(i)}p{background-image:var(--a)}", "i"),
        ("p{--i:url(a)}p.c{--i:url(b)}p{background:var(--i)}", "b"),
        (".other{--i:url(a)}p{background:var(--i,none)}", ""),
    ];
    for (css, expected) in cases {
        assert_eq!(fetched("<p class=c>x</p>", css), expected, "{css}");
    }
    // Resolved where it is used, as Chromium does.
    let mut page = Page::new();
    page.html("<p style=\"--i:url(i)\">x</p>").css("p{background:var(--i)}");
    assert_eq!(page.found[0].url.as_str(), "http://site.test/css/i");
    assert_eq!(page.found[0].source, Source::Rule);
}

#[test]
fn masks_and_shapes_are_fetched_with_cors() {
    let mut page = Page::new();
    page.html("<p>x</p>").css("p{mask-image:url(m);background:url(b);shape-outside:url(s)}");
    let mode = |name: &str| page.found.iter().find(|found| found.url.path().ends_with(name)).unwrap().mode;
    assert_eq!((mode("/m"), mode("/b"), mode("/s")), (Mode::Cors, Mode::NoCors, Mode::Cors));
}

#[test]
fn animations_bring_the_images_of_their_frames() {
    let css = "@keyframes k{from{background:url(a)}to{background:url(b)}}@keyframes unused{to{background:url(c)}}\
               p{animation:k 1s infinite}";
    assert_eq!(fetched("<p>x</p>", css), "a b");
}

const FACES: &str = "@font-face{font-family:A;src:url(a400)}@font-face{font-family:A;font-weight:700;src:url(a700)}\
                     @font-face{font-family:A;font-style:italic;src:url(a-italic)}\
                     @font-face{font-family:Icons;src:local(x),url(icons.woff2) format('woff2')}\
                     @font-face{font-family:R;src:url(r-latin);unicode-range:U+0-FF}\
                     @font-face{font-family:R;src:url(r-cyrillic);unicode-range:U+400-4FF}";

#[test]
fn fonts_are_those_that_shown_text_is_set_in() {
    let cases = [
        ("<p>x</p>", "", ""),
        ("<p>x</p>", "p{font-family:A,serif}", "a400"),
        ("<p>x</p>", "body{font:16px/1 'A'}", "a400"),
        ("<p>x</p>", "q{font-family:A}", ""),
        ("<p></p>", "p{font-family:A}", ""),
        ("<p> </p>", "p{font-family:A}", ""),
        ("<p>x<b>y</b></p>", "p{font-family:A}", "a400 a700"),
        ("<h1>x</h1>", "body{font-family:A}", "a700"),
        ("<h1>x</h1>", "body{font-family:A}h1{font-weight:inherit}", "a400"),
        ("<p><em>y</em></p>", "p{font-family:A}", "a-italic"),
        ("<p>x</p>", "p{font-family:A;font-weight:600}", "a700"),
        ("<p>x</p>", "p{font-family:A}p{font-family:serif}", ""),
        ("<p>x</p>", "p{font-family:Unknown,A}", "a400"),
        ("<p>x</p>", "p{font-family:Arial,A}", ""),
        ("<p>x</p>", "p{display:none;font-family:A}", ""),
        ("<p>x</p>", "p{visibility:hidden;font-family:A}", "a400"),
        ("<p>abc</p>", "p{font-family:R}", "r-latin"),
        ("<p>abc где</p>", "p{font-family:R}", "r-cyrillic r-latin"),
        ("<p>где</p><q>abc</q>", "p{font-family:R}", "r-cyrillic"),
        ("<p>ᚠ</p>", "p{font-family:R,A}", "a400"),
        ("<i class=f></i>", ".f:before{font-family:Icons;content:'\\f101'}", "icons.woff2"),
        ("<i class=f></i>", ".f{font:normal 14px Icons}.f:before{content:'\\f101'}", "icons.woff2"),
        ("<i class=f></i>", ".f{font-family:Icons}", ""),
        (
            "<i class=f></i>",
            ".f{--fa:'x';font-family:var(--fam,Icons)}.f:before{content:var(--fa)}",
            "icons.woff2",
        ),
        ("<i class=f data-i=x></i>", ".f{font-family:Icons}.f:before{content:attr(data-i)}", "icons.woff2"),
        ("<input value=x>", "body{font-family:A}", ""),
        ("<input value=x>", "input{font-family:A}", "a400"),
        ("<input placeholder=x>", "input{font:inherit}body{font-family:A}", "a400"),
        ("<input type=hidden value=x>", "input{font-family:A}", ""),
        ("<p>x</p>", ":root{--font:A}p{font-family:var(--font)}", "a400"),
    ];
    for (html, css, expected) in cases {
        assert_eq!(fetched(html, &format!("{FACES}{css}")), expected, "{html} {css}");
    }
}

#[test]
fn text_that_comes_later_brings_its_font_then() {
    let mut page = Page::new();
    page.html("<p>abc</p>").css(&format!("{FACES}p{{font-family:R}}"));
    assert_eq!(page.names(), "r-latin");
    page.styles.text(NodeId(2), "где");
    page.styles.nodes(&page.tree);
    assert_eq!(page.take().names(), "r-cyrillic r-latin");
    let font = &page.found[0];
    assert_eq!((font.destination, font.mode, font.source), (Destination::Font, Mode::Cors, Source::FontFace));
    assert!(matches!(font.initiator, Initiator::Sheet(_)));
    assert_eq!(font.format, None);
}

#[test]
fn a_font_says_the_format_that_was_chosen() {
    let mut page = Page::new();
    let face = "@font-face{font-family:F;src:url(f.x) format('x'),url(f.w) FORMAT( \"WOFF2\" ),url(f.t) format(truetype)}";
    page.html("<p>abc</p>").css(&format!("{face}p{{font-family:F}}"));
    let told: Vec<_> = page.found.iter().map(|font| (font.url.path(), font.format.as_deref())).collect();
    assert_eq!(told, [("/css/f.w", Some("woff2"))]);
}

#[test]
fn rules_wait_for_every_sheet_that_holds_up_rendering() {
    let mut page = Page::new();
    let first = page.announce("http://site.test/1.css");
    let second = page.announce("http://site.test/2.css");
    page.html("<p>x</p>").answer(first, "p{background:url(a)}");
    assert_eq!(page.names(), "");
    page.answer(second, "p{background:url(b)}");
    assert_eq!(page.names(), "b");
    page.html("<p>y</p>");
    assert_eq!(page.names(), "b", "once is enough");
}

#[test]
fn a_lost_sheet_is_not_waited_for() {
    let mut page = Page::new();
    let first = page.announce("http://site.test/1.css");
    let second = page.announce("http://site.test/2.css");
    page.html("<p>x</p>").answer(first, "p{background:url(a)}");
    page.styles.feed(second, "p{background:url(b)}");
    page.styles.lost(second, &page.tree);
    page.styles.lost(second, &page.tree);
    page.styles.end(second, &page.tree);
    assert_eq!(page.take().names(), "a");
}

#[test]
fn the_order_of_sheets_is_the_documents_whichever_comes_first() {
    let mut page = Page::new();
    let first = page.announce("http://site.test/1.css");
    let second = page.announce("http://site.test/2.css");
    page.html("<p>x</p>").answer(second, "p{background:url(b)}").answer(first, "p{background:url(a)}");
    assert_eq!(page.names(), "b");
}

#[test]
fn a_sheet_holds_back_only_what_stands_after_it() {
    let mut page = Page::new();
    page.css("p{background:url(a)}").html("<p>x</p>");
    let late = page.announce("http://site.test/2.css");
    page.html("<p style=\"background:url(s)\">y</p>");
    assert_eq!(page.names(), "a");
    page.answer(late, "p{background:url(b)}");
    assert_eq!(page.names(), "a b s");
}

#[test]
fn imports_are_sheets_in_their_place() {
    let mut page = Page::new();
    let main = page.announce("http://site.test/css/main.css");
    page.html("<p>x</p>").styles.feed(main, "@import 'base.css';@import 'print.css' print;");
    page.take();
    assert_eq!(page.names(), "base.css print.css", "before the sheet has ended");
    let base = page.found[0].sheet.unwrap();
    assert!(!page.found[1].applies && page.found[1].sheet.is_none());
    assert_eq!(
        page.found[0].initiator,
        Initiator::Sheet(Url::parse("http://site.test/css/main.css").unwrap())
    );
    page.answer(main, "p{background:url(main)}");
    assert_eq!(page.found.len(), 2, "the import is awaited");
    page.answer(base, "p{background:url(base)}b{background:url(b)}");
    assert_eq!(page.names(), "base.css main print.css");
}

#[test]
fn imports_in_circles_and_without_end_are_bounded() {
    let mut page = Page::new();
    let first = page.announce("http://site.test/a.css");
    page.answer(first, "@import 'a.css';@import 'b.css';");
    let b = page.found[0].sheet.unwrap();
    page.answer(b, "@import 'a.css';@import 'b.css';");
    assert_eq!(page.names(), "b.css");
    let mut page = Page::new();
    let mut waiting = vec![page.announce("http://site.test/0.css")];
    let mut number = 0;
    while let Some(sheet) = waiting.pop() {
        let imports: String = (0..100).map(|at| format!("@import '{number}-{at}.css';")).collect();
        number += 1;
        assert!(number < 1_000);
        let known = page.found.len();
        page.answer(sheet, &imports);
        waiting.extend(page.found[known..].iter().filter_map(|found| found.sheet));
    }
    page.html("<p style=\"background:url(done)\">x</p>");
    assert!(page.names().ends_with("done"), "nothing is awaited for ever");
}

#[test]
fn layers_of_imports_take_their_place() {
    let mut page = Page::new();
    let main = page.announce("http://site.test/main.css");
    page.html("<p>x</p>")
        .answer(main, "@layer low,high;@import 'a.css' layer(high);@layer low{p{background:url(low)}}");
    let import = page.found[0].sheet.unwrap();
    page.answer(import, "p{background:url(high)}");
    assert_eq!(page.names(), "a.css high");
}

#[test]
fn containers_count_where_there_are_any() {
    let query = "@container (min-width:300px){p{background:url(i)}}";
    assert_eq!(fetched("<p>x</p>", query), "");
    assert_eq!(fetched("<p>x</p>", &format!("body{{container-type:inline-size}}{query}")), "i");
    let narrow = "body{container-type:inline-size}@container (max-width:300px){p{background:url(i)}}";
    assert_eq!(fetched("<p>x</p>", narrow), "");
}

#[test]
fn what_is_no_request_gives_nothing() {
    let css = "p{background:url(data:image/png;base64,AA),url(#x),url(),url(about:blank),url(http://u:p@site.test/)}";
    assert_eq!(fetched("<p>x</p>", css), "");
}

#[test]
fn hostile_sheets_end_in_time() {
    let depth = 300;
    let html = format!("{}{}", "<div class=a>".repeat(depth), "</div>".repeat(depth));
    let bombs = [
        format!("{}{{background:url(x)}}", "div ".repeat(30) + "i"),
        format!("{}{{background:url(x)}}", ".a ~ .a div ".repeat(10) + "div"),
        format!("{}{{background:url(x)}}", ":is(".repeat(1_000)),
        format!("{}{{background:url(x)}}", ":not(".repeat(1_000)),
        format!("div{}{{background:url(x)}}", ".a".repeat(100_000)),
        format!("{}{{background:url(x)}}", ":has(div)".repeat(8)),
        format!("{}background:url(x)", "@media all{".repeat(10_000)),
        format!("{}background:url(x)", "div,div,div,div{&,& &{".repeat(14)),
        format!("div{{{}}}", "background:url(x);".repeat(100_000)),
        format!("div{{background:{}}}", "image-set(".repeat(10_000)),
        format!("div{{--a:var(--a);background:{}}}", "var(--a)".repeat(10_000)),
        (0..20_000).map(|at| format!("div:nth-of-type({at}){{background:url({at})}}")).collect(),
        "@layer a.a.a.a;".repeat(10_000),
        format!("@layer {};", "a.".repeat(100_000)),
    ];
    for bomb in bombs {
        let mut page = Page::new();
        page.styles.styling = Styling::new(Steps::new(200_000));
        page.html(&html).css(&bomb).end();
        assert!(page.found.len() <= 20_000, "{}", &bomb[..40]);
    }
}

#[test]
fn styles_without_end_in_the_body_stop_being_applied() {
    let mut page = Page::new();
    page.styles.styling = Styling::new(Steps::new(200_000));
    for at in 0..600 {
        page.html(&"<p class=a></p>".repeat(10)).css(&format!(".a{{background:url({at})}}"));
    }
    assert!(page.found.len() < 600, "the budget ends");
    assert!(!page.styles.styling.pay_for(1));
}

#[test]
fn too_much_css_is_left_unread() {
    let mut page = Page::new();
    page.html("<p class=a></p><p class=b></p>");
    let filler = "x{color:red}".repeat(800_000);
    page.css(".a{background:url(a)}").css(&filler).css(".b{background:url(b)}");
    assert_eq!(page.names(), "a b", "what is too long is skipped whole");
}

fn pieces() -> impl Strategy<Value = (String, Vec<usize>)> {
    let rule = prop_oneof![
        Just("@import 'i.css';".to_owned()),
        Just("/* ; } */".to_owned()),
        Just(".a{background:url(\"a b.png\")}".to_owned()),
        Just(".b:not(.a)::before{content:'}';background:url( b.png )}".to_owned()),
        Just("@media screen{.a{border-image:url(data:;{)}.c{mask:url(c.svg)}}".to_owned()),
        Just("@font-face{font-family:A;src:url(a.woff2)}p{font-family:A}".to_owned()),
        Just(":root{--x:{;};--y:url(y.png)}.a{list-style:var(--y)}".to_owned()),
        Just(".a{&.b{background:url(ab.png)}}".to_owned()),
        "[a-z{}()'\";:/*\\\\@ #.,-]{0,12}",
    ];
    (
        prop::collection::vec(rule, 0..12).prop_map(|rules| rules.concat()),
        prop::collection::vec(1_usize..9, 1..20),
    )
}

proptest! {
    #[test]
    fn chunking_changes_nothing((text, sizes) in pieces()) {
        let html = "<p class=\"a b\">x</p><p class=b>y</p><p class=c>z</p>";
        let whole = {
            let mut page = Page::new();
            page.html(html).css(&text).end();
            page.found
        };
        let mut page = Page::new();
        page.html(html);
        let sheet = page.announce("http://site.test/css/0.css");
        let mut rest = text.as_str();
        for size in sizes.iter().cycle() {
            let end = rest.ceil_char_boundary(*size);
            page.styles.feed(sheet, &rest[..end]);
            rest = &rest[end..];
            if rest.is_empty() {
                break;
            }
        }
        page.answer(sheet, "").end();
        prop_assert_eq!(whole, page.found);
    }

    #[test]
    fn mark_up_in_pieces_finds_the_same(order in Just(vec![
        "<p class=a>x</p>", "<div class=b><i></i></div>", "<p>где</p>", "<ul><li>1</li></ul>", "<p hidden class=c>y</p>",
    ]).prop_shuffle()) {
        let css = format!("{FACES}.a+.b{{background:url(ab)}}.b i{{background:url(bi)}}li:first-child{{background:url(li)}}\
                   .c{{background:url(c)}}p{{font-family:R}}p~p{{background:url(pp)}}");
        let mut whole = Page::new();
        whole.css(&css).html(&order.concat());
        // The helper opens a new list of siblings at each call, so that siblings are told by hand here.
        let mut pieces = Page::new();
        pieces.css(&css);
        pieces.html("");
        pieces.styles.nodes(&pieces.tree);
        pieces.html(&order.concat());
        pieces.styles.nodes(&pieces.tree);
        prop_assert_eq!(whole.found, pieces.found);
    }
}
