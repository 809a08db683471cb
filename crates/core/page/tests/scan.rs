//! What the scanner finds in documents, told in HTML; and that how a document is cut changes nothing.

#![allow(clippy::unwrap_used)] // helpers of tests

use farhop_page::{
    Destination, FetchPriority, Hint, Mode, Options, ReferrerPolicy, Scanner, Source, Timing, Viewport,
    link_hints,
};
use proptest::prelude::*;
use url::Url;

fn page() -> Url {
    Url::parse("http://site.test/dir/page.html?q=1").unwrap()
}

fn scan_with(html: &str, options: Options) -> Vec<Hint> {
    let mut scanner = Scanner::new(&page(), Some("utf-8"), options);
    let mut hints = scanner.write(html.as_bytes());
    hints.extend(scanner.finish());
    hints
}

/// Everything but the default icon.
fn scan(html: &str) -> Vec<Hint> {
    let options = Options { default_icon: false, ..Options::default() };
    scan_with(html, options)
}

fn urls(hints: &[Hint]) -> Vec<&str> {
    hints.iter().map(|hint| hint.url.as_str().trim_start_matches("http://site.test/")).collect()
}

fn found(html: &str) -> Vec<String> {
    urls(&scan(html)).into_iter().map(str::to_owned).collect()
}

#[test]
fn every_kind_of_element_gives_its_hint() {
    let cases = [
        ("<script src=a.js></script>", Destination::Script, Mode::NoCors, Source::Script, Timing::Blocking),
        (
            "<script src=a.js async></script>",
            Destination::Script,
            Mode::NoCors,
            Source::Script,
            Timing::Async,
        ),
        (
            "<script src=a.js defer></script>",
            Destination::Script,
            Mode::NoCors,
            Source::Script,
            Timing::Deferred,
        ),
        (
            "<script type=module src=a.js></script>",
            Destination::Script,
            Mode::Cors,
            Source::ModuleScript,
            Timing::Deferred,
        ),
        (
            "<script type=module async src=a.js></script>",
            Destination::Script,
            Mode::Cors,
            Source::ModuleScript,
            Timing::Async,
        ),
        (
            "<script crossorigin src=a.js></script>",
            Destination::Script,
            Mode::Cors,
            Source::Script,
            Timing::Blocking,
        ),
        (
            "<link rel=stylesheet href=a.js>",
            Destination::Style,
            Mode::NoCors,
            Source::Stylesheet,
            Timing::Blocking,
        ),
        (
            "<link rel=preload as=font crossorigin href=a.js>",
            Destination::Font,
            Mode::Cors,
            Source::Preload,
            Timing::Async,
        ),
        (
            "<link rel=preload as=image href=a.js>",
            Destination::Image,
            Mode::NoCors,
            Source::Preload,
            Timing::Async,
        ),
        (
            "<link rel=preload as=fetch crossorigin=use-credentials href=a.js>",
            Destination::Fetch,
            Mode::CorsWithCredentials,
            Source::Preload,
            Timing::Async,
        ),
        (
            "<link rel=modulepreload href=a.js>",
            Destination::Script,
            Mode::Cors,
            Source::ModulePreload,
            Timing::Async,
        ),
        (
            "<link rel=prefetch as=script media=print href=a.js>",
            Destination::Prefetch,
            Mode::NoCors,
            Source::Prefetch,
            Timing::Lazy,
        ),
        (
            "<link rel=modulepreload as=json type=text/plain href=a.js>",
            Destination::Script,
            Mode::Cors,
            Source::ModulePreload,
            Timing::Async,
        ),
        (
            "<link rel=preload as=script type=text/babel href=a.js>",
            Destination::Script,
            Mode::NoCors,
            Source::Preload,
            Timing::Async,
        ),
        (
            "<link rel=manifest href=a.js>",
            Destination::Manifest,
            Mode::CorsAnonymous,
            Source::Manifest,
            Timing::Lazy,
        ),
        ("<img src=a.js>", Destination::Image, Mode::NoCors, Source::Image, Timing::Async),
        ("<img src=a.js loading=lazy>", Destination::Image, Mode::NoCors, Source::Image, Timing::Lazy),
        (
            "<img src=a.js crossorigin=anonymous>",
            Destination::Image,
            Mode::Cors,
            Source::Image,
            Timing::Async,
        ),
        ("<input type=IMAGE src=a.js>", Destination::Image, Mode::NoCors, Source::InputImage, Timing::Async),
        ("<video poster=a.js>", Destination::Image, Mode::NoCors, Source::Poster, Timing::Async),
        ("<body background=a.js>", Destination::Image, Mode::NoCors, Source::Background, Timing::Async),
        (
            "<table><tr><td background=a.js>",
            Destination::Image,
            Mode::NoCors,
            Source::Background,
            Timing::Async,
        ),
        ("<svg><image href=a.js /></svg>", Destination::Image, Mode::NoCors, Source::Image, Timing::Async),
    ];
    for (html, destination, mode, source, timing) in cases {
        let hints = scan(html);
        assert_eq!(urls(&hints), ["dir/a.js"], "{html}");
        let hint = &hints[0];
        assert_eq!(
            (hint.destination, hint.mode, hint.source, hint.timing),
            (destination, mode, source, timing),
            "{html}"
        );
    }
}

