//! Images that the browser fetches when they come near: where they stand, and which wait.

use crate::loading::{load, names, options, page};
use farhop_page::{Confidence, Document, Mode, ResourceInfo, Source, Timing};

#[test]
fn images_far_down_are_ranked_below_the_fold() {
    let html: String = (0..40).map(|at| format!("<p><img src={at}.png width=600 height=400></p>")).collect();
    let below: Vec<bool> = load(&html, &[]).iter().map(|hint| hint.below_fold).collect();
    assert!(below.iter().is_sorted(), "{below:?}");
    let in_view = below.iter().filter(|below| !**below).count();
    assert!((2..10).contains(&in_view), "{in_view}");
}

/// A page of these, and what it hints at once.
fn read(html: &str) -> (Document, Vec<String>) {
    let mut document = Document::new(&page(), None, options());
    let mut hints = document.html(html.as_bytes());
    hints.extend(document.html_end());
    (document, names(&hints))
}

fn neighbours(document: &mut Document, path: &str) -> Vec<String> {
    let url = page().join(path).unwrap();
    document.asked(&url);
    names(&document.neighbours(&url))
}

#[test]
fn lazy_images_far_down_wait_until_the_browser_asks_for_one_of_them() {
    let element = |at: usize| format!("<p><img loading=lazy width=600 height=400 src=/{at}.png>");
    let html: String = (0..150).map(element).collect();
    let (mut document, hinted) = read(&html);
    // As Chromium does over a quick link.
    assert_eq!(hinted, ["0.png", "1.png", "2.png", "3.png", "4.png"]);
    let next: Vec<String> = (6..14).map(|at| format!("{at}.png")).collect();
    assert_eq!(neighbours(&mut document, "/5.png"), next);
    assert_eq!(neighbours(&mut document, "/5.png"), [""; 0], "told once");
    assert_eq!(neighbours(&mut document, "/else.png"), [""; 0]);
    assert_eq!(neighbours(&mut document, "/100.png").len(), 8, "after a jump");
}

#[test]
fn what_is_not_lazy_is_hinted_wherever_it_stands() {
    let far = "<p><img width=600 height=400 src=/a.png></p>".repeat(20);
    let (_, hinted) = read(&format!(
        "{far}<img src=/b.png><iframe src=/c></iframe><iframe loading=lazy src=/d></iframe>\
         <iframe srcdoc='<img src=/e.png>'></iframe><img loading=lazy src=/f.png>"
    ));
    assert_eq!(hinted, ["a.png", "b.png", "c", "e.png"]);
}

#[test]
fn of_lazy_images_without_a_size_the_first_ten_or_twenty_are_hinted() {
    for (element, expected) in [("<p><img loading=lazy src=", 10), ("<img loading=lazy src=", 19)] {
        let (_, hinted) = read(&(0..150).map(|at| format!("{element}/{at}.png>")).collect::<String>());
        assert_eq!(hinted.len(), expected, "{element}");
    }
}

#[test]
fn lazy_images_of_another_screen_wait_as_well() {
    let element = |at: usize| {
        format!(
            "<p><img loading=lazy width=600 height=400 sizes=100vw srcset='/{at}-s.png 800w, /{at}-l.png 2000w'>"
        )
    };
    let (mut document, hinted) = read(&(0..50).map(element).collect::<String>());
    assert_eq!(hinted, ["0-l.png", "1-l.png", "2-l.png", "3-l.png", "4-l.png"]);
    let mut told = Vec::new();
    for at in 0..5 {
        told.extend(neighbours(&mut document, &format!("/{at}-s.png")));
    }
    assert!(
        told.iter().all(|name| ["0", "1", "2", "3", "4"].contains(&name.trim_end_matches("-s.png"))),
        "{told:?}"
    );
    let next: Vec<String> = (6..14).map(|at| format!("{at}-s.png")).collect();
    assert_eq!(neighbours(&mut document, "/5-s.png"), next);
}

#[test]
fn lazy_images_that_are_not_displayed_are_left_to_the_browser() {
    let image = |at: u32| format!("<img loading=lazy src=/{at}.png>");
    let html = |hidden: &str| format!("<style>.no{{display:none}} #back{{display:block}}</style>{hidden}");
    for hidden in [
        "<div hidden>",
        "<div style='display:none'>",
        "<div class=no><p>",
        "<dialog>",
        "<details><i></i>",
        "<div popover>",
        "<dialog popover>",
    ] {
        let page = html(&format!(
            "{hidden}{}<iframe loading=lazy src=/f></iframe><img src=/eager.png></div></dialog></details>",
            image(1)
        ));
        assert_eq!(read(&page).1, ["eager.png"], "{hidden}");
    }
    for shown in [
        "<div>",
        "<div hidden id=back>",
        "<div class=no id=back>",
        "<div class=no style='display:block'>",
        "<div popover id=back>",
        "<dialog open popover>",
    ] {
        assert_eq!(read(&html(&format!("{shown}{}</div>", image(1)))).1, ["1.png"], "{shown}");
    }
    assert_eq!(
        read(&format!("<div hidden>{}</div>{}", image(1), image(2))).1,
        ["2.png"],
        "without any style"
    );
}

