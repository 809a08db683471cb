//! Declarative shadow roots: what stands in them, and what their styles are of. Expectations were recorded with Chromium.

use crate::loading::{load, names};

/// What a page of this mark-up names, sorted.
fn found(html: &str, files: &[(&str, &str)]) -> String {
    let mut names = names(&load(html, files));
    names.sort();
    names.join(" ").replace("dir/", "")
}

fn shadow(css: &str, inner: &str, light: &str) -> String {
    format!("<x-a class=h><template shadowrootmode=open><style>{css}</style>{inner}</template>{light}</x-a>")
}

#[test]
fn what_stands_in_a_shadow_root_is_part_of_the_page() {
    for (mode, expected) in [("open", "a.png l.png"), ("CLOSED", "a.png l.png"), ("''", ""), ("bogus", "")] {
        let images = "<img src=a.png><img loading=lazy src=l.png>";
        let html = format!("<div><template shadowrootmode={mode}>{images}</template></div>");
        assert_eq!(found(&html, &[]), expected, "{mode}");
    }
    let hidden = "<div hidden><template shadowrootmode=open><p style='background:url(no.png)'><img loading=lazy src=no.png>";
    assert_eq!(found(hidden, &[]), "");
}

#[test]
fn styles_of_a_shadow_root_are_of_its_elements_alone() {
    let css = "p{background:url(in.png)} section p{background:url(no.png)} p+p{background:url(second.png)}";
    let outer = "<style>p{background:url(out.png)} i{background:url(i.png)}</style>";
    assert_eq!(
        found(&format!("{outer}<section>{}<p>x</p></section>", shadow(css, "<p>x</p>", "")), &[]),
        "in.png out.png"
    );
    assert_eq!(found(&shadow(css, "<p>x</p><p>y</p>", "<p>x</p>"), &[]), "in.png second.png");
    assert_eq!(
        found(&format!("{outer}{}", shadow("", "<p>x</p>", "")), &[]),
        "",
        "nor do the page's reach into it"
    );
    assert_eq!(
        found(&shadow("@font-face{font-family:S;src:url(s.woff2)}p{font-family:S}", "<p>x</p>", ""), &[]),
        ""
    );
}

#[test]
fn the_host_is_styled_from_within() {
    let rules = ":host{background:url(host.png)} :host(.h){border-image:url(h.png) 1} :host(.z){cursor:url(no.png),auto}\
                 :host(.h) p{background:url(p.png)} :host>b{background:url(b.png)} :host{u{background:url(u.png)}}";
    let html = shadow(rules, "<p>x</p><b>x</b><i><b>x</b></i><u>x</u>", "<p>x</p>");
    assert_eq!(found(&html, &[]), "b.png h.png host.png p.png u.png");
    let outer = "<style>x-a{background:url(outer.png)}</style>";
    let within = |important| shadow(&format!(":host{{background:url(host.png) {important}}}"), "", "");
    assert_eq!(found(&format!("{outer}{}", within("")), &[]), "outer.png", "the page has the last word");
    assert_eq!(found(&format!("{}{outer}", within("!important")), &[]), "host.png", "unless it is important");
    assert_eq!(found("<style>:host{background:url(no.png)}</style><p>x</p>", &[]), "");
    assert_eq!(found(&shadow(":host{display:none}", "<img loading=lazy src=no.png>", ""), &[]), "");
}

#[test]
fn what_is_slotted_is_styled_from_within() {
    let css = "::slotted(b){background:url(b.png)} slot::slotted(.c){border-image:url(c.png) 1} ::slotted(.no){background:url(no.png)}\
               ::slotted(p b){background:url(no.png)} b{background:url(no.png)}";
    let html = shadow(css, "<slot></slot>", "<b>x</b><i class=c>x</i><p><b>deeper</b></p>");
    assert_eq!(found(&format!("{html}<b>elsewhere</b>"), &[]), "b.png c.png");
    let outer = format!("<style>x-a>b{{background:url(outer.png)}}</style>{html}");
    assert_eq!(found(&outer, &[]), "c.png outer.png");
}

#[test]
fn a_file_styles_every_shadow_root_that_names_it() {
    let root = |inner: &str| {
        format!("<div><template shadowrootmode=open><link rel=stylesheet href=a.css>{inner}</template></div>")
    };
    let html = format!("{}{}<u>x</u>", root("<p>x</p>"), root("<b>x</b>"));
    let css = "@import 'b.css'; p{background:url(p.png)} b{background:url(b.png)} u{background:url(no.png)}";
    let files = [("dir/a.css", css), ("dir/b.css", "p{cursor:url(c.png),auto} u{cursor:url(no.png),auto}")];
    assert_eq!(found(&html, &files), "a.css b.css b.png c.png p.png");
}
