//! From the text of a file to a plan. What is wrong is said in one line: file, line, reason.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use farhop_compare::Stand;
use farhop_orbit::Profile;
use farhop_units::{BitRate, Bytes};
use farhop_workload::pages;

use crate::digest::Source;
use crate::figures::{Figures, Known};
use crate::form::{self, Text};
use crate::measure::Measure;
use crate::plan::{Client, Dressing, LinkSpec, PageKind, PageSpec, Plan, Quick, Runs, Through, VariantSpec};
use crate::variant::variant;

/// Why a file is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct FileError {
    /// The file as it was named.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

/// What is wrong, and where it stands in the text.
pub(crate) struct Wrong {
    at: usize,
    reason: String,
}

pub(crate) fn wrong(at: Range<usize>, reason: impl ToString) -> Wrong {
    Wrong { at: at.start, reason: reason.to_string() }
}

/// Gives the text of a file that the plan names, or says why there is none.
type Open<'a> = dyn FnMut(&Path) -> Result<String, String> + 'a;

/// More cells than any plan has, and longer repetitions.
const MOST_CELLS: usize = 5_000;
const MOST_RUNS: u32 = 1_000;
const MOST_OBJECTS: u32 = 5_000;
const MOST_TERMINALS: u16 = 50;
const LARGEST_UPLOAD: Bytes = Bytes(64_000_000);

