//! Which rules count for which element, and what they fetch.

use super::*;

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
fn what_has_looks_for_is_related_by_its_first_part() {
    let html = "<div class=a><p class=q><b class=r>x</b><i class=s><u class=t>x</u></i></p></div><div class=b><em class=deep>x</em></div>";
    for (selector, matches) in [
        (".a:has(> .q .r)", true),
        (".a:has(> .r)", false),
        (".a:has(.q > .r ~ .s > .t)", true),
        (".q:has(> .r + .s .t)", true),
        (".a:has(+ .b .deep)", true),
        (".a:has(~ .b > .deep)", true),
        (".a:has(+ .b > .none)", false),
        // What stands to the left has to be behind it, or within it, too.
        (".q:has(.a .r)", false),
        (".b:has(~ .a)", false),
    ] {
        let found = fetched(html, &format!("{selector}{{background:url(hit)}}"));
        assert_eq!(found, if matches { "hit" } else { "" }, "{selector}");
    }
}

#[test]
fn fields_are_valid_by_what_stands_in_them() {
    let html = "<input class=a required><input class=b required value=x><input class=c>";
    for (selector, matches) in [
        (".a:invalid", true),
        (".a:valid", false),
        (".b:valid", true),
        (".b:invalid", false),
        (".c:valid", true),
        (".a:user-invalid", false),
    ] {
        let found = fetched(html, &format!("{selector}{{background:url(hit)}}"));
        assert_eq!(found, if matches { "hit" } else { "" }, "{selector}");
    }
}

#[test]
fn rules_of_a_scope_hold_within_its_root() {
    let html = "<div class=s><p class=i>x</p></div><p class=o>x</p>";
    let cases = [
        ("@scope (.s){.i{background:url(a)}.o{background:url(b)}}", "a"),
        (
            "@scope (.s) to (.t){p{background:url(a)}:scope{background:url(b)}& > p{cursor:url(c),auto}}",
            "a b c",
        ),
        (".i{background:url(a)}@scope (.none){.i{background:url(b)}}", "a"),
        ("@scope (.s, .none){.i{background:url(a)}}", "a"),
        ("@scope{.o{background:url(a)}}", "a"),
        ("@scope (.s){@media screen{.i{background:url(a)}}@media print{.i{background:url(b)}}}", "a"),
        ("@scope (::x y){.i{background:url(a)}}", ""),
    ];
    for (css, expected) in cases {
        assert_eq!(fetched(html, css), expected, "{css}");
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
        ("p{background:url(i) round(3px,2px) abs(-1px)}", "i"),
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
        (":root{--c:#fff}p{background:var(--c) url(i)}", "i"),
        (":root{--w:1.5rem}p{background:url(i) var(--w) 0}", "i"),
        (":root{--c:#fff}p{background:var(--c,url(no))}", ""),
        ("p{--c:10px}p{--d:var(--c)}p{background:var(--d,url(no))}", ""),
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
    page.html("<p>x</p>").css(
        "p{mask-image:url(m);background:url(b);shape-outside:url(s);-webkit-box-reflect:below 0 url(r)}",
    );
    let mode = |name: &str| page.found.iter().find(|found| found.url.path().ends_with(name)).unwrap().mode;
    assert_eq!((mode("/m"), mode("/b"), mode("/s")), (Mode::Cors, Mode::NoCors, Mode::Cors));
    assert_eq!(mode("/r"), Mode::NoCors);
}

#[test]
fn parts_of_svg_files_are_fetched_for_what_is_displayed() {
    let css = "p{clip-path:url(c.svg#a);filter:blur(1px) url(f.svg#a);backdrop-filter:url(b.svg#a)}\
               b{fill:url(l.svg#a) red;stroke:url(#own);marker:url(m.svg#a);mask:url(k.svg#a)}\
               i{display:none;filter:url(no.svg#a)} u{filter:url(no.svg#a)}";
    let mut page = Page::new();
    page.html("<p>x</p><b>x</b><i>x</i>").css(css);
    assert_eq!(page.names(), "b.svg c.svg f.svg k.svg l.svg m.svg");
    for found in &page.found {
        let filter = ["/css/f.svg", "/css/b.svg"].contains(&found.url.path());
        assert_eq!(found.mode, if filter { Mode::SameOrigin } else { Mode::Cors }, "{}", found.url);
    }
    let mut page = Page::new();
    page.html("<p>x</p>").css("p{clip-path:url(one.svg#a);filter:url(one.svg#b)}");
    assert_eq!(page.names(), "one.svg one.svg", "fetched in two ways");
}

#[test]
fn animations_bring_the_images_of_their_frames() {
    let css = "@keyframes k{from{background:url(a)}to{background:url(b)}}@keyframes unused{to{background:url(c)}}\
               p{animation:k 1s infinite}";
    assert_eq!(fetched("<p>x</p>", css), "a b");
}

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
        ("<p>где</p><q>abc</q>", "p{font-family:R}", "r-cyrillic r-latin"),
        ("<p>ᚠ</p>", "p{font-family:R,A}", "a400 r-latin"),
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
        ("<p>x</p>", "p::first-letter{font-family:A}", "a400"),
        ("<p>x</p>", "p{font-family:A}p:first-line{font-weight:700}", "a400 a700"),
        ("<p></p><b>x</b>", "p::first-letter{font-family:A}", ""),
        ("<p hidden>x</p>", "p::first-letter{font-family:A}", ""),
    ];
    for (html, css, expected) in cases {
        assert_eq!(fetched(html, &format!("{FACES}{css}")), expected, "{html} {css}");
    }
}

/// Recorded from Chromium 156.
#[test]
fn a_line_takes_the_font_that_has_its_space_though_nothing_else_is_set_in_that() {
    let signs = "@font-face{font-family:Signs;src:url(signs);unicode-range:U+E000-F8FF}";
    let cases = [
        ("<p>\u{e001}</p>", "p{font-family:Signs,A}", "a400 signs"),
        ("<u class=f></u>", ".f:before{font-family:A;content:''}", "a400"),
        ("<u class=f></u>", ".f:before{font-family:Signs,A;content:''}", "a400"),
        ("<u class=f></u>", ".f:before{font-family:A;content:'';display:none}", ""),
        ("<u class=f></u>", ".f:before{font-family:A}", ""),
        ("<input>", "input{font-family:A}", "a400"),
        ("<input type=checkbox>", "input{font-family:A}", ""),
        ("<textarea></textarea>", "textarea{font-family:A}", "a400"),
        ("<select></select>", "select{font-family:A}", "a400"),
    ];
    for (html, css, expected) in cases {
        assert_eq!(fetched(html, &format!("{FACES}{signs}{css}")), expected, "{html} {css}");
    }
}

#[test]
fn text_that_comes_later_brings_its_font_then() {
    let mut page = Page::new();
    page.html("<p>abc</p>").css(&format!("{FACES}p{{font-family:R}}"));
    assert_eq!(page.names(), "r-latin");
    page.styles.text(NodeId(2), "где", false);
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
