//! Elements that let the browser choose among images by its screen, and what its choices tell of that screen. What is
//! assumed of a screen is an assumption: the first image that the browser asks for instead of the assumed one corrects
//! it for the rest of the page, and for the user's next ones. Of the colour scheme, one image of the other is enough.

use crate::context::Context;
use crate::hint::Hint;
use crate::markup::srcset;
use crate::media;
use crate::options::Viewport;
use crate::source_size;
use std::collections::HashSet;
use url::Url;

/// Elements remembered of one page, and the longest of their texts that is.
const MAX_CHOICES: usize = 200;
const MAX_TEXT: usize = 4 * 1024;

/// Requests that are learnt from, for one page.
const MAX_SEEN: usize = 64;

/// Elements that have to show something else than assumed, of many and at the most.
const LEAST: usize = 2;
const ENOUGH: usize = 4;

/// Common screens, width by height in CSS pixels with their density, the commonest first.
const COMMON: [(f64, f64, f64); 26] = [
    (1280.0, 720.0, 1.0),
    (1366.0, 650.0, 1.0),
    (1920.0, 950.0, 1.0),
    (1536.0, 730.0, 1.25),
    (1440.0, 780.0, 2.0),
    (1440.0, 780.0, 1.0),
    (1600.0, 780.0, 1.0),
    (1280.0, 600.0, 1.5),
    (1512.0, 850.0, 2.0),
    (1728.0, 990.0, 2.0),
    (1280.0, 720.0, 2.0),
    (2560.0, 1300.0, 1.0),
    (1024.0, 660.0, 1.0),
    (780.0, 493.0, 1.0),
    (640.0, 480.0, 1.0),
    (390.0, 844.0, 3.0),
    (412.0, 915.0, 2.625),
    (393.0, 851.0, 2.75),
    (360.0, 800.0, 3.0),
    (414.0, 896.0, 2.0),
    (375.0, 667.0, 2.0),
    (360.0, 640.0, 2.0),
    (320.0, 568.0, 2.0),
    (768.0, 1024.0, 2.0),
    (820.0, 1180.0, 2.0),
    (1024.0, 1366.0, 2.0),
];

impl Viewport {
    /// What is assumed of a browser that is called this: a telephone's screen or the default one.
    pub fn assumed(user_agent: &str) -> Viewport {
        let (width, height, density) = match () {
            () if user_agent.contains("iPhone") => (390.0, 844.0, 3.0),
            () if user_agent.contains("Mobile") && user_agent.contains("Android") => (412.0, 915.0, 2.625),
            () => {
                let touch = user_agent.contains("Android") || user_agent.contains("iPad");
                return Viewport { touch, ..Viewport::default() };
            }
        };
        Viewport { width, height, density, touch: true, dark: false }
    }
}

/// One offer of images: a `srcset`, or a `src` alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    pub(crate) media: Option<String>,
    pub(crate) set: Option<String>,
    pub(crate) sizes: Option<String>,
    pub(crate) src: Option<String>,
}

impl Offer {
    /// What of it a screen shows; `None` leaves it to the next offer.
    pub(crate) fn pick(&self, screen: &Viewport) -> Option<&str> {
        if self.media.as_deref().is_some_and(|query| !media::matches(query, screen)) {
            return None;
        }
        let Some(set) = &self.set else { return self.src.as_deref() };
        choose(set, self.sizes.as_deref(), self.src.as_deref(), screen)
    }

    /// What of it a screen shows in an element so many CSS pixels wide, if that fits on it.
    pub(crate) fn pick_at(&self, width: f64, screen: &Viewport) -> Option<&str> {
        srcset::choose(self.set.as_deref()?, self.src.as_deref(), width.min(screen.width), screen.density)
    }

    /// Whether what it shows in a lazy element is decided by the layout, which is not known.
    pub(crate) fn is_laid_out(&self) -> bool {
        let is_auto = self.sizes.as_deref().is_some_and(source_size::is_auto);
        is_auto && self.set.as_deref().is_some_and(srcset::depends_on_width)
    }

    fn len(&self) -> usize {
        [&self.media, &self.set, &self.sizes, &self.src]
            .iter()
            .map(|text| text.as_ref().map_or(0, String::len))
            .sum()
    }
}

/// What of a `srcset` a screen shows.
pub(crate) fn choose<'a>(
    set: &'a str,
    sizes: Option<&str>,
    src: Option<&'a str>,
    screen: &Viewport,
) -> Option<&'a str> {
    let slot = sizes.map_or(screen.width, |sizes| source_size::evaluate(sizes, screen));
    srcset::choose(set, src, slot, screen.density)
}

/// The elements of a page that leave a choice.
#[derive(Debug, Default)]
pub(crate) struct Screens {
    choices: Vec<Choice>,
    /// Which element showed what that was not assumed.
    seen: Vec<(usize, Url)>,
    asked: HashSet<Url>,
    corrected: bool,
}