#[test]
fn lazy_images_wait_for_the_sheets_that_may_hide_them() {
    let html = "<img loading=lazy src=0.png><link rel=stylesheet href=a.css><img src=eager.png>\
                <p class=no><img loading=lazy src=1.png></p><img loading=lazy src=2.png>";
    for (sheet, expected) in
        [(Some(".no{display:none}"), ["dir/2.png"].as_slice()), (None, &["dir/1.png", "dir/2.png"])]
    {
        let mut document = Document::new(&page(), None, options());
        let mut hints = document.html(html.as_bytes());
        hints.extend(document.html_end());
        assert_eq!(names(&hints), ["dir/0.png", "dir/a.css", "dir/eager.png"]);
        let hinted = match sheet {
            Some(sheet) => {
                let id =
                    document.resource_begins(&hints[1], &hints[1].url, &ResourceInfo::default()).unwrap();
                document.resource(id, sheet.as_bytes());
                document.resource_end(id)
            }
            None => document.resource_lost(&hints[1]),
        };
        assert_eq!(names(&hinted), expected);
    }
}

#[test]
fn images_that_a_script_loads_once_they_are_near_are_lazy_ones() {
    let set = "s.png 300w, m.png 700w, l.png 2000w";
    for (html, expected) in [
        ("<img class='lazyload' data-src=a.png>".to_owned(), "dir/a.png"),
        ("<img class='pic lazy' src=data:image/gif;base64,R0 data-original=a.png>".into(), "dir/a.png"),
        ("<img src=small.png class=lazyload data-src=a.png>".into(), "dir/small.png dir/a.png"),
        ("<img data-lazy-src=a.png data-lazy-srcset='a.png 1x, b.png 2x'>".into(), "dir/a.png"),
        (format!("<img class=lazyload data-sizes=300px data-srcset='{set}'>"), "dir/s.png"),
        (format!("<img class=lazyload data-sizes=auto data-srcset='{set}' data-src=l.png>"), ""),
        (format!("<img class=lazyload width=300 data-sizes='auto, 300px' data-srcset='{set}'>"), "dir/s.png"),
        (
            "<picture><source data-srcset=a.webp type=image/webp><source data-srcset=n type=image/jxl>\
             <img class=lazyload data-src=a.png></picture><img class=lazyload data-src=b.png>"
                .into(),
            "dir/a.webp dir/b.png",
        ),
        ("<img src=small.png data-src=large.png>".into(), "dir/small.png"),
        ("<img class=lazyload data-src=' '><div class=lazyload data-src=a.png></div>".into(), ""),
        ("<div hidden><img class=lazyload data-src=a.png></div>".into(), ""),
        (format!("{}<img class=lazyload data-src=a.png>", "<p>text</p>".repeat(1_000)), ""),
    ] {
        let hints = load(&html, &[]);
        assert_eq!(names(&hints).join(" "), expected, "{html}");
        let late = hints.iter().filter(|hint| hint.source == Source::LateImage);
        assert!(
            late.into_iter().all(|hint| (hint.timing, hint.confidence) == (Timing::Lazy, Confidence::Likely))
        );
    }
}

#[test]
fn backgrounds_and_frames_that_a_script_loads_once_they_are_near_are_lazy_ones() {
    for (html, expected) in [
        ("<div class=lazyload data-bg=a.jpg></div>", "dir/a.jpg"),
        ("<section class='hero lazy' data-bg=\"url('a b.jpg')\"></section>", "dir/a%20b.jpg"),
        ("<a class=lozad data-background-image=a.jpg>x</a>", "dir/a.jpg"),
        ("<div class=swiper-lazy data-background=a.jpg crossorigin></div>", "dir/a.jpg"),
        ("<div data-bg=a.jpg></div><div class=lazy data-bg=''></div>", ""),
        ("<div class=lazy data-bg='#x'></div><div hidden><p class=lazy data-bg=a.jpg></p></div>", ""),
        ("<iframe class=lazyload data-src=f.html></iframe>", "dir/f.html"),
        ("<iframe src=about:blank data-lazy-src=f.html></iframe>", "dir/f.html"),
        (
            "<iframe class=lazy src=own.html data-src=f.html></iframe><iframe data-src=g.html></iframe>",
            "dir/own.html",
        ),
    ] {
        let hints = load(html, &[]);
        assert_eq!(names(&hints).join(" "), expected, "{html}");
        for hint in hints.iter().filter(|hint| !hint.url.path().ends_with("own.html")) {
            assert_eq!((hint.timing, hint.confidence), (Timing::Lazy, Confidence::Likely), "{html}");
            assert_eq!(hint.mode, Mode::NoCors, "{html}");
        }
    }
    let far = "<p>text</p>".repeat(1_000);
    for element in ["<div class=lazy data-bg=a.jpg></div>", "<iframe class=lazy data-src=f.html></iframe>"] {
        assert!(load(&format!("{far}{element}"), &[]).is_empty(), "far down");
    }
}