#[test]
fn an_alternative_style_sheet_is_fetched_last_and_not_applied() {
    let hints = scan(
        "<link rel='alternate stylesheet' title=dark href=a.css><link rel=stylesheet title=x href=b.css>\
         <link rel='alternate stylesheet' href=c.css>",
    );
    assert_eq!(urls(&hints), ["dir/a.css", "dir/b.css", "dir/c.css"]);
    let last = |hint: &Hint| (hint.applies, hint.timing);
    assert_eq!(
        hints.iter().map(last).collect::<Vec<_>>(),
        [(false, Timing::Lazy), (true, Timing::Blocking), (false, Timing::Lazy)]
    );
}

#[test]
fn of_style_sheets_with_titles_those_hold_that_are_called_as_the_first() {
    let sheet = |title| format!("<link rel=stylesheet title={title} href={title}.css>");
    let style = |title| format!("<style title={title}>a{{background:url({title}.png)}}</style>");
    let html = [sheet("x"), sheet("y"), style("y"), style("x"), "<a>x</a>".into()].concat();
    let holding: Vec<Hint> = scan(&html).into_iter().filter(|hint| hint.applies).collect();
    assert_eq!(urls(&holding), ["dir/x.css", "dir/x.png"]);
}

#[test]
fn what_the_layout_decides_of_a_lazy_image_is_left_to_the_browser() {
    let set = "srcset='s.png 300w, m.png 700w, l.png 2000w' src=l.png";
    let cases = [
        (format!("<img loading=lazy sizes='auto, 300px' {set}>"), ""),
        (format!("<img loading=lazy sizes=AUTO {set}>"), ""),
        (format!("<picture><source sizes=auto {set}><img loading=lazy sizes=auto src=x.png></picture>"), ""),
        // No more than one of a width, or of none: there is nothing to decide.
        ("<img loading=lazy sizes=auto srcset='s.png 300w' src=l.png>".into(), "dir/s.png"),
        ("<img loading=lazy sizes=auto srcset='s.png, l.png 2x'>".into(), "dir/s.png"),
        // WordPress's form: as wide as it says, where what follows comes to the same.
        (format!("<img loading=lazy width=300 height=200 sizes='auto, 300px' {set}>"), "dir/s.png"),
        (format!("<img loading=lazy width=300 sizes='auto, 100vw' {set}>"), ""),
        (format!("<img loading=lazy width=9000 sizes='auto, 100vw' {set}>"), "dir/l.png"),
        // What comes after `auto` counts where the layout does not.
        (format!("<img sizes='auto, 300px' {set}>"), "dir/s.png"),
        (format!("<img sizes=auto {set}>"), "dir/l.png"),
        (format!("<img loading=lazy sizes='300px, auto' {set}>"), "dir/s.png"),
    ];
    for (html, expected) in cases {
        assert_eq!(found(&html).join(" "), expected, "{html}");
    }
}

