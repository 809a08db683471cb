//! Several sheets of one page: when they settle, in which order they count, what they import.

use super::*;

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
fn chains_of_imports_are_followed_as_far_as_honest_pages_go() {
    let mut page = Page::new();
    let mut sheet = page.announce("http://site.test/0.css");
    for number in 1..=12 {
        page.answer(sheet, &format!("@import '{number}.css';"));
        sheet = page.found.last().unwrap().sheet.unwrap();
    }
    page.html("<p>x</p>").answer(sheet, "p{background:url(end)}");
    assert!(page.names().ends_with("end"), "{}", page.names());
    let mut endless = Page::new();
    let mut next = Some(endless.announce("http://site.test/0.css"));
    let mut number = 0;
    while let Some(sheet) = next {
        number += 1;
        let known = endless.found.len();
        endless.answer(sheet, &format!("@import '{number}.css';"));
        next = endless.found.get(known).and_then(|found| found.sheet);
    }
    assert_eq!(number, MAX_IMPORT_DEPTH);
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