impl Plan {
    /// Reads a plan from the `text` of `file`, which errors call as it is written here and which gives it its name. `open`
    /// reads what it names besides, relative to the file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn from_toml(text: &str, file: &str, open: &mut Open<'_>) -> Result<Plan, FileError> {
        let told = |wrong: Wrong| FileError {
            file: one_line(file),
            line: 1 + text.as_bytes().iter().take(wrong.at).filter(|byte| **byte == b'\n').count(),
            reason: one_line(&wrong.reason),
        };
        let form = toml_edit::de::from_str::<form::Plan>(text).map_err(|error| {
            told(Wrong { at: error.span().map_or(0, |span| span.start), reason: error.message().to_owned() })
        })?;
        let path = Path::new(file);
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut reader = Reader { folder, open, named: Vec::new() };
        let plan = reader.plan(form, name).map_err(told)?;
        let source = Source { text: text.to_owned(), named: reader.named };
        Ok(Plan { digest: source.digest(), source, ..plan })
    }
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(", ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

struct Reader<'a, 'b> {
    folder: &'a Path,
    open: &'a mut Open<'b>,
    /// What each of the links that were read has had opened.
    named: Vec<Vec<String>>,
}

impl Reader<'_, '_> {
    fn plan(&mut self, form: form::Plan, name: String) -> Result<Plan, Wrong> {
        for (what, count) in
            [("page", form.page.len()), ("link", form.link.len()), ("variant", form.variant.len())]
        {
            if count == 0 {
                return Err(wrong(0..0, format!("there is no [[{what}]]: a plan has one at least")));
            }
        }
        if form.page.len() * form.link.len() * form.variant.len() > MOST_CELLS {
            return Err(wrong(0..0, format!("it has more than {MOST_CELLS} cells")));
        }
        let timeout =
            quantity(&form.timeout, farhop_units::parse_duration)?.unwrap_or(Duration::from_secs(300));
        if let Some(said) = form.timeout.as_ref().filter(|_| timeout.is_zero()) {
            return Err(wrong(said.span(), "'timeout' is more than 0 s: nothing is loaded in no time"));
        }
        let pages = form.page.iter().map(|page| self.page(page)).collect::<Result<Vec<_>, _>>()?;
        let links = form.link.iter().map(|link| self.link(link)).collect::<Result<Vec<_>, _>>()?;
        let variants =
            form.variant.iter().map(|it| variant(it.get_ref(), timeout)).collect::<Result<Vec<_>, _>>()?;
        together(&form, &links, &variants)?;
        unique("page", form.page.iter().map(|it| &it.get_ref().name))?;
        unique("link", form.link.iter().map(|it| &it.get_ref().name))?;
        unique("variant", form.variant.iter().map(|it| &it.get_ref().name))?;
        let measures: Vec<Measure> = match form.measures.as_slice() {
            // A film costs a browser time: only who asks for it has it.
            [] => Measure::ALL.iter().copied().filter(|it| *it != Measure::SpeedIndex).collect(),
            named => named.iter().map(measure).collect::<Result<_, _>>()?,
        };
        let goal = form.goal.as_ref().map_or(Ok(Measure::Load), measure)?;
        let base = match &form.base {
            None => 0,
            Some(base) => place(base, "variant", variants.iter().map(|it| it.name.as_str()))?,
        };
        let known = Known { measures: &measures, pages: &pages, links: &links, variants: &variants };
        let Figures { figures, dynamics } = known.figures(&form.plot)?;
        let claims = known.claims(&form.claim, base)?;
        if !measures.contains(&goal) {
            let at = form.goal.as_ref().map_or(0..0, |goal| goal.span());
            return Err(wrong(at, format!("'{}' is the goal and not among the measures", goal.name())));
        }
        for page in form.page.iter().filter(|page| page.get_ref().upload.is_some()) {
            if let Some(variant) = variants.iter().find(|it| it.own || it.client != Client::Loader) {
                let reason = format!(
                    "'{}' cannot upload: neither browsers nor servers of the lab's own do",
                    variant.name
                );
                return Err(wrong(page.span(), reason));
            }
        }
        let runs = runs(form.runs.as_ref())?;
        let quick = quick(form.quick.as_ref(), &pages, &links)?;
        Ok(Plan {
            name,
            title: form.title,
            study: form.study,
            pages,
            links,
            variants,
            measures,
            goal,
            base,
            runs,
            quick,
            seed: form.seed.unwrap_or(1),
            timeout,
            figures,
            dynamics,
            claims,
            notes: form.notes,
            digest: String::new(),
            source: Source::default(),
        })
    }

    fn page(&self, said: &serde_spanned::Spanned<form::Page>) -> Result<PageSpec, Wrong> {
        let (page, at) = (said.get_ref(), said.span());
        let name = page.name.get_ref();
        let said_how =
            [page.objects.is_some(), page.folder.is_some(), page.upload.is_some(), page.recording.is_some()];
        if said_how.into_iter().filter(|said| *said).count() > 1 {
            let reason =
                "two of 'objects', 'folder', 'upload' and 'recording' say what the page is; keep one";
            return Err(wrong(at, reason));
        }
        let kind = self.kind(page, at)?;
        let host = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !host || name.is_empty() {
            return Err(wrong(
                page.name.span(),
                format!("'{name}' becomes a host name: lower-case letters, digits and '-' alone"),
            ));
        }
        Ok(PageSpec { name: name.clone(), kind, at: page.at, group: page.group.clone() })
    }

    /// What a page is.
    fn kind(&self, page: &form::Page, at: Range<usize>) -> Result<PageKind, Wrong> {
        let size = |text: &Text| quantity_at(text, str::parse::<Bytes>);
        if let Some(upload) = &page.upload {
            return match size(upload)? {
                bytes if bytes.0 == 0 || bytes > LARGEST_UPLOAD => {
                    Err(wrong(upload.span(), format!("an upload is 1 B to {LARGEST_UPLOAD}")))
                }
                bytes => Ok(PageKind::Upload(bytes)),
            };
        }
        if let Some(recording) = &page.recording {
            let document = page.entry.as_ref().map(|entry| entry.get_ref().clone());
            return Ok(PageKind::Recording(self.folder.join(recording.get_ref()), document));
        }
        if let Some(objects) = page.objects {
            if objects > MOST_OBJECTS {
                return Err(wrong(at, format!("a page has {MOST_OBJECTS} objects at most")));
            }
            let reason = "'objects' says how many; how large each is 'object' says, as in '8 KB'";
            let object = page.object.as_ref().ok_or_else(|| wrong(at, reason))?;
            let document = page.document.as_ref().map(size).transpose()?.unwrap_or(Bytes(4_000));
            return Ok(PageKind::Made { objects, object: size(object)?, document });
        }
        if let Some(folder) = &page.folder {
            let entry = page.entry.as_ref().map_or("/", |entry| entry.get_ref().as_str());
            if !entry.starts_with('/') {
                return Err(wrong(at, format!("entry '{entry}' is no path: it starts with /")));
            }
            return Ok(PageKind::Folder(self.folder.join(folder.get_ref()), entry.to_owned()));
        }
        let name = page.name.get_ref();
        let known = || pages::NAMES.iter().chain(&pages::HTTPEP).chain(&pages::ALMANAC);
        if !known().any(|known| known == name) {
            let known = known().copied().collect::<Vec<_>>().join(", ");
            let reason = format!(
                "the lab makes no page called '{name}': there are {known}; else say 'objects', 'folder' or 'recording'"
            );
            return Err(wrong(page.name.span(), reason));
        }
        Ok(PageKind::Known(name.clone()))
    }

    fn link(&mut self, said: &serde_spanned::Spanned<form::Link>) -> Result<LinkSpec, Wrong> {
        let (link, name) = (said.get_ref(), said.get_ref().name.get_ref());
        let changed = [&link.rate, &link.return_rate, &link.delay, &link.loss, &link.terrestrial_loss];
        let is_changed = changed.into_iter().any(Option::is_some);
        let mut named = Vec::new();
        let mut open = |path: &Path| -> Result<String, String> {
            let text = (self.open)(path)?;
            named.push(text.clone());
            Ok(text)
        };
        let profile = match (&link.file, &link.like) {
            (Some(_), _) if is_changed || link.like.is_some() => {
                return Err(wrong(
                    said.span(),
                    "'file' says all of a link: no 'like', rate, delay or loss beside it",
                ));
            }
            (Some(file), _) => {
                let path = self.folder.join(file.get_ref());
                let text = open(&path).map_err(|error| wrong(file.span(), error))?;
                let beside = path.parent().unwrap_or(Path::new("")).to_owned();
                let mut beside = |name: &str| open(&beside.join(name));
                let read = Profile::from_toml(&text, &path.to_string_lossy(), &mut beside);
                read.map_err(|error| wrong(file.span(), error))?
            }
            (None, like) => {
                let like = like.as_ref().unwrap_or(&link.name);
                let known = Profile::named(like.get_ref()).map_err(|error| wrong(like.span(), error))?;
                if is_changed {
                    let text = satellite(link, like.get_ref());
                    let mut none = |name: &str| Err(format!("there is no {name}"));
                    let read = Profile::from_toml(&text, name, &mut none);
                    read.map_err(|error| wrong(said.span(), error.reason))?
                } else {
                    known
                }
            }
        };
        self.named.push(named);
        let terminals = link.terminals.unwrap_or(1);
        if !(1..=MOST_TERMINALS).contains(&terminals) {
            let reason = format!("'terminals' are 1 to {MOST_TERMINALS}");
            return Err(wrong(said.span(), reason));
        }
        Ok(LinkSpec { name: name.clone(), profile, terminals, at: link.at })
    }
}

/// Whether every variant can be loaded by all users of every link at once.
fn together(form: &form::Plan, links: &[LinkSpec], variants: &[VariantSpec]) -> Result<(), Wrong> {
    let Some(many) = links.iter().position(|link| link.terminals > 1) else { return Ok(()) };
    let not = |variant: &VariantSpec| {
        let Dressing { vpn, .. } = variant.dressing;
        let is_everywhere = match variant.through {
            Through::Direct => true,
            Through::Farhop { stand, .. } => stand != Stand::Terminal,
            Through::Peer(_) => false,
        };
        variant.client != Client::Loader || !is_everywhere || vpn || variant.users > 1
    };
    match variants.iter().find(|variant| not(variant)) {
        Some(variant) => Err(wrong(
            form.link[many].span(),
            format!(
                "'{}' cannot be loaded from several terminals: only the lab's loader can, directly or through Farhop, by one user at each",
                variant.name
            ),
        )),
        None => Ok(()),
    }
}

/// The file of a satellite that is like another, but for what is said here.
fn satellite(link: &form::Link, like: &str) -> String {
    let way = |rate: &Option<Text>| {
        let mut text = String::new();
        for (key, value) in [("rate", rate), ("delay", &link.delay), ("loss", &link.loss)] {
            if let Some(value) = value {
                text.push_str(&format!("{key} = {}\n", quoted(value.get_ref())));
            }
        }
        if let Some(loss) = &link.terrestrial_loss {
            text.push_str(&format!("terrestrial = {{ loss = {} }}\n", quoted(loss.get_ref())));
        }
        text
    };
    format!(
        "like = {}\nname = {}\n[forward]\n{}[return]\n{}",
        quoted(like),
        quoted(&format!("plan-{}", link.name.get_ref())),
        way(&link.rate),
        way(&link.return_rate)
    )
}

/// As TOML's basic string.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

pub(crate) fn quantity_at<T, E: ToString>(
    text: &Text,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, Wrong> {
    parse(text.get_ref()).map_err(|error| wrong(text.span(), error.to_string()))
}

pub(crate) fn quantity<T, E: ToString>(
    text: &Option<Text>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Wrong> {
    text.as_ref().map(|text| quantity_at(text, &parse)).transpose()
}

pub(crate) fn measure(text: &Text) -> Result<Measure, Wrong> {
    let known = || Measure::ALL.iter().map(|known| known.name()).collect::<Vec<_>>().join(", ");
    Measure::named(text.get_ref()).ok_or_else(|| {
        wrong(
            text.span(),
            format!("nothing is measured that is called '{}': there are {}", text.get_ref(), known()),
        )
    })
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a Text>) -> Result<(), Wrong> {
    let mut known = HashSet::new();
    for name in names {
        if !known.insert(name.get_ref()) {
            return Err(wrong(name.span(), format!("two {what}s are called '{}'", name.get_ref())));
        }
    }
    Ok(())
}

pub(crate) fn place<'a>(
    name: &Text,
    what: &str,
    mut known: impl Iterator<Item = &'a str>,
) -> Result<usize, Wrong> {
    known
        .position(|known| known == name.get_ref())
        .ok_or_else(|| wrong(name.span(), format!("no {what} of this plan is called '{}'", name.get_ref())))
}

/// One of some words.
pub(crate) fn word<T: Copy>(text: &Text, words: &[(&str, T)]) -> Result<T, Wrong> {
    let found = words.iter().find(|(word, _)| word == text.get_ref());
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    found
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| wrong(text.span(), format!("'{}' is none of {}", text.get_ref(), known())))
}

fn runs(form: Option<&serde_spanned::Spanned<form::Runs>>) -> Result<Runs, Wrong> {
    let Some(form) = form else { return Ok(Runs { least: 3, most: 10, within: 0.05 }) };
    let form::Runs { least, most, within } = form.get_ref();
    if *least == 0 || least > most || *most > MOST_RUNS {
        return Err(wrong(
            form.span(),
            format!("'least' is 1 or more, 'most' no less than that and {MOST_RUNS} at most"),
        ));
    }
    Ok(Runs { least: *least, most: *most, within: quantity_at(within, farhop_units::parse_share)? })
}

fn quick(
    form: Option<&serde_spanned::Spanned<form::Quick>>,
    pages: &[PageSpec],
    links: &[LinkSpec],
) -> Result<Quick, Wrong> {
    let Some(form) = form else { return Ok(Quick { runs: 1, ..Quick::default() }) };
    let form::Quick { runs, pages: some_pages, links: some_links } = form.get_ref();
    if *runs == 0 || *runs > MOST_RUNS {
        return Err(wrong(form.span(), format!("'runs' are 1 to {MOST_RUNS}")));
    }
    let page = |name: &Text| place(name, "page", pages.iter().map(|page| page.name.as_str()));
    let link = |name: &Text| place(name, "link", links.iter().map(|link| link.name.as_str()));
    Ok(Quick {
        runs: *runs,
        pages: some_pages.iter().map(page).collect::<Result<_, _>>()?,
        links: some_links.iter().map(link).collect::<Result<_, _>>()?,
    })
}

/// Rates are read only by the satellite's own reader; this keeps the unit in one place for estimates.
pub(crate) fn rate_of(rate: Option<BitRate>) -> Option<f64> {
    rate.map(|rate| rate.0 as f64)
}