#[test]
fn what_a_browser_does_not_fetch_gives_no_hint() {
    for html in [
        "<script type=text/template src=a.js></script>",
        "<script type=importmap src=a.js></script>",
        "<script type=speculationrules src=a.js></script>",
        "<script nomodule src=a.js></script>",
        "<script language=vbscript src=a.js></script>",
        "<script>document.write('<img src=a.js>')</script>",
        "<style>/* <img src=a.js> */</style>",
        "<textarea><img src=a.js></textarea>",
        "<title><img src=a.js></title>",
        "<!-- <img src=a.js> -->",
        "<![CDATA[<img src=a.js]]>",
        "<noscript><img src=a.js></noscript>",
        "<head><noscript><link rel=stylesheet href=a.js></noscript></head>",
        "<template><img src=a.js><script src=b.js></script></template>",
        "<template><template><img src=a.js></template><img src=b.js></template>",
        "<iframe><img src=a.js></iframe>",
        "<link rel=stylesheet disabled href=a.js>",
        "<link rel=stylesheet type=text/less href=a.js>",
        "<link rel=modulepreload media=print href=a.js>",
        "<link rel=preload href=a.js>",
        "<link rel=preload as=style type=text/less href=a.js>",
        "<link rel=preload as=json href=a.js>",
        "<link rel=preload as=worker href=a.js>",
        "<link rel=preload as=video href=a.js>",
        "<link rel=preload as=font type=font/unknown crossorigin href=a.js>",
        "<link rel=preload as=image type=image/jxl href=a.js>",
        "<link rel=preload as=image media=print href=a.js>",
        "<link rel=prefetch href=' '>",
        "<link rel=dns-prefetch href=//a.js>",
        "<link rel=stylesheet>",
        "<img>",
        "<img src>",
        "<img src=''>",
        "<img src='  '>",
        "<img src=#a>x",
        "<img src=data:image/gif;base64,R0lGOD>",
        "<a href=a.js>",
        "<input src=a.js>",
        "<source srcset=a.js>",
        "<picture><source srcset=a.js></picture>",
    ] {
        let hints: Vec<_> = found(html).into_iter().filter(|url| url != "dir/page.html?q=1").collect();
        assert_eq!(hints, Vec::<String>::new(), "{html}");
    }
}

#[test]
fn the_page_goes_on_after_a_template() {
    assert_eq!(found("<template><img src=a.png></template><img src=b.png>"), ["dir/b.png"]);
}

#[test]
fn entities_in_attributes_are_decoded_as_browsers_do() {
    let cases = [
        ("<img src='a.png?x=1&amp;y=2'>", "dir/a.png?x=1&y=2"),
        ("<img src='a.png?x=1&y=2'>", "dir/a.png?x=1&y=2"),
        ("<img src='a&#46;png'>", "dir/a.png"),
        ("<img src='a&#x2e;png'>", "dir/a.png"),
        ("<img src='a&period;png'>", "dir/a.png"),
        ("<img src='a.png?a=1&copy=2'>", "dir/a.png?a=1&copy=2"), // no semicolon, followed by `=`: not decoded
        ("<img src='a.png?a=1&copy;=2'>", "dir/a.png?a=1%C2%A9=2"),
        ("<img src='a.png?a=1&notit;'>", "dir/a.png?a=1&notit;"),
        ("<img src=' \n a.png\t '>", "dir/a.png"),
        ("<img src='a\n.png'>", "dir/a.png"),
        ("<img src='ä.png'>", "dir/%C3%A4.png"),
        ("<IMG SRC=A.png>", "dir/A.png"),
        ("<img src=a.png src=b.png>", "dir/a.png"),
        ("<img src=a.png/>", "dir/a.png/"),
        ("<img alt='<img src=x.png>' src=a.png>", "dir/a.png"),
        ("<img src=a.png#frag>", "dir/a.png"),
    ];
    for (html, expected) in cases {
        assert_eq!(found(html), [expected], "{html}");
    }
}

