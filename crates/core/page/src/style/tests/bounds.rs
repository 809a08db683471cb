//! What is no request, sheets without bounds, and sheets cut anywhere.

use super::*;
use proptest::prelude::*;

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