#[derive(Debug)]
struct Choice {
    offers: Vec<Offer>,
    /// For what is assumed to be chosen.
    hint: Hint,
}

impl Choice {
    fn pick(&self, screen: &Viewport, context: &Context) -> Option<Url> {
        let text = self.offers.iter().find_map(|offer| offer.pick(screen))?;
        context.fetchable(context.resolve(text)?)
    }
}

impl Screens {
    /// An element with these offers, for which `hint` was given.
    pub(crate) fn offered(&mut self, offers: Vec<Offer>, hint: &Hint) {
        let length: usize = offers.iter().map(Offer::len).sum();
        if self.choices.len() < MAX_CHOICES && length <= MAX_TEXT {
            self.choices.push(Choice { offers, hint: hint.clone() });
        }
    }

    /// The browser asked for `url`, which was not hinted. Corrects the screen of `context` if that tells of it.
    pub(crate) fn asked(&mut self, url: &Url, context: &mut Context) {
        let last = url.path().rsplit('/').next().filter(|last| !last.is_empty());
        let Some(last) = last.filter(|_| self.seen.len() < MAX_SEEN) else { return };
        let named =
            |offer: &Offer| [&offer.set, &offer.src].into_iter().flatten().any(|text| text.contains(last));
        let scheme = Viewport { dark: !context.options.viewport.dark, ..context.options.viewport };
        let of_scheme = |choice: &&Choice| choice.offers.iter().any(named) && choice.hint.url != *url;
        if self
            .choices
            .iter()
            .filter(of_scheme)
            .any(|choice| choice.pick(&scheme, context).as_ref() == Some(url))
        {
            context.options.viewport = scheme;
            self.corrected = true;
            self.asked.insert(url.clone());
            return;
        }
        let shows = |choice: &Choice| {
            let picks = |screen: &(f64, f64, f64)| {
                choice.pick(&viewport(screen, context), context).as_ref() == Some(url)
            };
            choice.hint.url != *url && choice.offers.iter().any(named) && COMMON.iter().any(picks)
        };
        let Some(found) = self.choices.iter().position(shows) else { return };
        if self.asked.insert(url.clone()) {
            self.seen.push((found, url.clone()));
        }
        let right = |screen: &Viewport| {
            let fits =
                |(at, url): &&(usize, Url)| self.choices[*at].pick(screen, context).as_ref() == Some(url);
            self.seen.iter().filter(fits).count()
        };
        // One may be a picture that a script shows larger; on another screen most are others.
        let enough = (self.choices.len() / 4).clamp(LEAST, ENOUGH).min(self.choices.len());
        if self.seen.iter().map(|(at, _)| at).collect::<HashSet<_>>().len() < enough {
            return;
        }
        let mut best = (right(&context.options.viewport), None);
        for screen in COMMON.iter().map(|screen| viewport(screen, context)) {
            let count = right(&screen);
            if count > best.0 {
                best = (count, Some(screen));
            }
        }
        if let (_, Some(screen)) = best {
            context.options.viewport = screen;
            self.corrected = true;
        }
    }

    /// Hints what the elements show on the screen as it is known now, other than what was hinted for them.
    pub(crate) fn correct(&mut self, context: &mut Context) {
        if !self.corrected {
            return;
        }
        for at in 0..self.choices.len() {
            let choice = &self.choices[at];
            let Some(url) = choice.pick(&context.options.viewport, context) else { continue };
            if url == choice.hint.url {
                continue;
            }
            let hint = Hint { url: url.clone(), ..choice.hint.clone() };
            let is_held = context.held.replace(&choice.hint.url, &url);
            self.choices[at].hint.url = url.clone();
            if !is_held && !self.asked.contains(&url) {
                context.add(hint);
            }
        }
    }
}

/// The same kind of device with this screen.
fn viewport(screen: &(f64, f64, f64), context: &Context) -> Viewport {
    let (width, height, density) = *screen;
    Viewport { width, height, density, ..context.options.viewport }
}

#[cfg(test)]
mod tests {
    use crate::{Document, Options, Viewport};
    use url::Url;

    const PAGE: &str = "<img srcset='a-480.jpg 480w, a-800.jpg 800w, a-1600.jpg 1600w' sizes=100vw src=a.jpg>\
        <img srcset='b-480.jpg 480w, b-800.jpg 800w, b-1600.jpg 1600w' sizes='(max-width: 900px) 100vw, 50vw'>\
        <picture><source media='(max-width: 800px)' srcset=c-narrow.jpg><img src=c-wide.jpg></picture><img src=d.jpg>";

    fn url(path: &str) -> Url {
        Url::parse("http://site.test/").unwrap().join(path).unwrap()
    }