#[test]
fn the_first_base_counts_for_what_follows_it() {
    let html = "<script src=0.js></script><base target=_top><base href='/v2/'><base href=/v3/><script src=1.js></script><img src=/2.png>";
    assert_eq!(found(html), ["dir/0.js", "v2/1.js", "2.png"]);
    assert_eq!(found("<base href='javascript:x'><img src=1.png>"), ["dir/1.png"]);
    assert_eq!(found("<base href='http://cdn.test/x/y'><img src=1.png>"), ["http://cdn.test/x/1.png"]);
}

#[test]
fn what_a_policy_may_forbid_hides_nothing_that_it_may_allow() {
    let hints = scan(
        "<script src=/a.js></script><script nonce=n src=/a.js></script><script nonce=n src=/a.js></script>",
    );
    let nonces: Vec<_> = hints.iter().map(|hint| hint.nonce.as_deref()).collect();
    assert_eq!(nonces, [None, Some("n")]);
}

#[test]
fn a_request_is_hinted_once_whatever_names_it() {
    let html =
        "<link rel=preload as=image href=a.png><img src=a.png><img src=a.png#x><img crossorigin src=a.png>";
    let hints = scan(html);
    assert_eq!(urls(&hints), ["dir/a.png", "dir/a.png"], "the CORS request is another one");
    assert_eq!(hints.iter().map(|hint| hint.mode).collect::<Vec<_>>(), [Mode::NoCors, Mode::Cors]);
    assert_eq!(hints.iter().map(|hint| hint.order).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn responsive_images_give_what_a_desktop_browser_takes() {
    let cases = [
        ("<img src=s.png srcset='l.png 2x'>", "dir/s.png"),
        ("<img src=s.png srcset='m.png 1x, l.png 2x'>", "dir/m.png"),
        ("<img src=s.png srcset='a.png 320w, b.png 640w, c.png 1280w, d.png 2560w'>", "dir/c.png"),
        (
            "<img src=s.png sizes='(min-width: 1000px) 300px, 100vw' srcset='a.png 320w, b.png 640w'>",
            "dir/a.png",
        ),
        (
            "<picture><source type=image/avif srcset=a.avif><source type=image/webp srcset=a.webp><img src=a.png></picture>",
            "dir/a.avif",
        ),
        (
            "<picture><source type=image/jxl srcset=a.jxl><source type=image/webp srcset=a.webp><img src=a.png></picture>",
            "dir/a.webp",
        ),
        (
            "<picture><source media='(max-width: 600px)' srcset=small.png><img src=a.png></picture>",
            "dir/a.png",
        ),
        (
            "<picture><source media='(min-width: 600px)' srcset='big.png, huge.png 2x'><img src=a.png></picture>",
            "dir/big.png",
        ),
        ("<picture><img src=a.png><source srcset=b.png></picture>", "dir/a.png"),
        ("<picture><source srcset=b.png></picture><img src=a.png>", "dir/a.png"),
        ("<link rel=preload as=image imagesrcset='a.png 320w, b.png 1280w' imagesizes=300px>", "dir/a.png"),
    ];
    for (html, expected) in cases {
        assert_eq!(found(html), [expected], "{html}");
    }
    let options = Options {
        viewport: Viewport { width: 390.0, height: 844.0, density: 3.0, touch: true, dark: false },
        jpeg_xl: true,
        default_icon: false,
        ..Options::default()
    };
    let html = "<img src=s.png srcset='a.png 1x, b.png 3x'><picture><source type=image/jxl srcset=a.jxl><img src=c.png></picture>";
    assert_eq!(urls(&scan_with(html, options)), ["dir/b.png", "dir/a.jxl"]);
}

#[test]
fn an_image_with_candidates_is_told_apart_whichever_is_chosen() {
    let hints = scan(
        "<img src=0.png><img src=1.png srcset='1.png 9x'><picture><img src=2.png></picture>\
         <picture><source srcset=3.png><img src=x.png></picture><video poster=4.png></video>",
    );
    let sets: Vec<_> = hints.iter().map(|hint| hint.image_set).collect();
    assert_eq!(sets, [false, true, true, true, false]);
}

#[test]
fn a_stylesheet_for_other_media_is_hinted_last() {
    let hints = scan(
        "<link rel=stylesheet media=print href=p.css><link rel=stylesheet media='screen and (min-width:1px)' href=s.css>",
    );
    assert_eq!(
        hints.iter().map(|hint| (hint.applies, hint.timing)).collect::<Vec<_>>(),
        [(false, Timing::Lazy), (true, Timing::Blocking)]
    );
}

#[test]
fn referrer_policy_integrity_and_priority_are_kept() {
    let hints = scan(
        "<script src=0.js integrity='sha256-x' fetchpriority=low></script><meta name=Referrer content=origin>\
         <img src=1.png><img src=2.png referrerpolicy=no-referrer fetchpriority=high><img src=3.png referrerpolicy=bogus>\
         <img src=4.png referrerpolicy=never>",
    );
    let policies: Vec<_> = hints.iter().map(|hint| hint.referrer_policy).collect();
    assert_eq!(
        policies,
        [
            None,
            Some(ReferrerPolicy::Origin),
            Some(ReferrerPolicy::NoReferrer),
            Some(ReferrerPolicy::Origin),
            Some(ReferrerPolicy::NoReferrer),
        ]
    );
    let integrity: Vec<_> = hints.iter().map(|hint| hint.integrity.as_deref()).collect();
    assert_eq!(integrity, [Some("sha256-x"), None, None, None, None]);
    assert_eq!(hints[0].priority, FetchPriority::Low);
    assert_eq!(hints[2].priority, FetchPriority::High);
}

#[test]
fn the_default_icon_is_hinted_at_the_end_of_the_head_when_none_is_named() {
    for html in [
        "<head><script src=a.js></script></head><body>",
        "<script src=a.js></script><body>",
        "<script src=a.js></script>",
    ] {
        let hints = scan_with(html, Options::default());
        assert_eq!(urls(&hints), ["dir/a.js", "favicon.ico"], "{html}");
        assert_eq!(hints[1].destination, Destination::Icon);
        assert_eq!(hints[1].source, Source::DefaultIcon);
    }
}

#[test]
fn of_several_icons_the_one_that_fits_a_tab_is_hinted() {
    let icons = |html: &str| {
        let html = format!("<head>{html}</head><body>");
        urls(&scan_with(&html, Options::default())).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let icon = |sizes: &str, name: &str| format!("<link rel=icon sizes='{sizes}' href={name}>");
    // What Chromium 156 fetched first, recorded.
    for (links, expected) in [
        ("<link rel='shortcut icon' href=a.ico>".to_owned(), "dir/a.ico"),
        (icon("16x16", "16") + &icon("32x32", "32") + &icon("96x96", "96"), "dir/32"),
        (icon("32x32", "32") + &icon("16x16", "16"), "dir/32"),
        (icon("192x192", "192") + &icon("48x48", "48"), "dir/48"),
        (icon("any", "any.svg") + &icon("32x32", "32"), "dir/any.svg"),
        (icon("16x16 32x32", "both") + &icon("64x64", "64"), "dir/both"),
        ("<link rel='shortcut icon' href=a>".to_owned() + &icon("192x192", "192"), "dir/a"),
        ("<link rel=icon href=a>".to_owned() + &icon("32x32", "32"), "dir/a"),
        ("<link rel=apple-touch-icon href=a><link rel=mask-icon href=b>".to_owned(), "favicon.ico"),
        (
            "<link rel=icon media='(prefers-color-scheme: dark)' href=dark><link rel=icon href=a>".to_owned(),
            "dir/a",
        ),
    ] {
        assert_eq!(icons(&links), [expected], "{links}");
    }
    assert_eq!(icons("<link rel=icon href='data:,'>"), Vec::<String>::new());
    assert_eq!(icons("</head><body><p><link rel=icon href=a>"), ["favicon.ico"], "in the head alone");
}

/// Recorded from Chromium 156, with files whose sizes are what their names say.
#[test]
fn what_may_have_the_size_that_an_icon_fetched_before_has_not_is_hinted_too() {
    for (links, expected) in [
        ("<link rel=icon href=16.png><link rel=icon href=32.png>", "dir/32.png dir/16.png"),
        ("<link rel='alternate icon' href=16.png><link rel=icon href=i.svg>", "dir/i.svg dir/16.png"),
        ("<link rel=icon href=i.ico sizes=any><link rel=icon href=i.svg>", "dir/i.svg dir/i.ico"),
        ("<link rel=icon href=i.ico sizes=32x32><link rel=icon href=i.svg>", "dir/i.svg"),
        ("<link rel=icon href=i.ico><link rel=icon href=32.png>", "dir/32.png dir/i.ico"),
        ("<link rel=icon href=32.png><link rel='shortcut icon' href=i.ico>", "dir/i.ico"),
        ("<link rel=icon href=i.svg sizes=any><link rel=icon href=32.png sizes=32x32>", "dir/i.svg"),
        (
            "<link rel=icon href=a><link rel=icon href=b><link rel=icon href=c><link rel=icon href=d>\
          <link rel=icon href=e>",
            "dir/e dir/d dir/c dir/b",
        ),
    ] {
        let hints = scan_with(&format!("<head>{links}</head><body>"), Options::default());
        assert_eq!(urls(&hints).join(" "), expected, "{links}");
        let sources: Vec<Source> = hints.iter().map(|hint| hint.source).collect();
        assert_eq!(sources[0], Source::Icon);
        assert!(sources[1..].iter().all(|source| *source == Source::OtherIcon), "{links}");
    }
}

#[test]
fn a_hint_says_where_its_tag_starts() {
    let html = "<!doctype html>\n<p>ä</p><img src=a.png>";
    assert_eq!(scan(html)[0].offset as usize, html.find("<img").unwrap());
}

#[test]
fn a_hint_is_out_before_the_bytes_that_complete_its_tag_are_sent_on() {
    let mut scanner = Scanner::new(&page(), None, Options::default());
    assert!(scanner.write(b"<img src=").is_empty());
    assert!(scanner.write(b"a.png").is_empty());
    assert_eq!(urls(&scanner.write(b">")), ["dir/a.png"]);
    assert_eq!(scanner.scanned(), 15);
}

#[test]
fn hints_stop_at_their_bound() {
    let html: String = (0..100).map(|i| format!("<img src={i}.png>")).collect();
    let options = Options { max_hints: 10, ..Options::default() };
    assert_eq!(scan_with(&html, options).len(), 10);
}

#[test]
fn an_endless_attribute_is_let_go_and_the_page_goes_on() {
    let mut scanner = Scanner::new(&page(), None, Options::default());
    assert_eq!(scanner.write(b"<img src=a.png><img alt='").len(), 1);
    for _ in 0..10_000 {
        assert!(scanner.write(&[b'x'; 1024]).is_empty());
    }
    assert_eq!(urls(&scanner.write(b"' src=b.png><img src=c.png>")), ["dir/b.png", "dir/c.png"]);
}

#[test]
fn endless_nesting_ends_the_scan_or_is_followed_without_harm() {
    let mut scanner = Scanner::new(&page(), None, Options::default());
    for _ in 0..20_000 {
        scanner.write(b"<div><b><i><span><template><svg>");
    }
    scanner.finish();
}

#[test]
fn documents_in_other_encodings_are_read_and_queries_written_in_them() {
    let mut latin = Scanner::new(&page(), Some("iso-8859-1"), Options::default());
    assert_eq!(urls(&latin.write(b"<img src='\xe4.png'>")), ["dir/%C3%A4.png"]);
    let mut meta = Scanner::new(&page(), None, Options::default());
    assert_eq!(urls(&meta.write(b"<meta charset=iso-8859-1><img src='\xe4.png'>")), ["dir/%C3%A4.png"]);
    farhop_page::fuzz_scan(b"<meta charset=iso-8859-1><img src='\xe4.png'><img src='\xe4.gif?\xe4'>");
    let mut wide = Scanner::new(&page(), Some("utf-16le"), Options::default());
    let bytes: Vec<u8> = "<img src=ä.png>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(urls(&wide.write(&bytes)), ["dir/%C3%A4.png"]);
    let mut query = Scanner::new(&page(), Some("iso-8859-1"), Options::default());
    assert_eq!(urls(&query.write(b"<img src='\xe4.png?\xe4'>")), ["dir/%C3%A4.png?%E4"]);
}

#[test]
fn link_fields_give_hints_by_the_same_rules() {
    let hints = |value: &str| link_hints(value, &page(), &Options::default());
    let field = "</a.css>; rel=preload; as=style, <f.woff2>;rel=\"preload\";as=font;crossorigin, \
                 <m.js>; rel=modulepreload, </x>; rel=next, <i.png>; rel=preload; as=image; imagesrcset=\"i1.png 1x, i2.png 2x\"";
    assert_eq!(urls(&hints(field)), ["a.css", "dir/f.woff2", "dir/m.js", "dir/i1.png"]);
    assert_eq!(hints(field)[1].mode, Mode::Cors);
    assert!(hints(field).iter().all(|hint| hint.source == Source::LinkField));
    assert_eq!(urls(&hints("<a,b.css>; rel=stylesheet")), ["dir/a,b.css"]);
    assert_eq!(urls(&hints("<fav.png>; rel=icon")), ["dir/fav.png"]);
    assert!(hints("</a.css>; rel=preload; as=style; anchor=\"/other\"").is_empty());
    for garbage in [
        "",
        "<",
        "<a",
        "a; rel=preload",
        "<a>; rel=\"preload",
        ";;;,,,",
        "<a>;;;=;rel",
        "<>; rel=preload; as=image",
    ] {
        assert!(hints(garbage).is_empty() || garbage.starts_with("<>"), "{garbage}");
    }
}

fn document() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<script src=\"a.js\"></script>".to_owned()),
        Just("<script>if (a < b) document.write('<img src=no.png>')</script>".to_owned()),
        Just("<template><img src=no.png></template>".to_owned()),
        Just("<noscript><img src=no.png></noscript>".to_owned()),
        Just("<!-- <img src=no.png> -->".to_owned()),
        Just("<picture><source srcset='w.webp 1x' type=image/webp><img src=p.png></picture>".to_owned()),
        Just("<base href=/b/>".to_owned()),
        Just("<svg><image href=s.png /></svg>".to_owned()),
        Just("</head><body>".to_owned()),
        "[a-z]{1,4}".prop_map(|name| format!("<img src='{name}.png?a=1&amp;b=ä' srcset=\"{name}2.png 2x\">")),
        "[a-z]{1,4}".prop_map(|name| format!("<link rel=stylesheet href={name}.css>")),
        "[ -~é]{0,20}",
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cut_of_a_document_gives_the_same_hints(html in document(), cuts in proptest::collection::vec(1usize..40, 1..50)) {
        let whole = scan_with(&html, Options::default());
        let mut scanner = Scanner::new(&page(), Some("utf-8"), Options::default());
        let (mut rest, mut split, mut cuts) = (html.as_bytes(), Vec::new(), cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (chunk, tail) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            split.extend(scanner.write(chunk));
            rest = tail;
        }
        split.extend(scanner.finish());
        prop_assert_eq!(whole, split);
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        farhop_page::fuzz_scan(&data);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[ -~\\n<>=\"'/!()-]{0,300}") {
        farhop_page::fuzz_scan(text.as_bytes());
    }
}