    fn paths(hints: Vec<crate::Hint>) -> Vec<String> {
        let path = |hint: crate::Hint| hint.url.path().trim_start_matches('/').to_owned();
        hints.into_iter().map(path).filter(|path| path != "favicon.ico").collect()
    }

    fn read() -> Document {
        let mut document = Document::new(&url("/"), None, Options::default());
        let mut hints = document.html(PAGE.as_bytes());
        hints.extend(document.html_end());
        assert_eq!(paths(hints), ["a-1600.jpg", "b-800.jpg", "c-wide.jpg", "d.jpg"]);
        document
    }

    #[test]
    fn images_of_another_size_correct_the_others() {
        let more = "<img srcset='e-480.jpg 480w, e-800.jpg 800w, e-1600.jpg 1600w'>";
        let mut document = Document::new(&url("/"), None, Options::default());
        document.html(format!("{PAGE}{more}").as_bytes());
        document.html_end();
        document.asked(&url("a-800.jpg"));
        assert_eq!(*document.viewport(), Viewport::default(), "one may be shown larger by a script");
        assert_eq!(paths(document.neighbours(&url("a-800.jpg"))), [""; 0]);
        document.asked(&url("e-800.jpg"));
        assert_eq!(document.viewport().width, 780.0);
        assert_eq!(paths(document.neighbours(&url("e-800.jpg"))), ["c-narrow.jpg"], "b's was right");
        assert_eq!(paths(document.neighbours(&url("e-800.jpg"))), [""; 0], "told once");
    }

    #[test]
    fn a_page_with_one_choice_is_corrected_by_it() {
        let mut document = Document::new(&url("/"), None, Options::default());
        document.html(b"<img srcset='a-480.jpg 480w, a-1600.jpg 1600w'>");
        document.asked(&url("a-480.jpg"));
        assert!(document.viewport().width <= 480.0, "{:?}", document.viewport());
    }

    #[test]
    fn what_the_browser_has_asked_for_is_not_told_again() {
        let mut document = read();
        document.asked(&url("c-narrow.jpg"));
        document.asked(&url("a-800.jpg"));
        assert_eq!(paths(document.neighbours(&url("a-800.jpg"))), [""; 0]);
    }

    #[test]
    fn more_that_is_asked_for_tells_more_of_the_screen() {
        let mut document = read();
        document.asked(&url("b-1600.jpg"));
        document.asked(&url("c-narrow.jpg"));
        let Viewport { width, density, .. } = document.viewport();
        assert!(*width <= 800.0 && density * width > 800.0, "{width} at {density}");
    }

    #[test]
    fn an_image_of_the_other_colour_scheme_tells_of_it() {
        let element = |at| {
            format!(
                "<picture><source media='(prefers-color-scheme: dark)' srcset={at}-dark.png><img src={at}.png></picture>"
            )
        };
        let mut document = Document::new(&url("/"), None, Options::default());
        let hints = document.html((0..9).map(element).collect::<String>().as_bytes());
        assert!(paths(hints).iter().all(|path| !path.contains("dark")));
        document.asked(&url("0.png?other"));
        assert!(!document.viewport().dark);
        document.asked(&url("3-dark.png"));
        assert!(document.viewport().dark);
        let rest = ["0-dark.png", "1-dark.png", "2-dark.png", "4-dark.png", "5-dark.png", "6-dark.png"];
        assert_eq!(paths(document.neighbours(&url("3-dark.png")))[..6], rest);
        let learnt = Options { viewport: document.viewport().clone(), ..Options::default() };
        let css = "<style>p{background:url(l.png)}@media(prefers-color-scheme:dark){p{background:url(d.png)}}</style><p>x";
        let mut next = Document::new(&url("/next"), None, learnt);
        assert_eq!(paths(next.html([css, &element(0)].concat().as_bytes())), ["d.png", "0-dark.png"]);
    }

    #[test]
    fn what_the_layout_decides_tells_nothing() {
        let element = |at| {
            format!("<img loading=lazy sizes=auto srcset='{at}-s.jpg 300w, {at}-l.jpg 2000w' src={at}.jpg>")
        };
        let mut document = Document::new(&url("/"), None, Options::default());
        document.html((0..9).map(element).collect::<String>().as_bytes());
        for path in ["0-s.jpg", "1-s.jpg", "2-s.jpg", "3-s.jpg", "4-s.jpg"] {
            document.asked(&url(path));
            assert_eq!(paths(document.neighbours(&url(path))), [""; 0]);
        }
        assert_eq!(*document.viewport(), Viewport::default());
    }

    #[test]
    fn what_no_screen_shows_tells_nothing() {
        let mut document = read();
        for path in ["a.jpg", "d.jpg", "a-900.jpg", "else.jpg"] {
            document.asked(&url(path));
        }
        assert_eq!(*document.viewport(), Viewport::default());
        assert_eq!(paths(document.neighbours(&url("d.jpg"))), [""; 0]);
    }
}
