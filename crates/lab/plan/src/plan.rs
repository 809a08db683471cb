//! A plan as it is carried out: everything that its file says, checked. Plain data.

use std::path::PathBuf;
use std::time::Duration;

use farhop_compare::{Peer, Stand, Variant};
use farhop_loader::{Handshake, Protocol, Settings};
use farhop_orbit::Profile;
use farhop_units::Bytes;
use farhop_workload::browser::Engine;

use crate::digest::Source;
use crate::measure::Measure;
use crate::words;

/// What is to be found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name: that of its file.
    pub name: String,
    /// In a sentence.
    pub title: String,
    /// The study that it repeats.
    pub study: Option<String>,
    /// What is loaded.
    pub pages: Vec<PageSpec>,
    /// Over what.
    pub links: Vec<LinkSpec>,
    /// In which ways.
    pub variants: Vec<VariantSpec>,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// The measure whose interval ends the repetitions.
    pub goal: Measure,
    /// The variant that all others are compared with: its place.
    pub base: usize,
    /// How often.
    pub runs: Runs,
    /// What `--quick` leaves of it.
    pub quick: Quick,
    /// The first repetition's seed.
    pub seed: u64,
    /// When a load is given up.
    pub timeout: Duration,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Figures of single loads over time; where there are any, the first load of each cell is watched span by span.
    pub dynamics: Vec<DynamicsFigure>,
    /// What the study says in numbers.
    pub claims: Vec<Claim>,
    /// What differs from the study, and other things that a reader must know.
    pub notes: Vec<String>,
    /// Tells loads of this plan from those of any other: a hash of all that a load follows from.
    pub digest: String,
    /// What that is made from.
    pub(crate) source: Source,
}

/// Repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runs {
    /// At least.
    pub least: u32,
    /// At most.
    pub most: u32,
    /// Enough where half of the 95 % interval is within this share of the median.
    pub within: f64,
}

/// A quick look.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Quick {
    /// Repetitions of each cell.
    pub runs: u32,
    /// The places of the pages that are loaded; all where it is empty.
    pub pages: Vec<usize>,
    /// The places of the links.
    pub links: Vec<usize>,
}

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageSpec {
    /// What results call it.
    pub name: String,
    /// What it is.
    pub kind: PageKind,
    /// Where it stands on the axis of a figure.
    pub at: Option<f64>,
    /// Pages of one group are one line of a figure.
    pub group: Option<String>,
}

/// What a page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageKind {
    /// One that the lab makes, by name.
    Known(String),
    /// A document of this size with so many objects of that size, which no coding shrinks.
    Made {
        /// How many.
        objects: u32,
        /// Bytes of each.
        object: Bytes,
        /// Bytes of the document.
        document: Bytes,
    },
    /// A folder, with the path of its document.
    Folder(PathBuf, String),
    /// A HAR or WARC, with the URL of its document where it is not the first page.
    Recording(PathBuf, Option<String>),
    /// So many bytes that the client sends to the origin, in one request.
    Upload(Bytes),
}

/// A link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// What results call it.
    pub name: String,
    /// The satellite.
    pub profile: Profile,
    /// Terminals that share it, each with a user who loads at the same time.
    pub terminals: u16,
    /// Where it stands on the axis of a figure.
    pub at: Option<f64>,
}

/// A way to load pages.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantSpec {
    /// What results call it.
    pub name: String,
    /// What stands in between.
    pub through: Through,
    /// Who loads.
    pub client: Client,
    /// What the loader does; of a browser, the protocol and whether there is a handshake.
    pub settings: Settings,
    /// What of the testbed is different for it.
    pub dressing: Dressing,
    /// Whether a server of the lab's own answers instead of the stock one: for pushes and 0-RTT.
    pub own: bool,
    /// Users at the terminal, who load at the same time.
    pub users: u8,
    /// The share of what the document names that this server pushes.
    pub push: Option<f64>,
    /// Where it stands on the axis of a figure.
    pub at: Option<f64>,
    /// Variants of one line of a figure have the same name here.
    pub line: Option<String>,
}

/// Who loads pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// The lab's own.
    Loader,
    /// A browser, with what it speaks to origins that it asks directly.
    Browser(Engine, Variant),
}

impl VariantSpec {
    /// Whether what it asks for is asked of something that stands in for the origins at the gateway.
    pub(crate) fn is_at_gateway(&self) -> bool {
        self.through == Through::Peer(Peer::Nginx) && self.settings.handshake != Handshake::Plain
    }

    /// The browser that it wants.
    pub fn engine(&self) -> Option<Engine> {
        match self.client {
            Client::Browser(engine, _) => Some(engine),
            Client::Loader => None,
        }
    }

    /// The variant of comparisons whose servers it asks and whose programs it needs.
    pub fn servers(&self) -> Variant {
        match (&self.through, self.client, self.settings.protocol) {
            (Through::Farhop { variant, .. }, ..) => *variant,
            (_, Client::Browser(_, variant), _) => variant,
            (_, Client::Loader, Protocol::Http3) => Variant::DirectH3,
            (_, Client::Loader, _) => Variant::DirectH1,
        }
    }
}

/// What of the testbed is different for a variant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dressing {
    /// Segments that the origins send first (RFC 6928); none leaves it to the kernel, which has ten.
    pub initial_window: Option<u32>,
    /// The origins' congestion control, by the kernel's name.
    pub server_congestion: Option<String>,
    /// Segments that ground sends first on a TCP connection of its carrier, or after it was idle.
    pub carrier_window: Option<u32>,
    /// The congestion control of the carrier's TCP connections towards the users, by the kernel's name.
    pub carrier_congestion: Option<String>,
    /// Whether a tunnel from the client to the origins hides transport headers from everything in between.
    pub vpn: bool,
}

/// What plans call Farhop as a PEP alone: it splits TCP as it passes, and understands nothing of it.
pub(crate) const SPLIT: &str = "farhop-split";

/// What stands between loader and origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Through {
    /// Nothing.
    Direct,
    /// Both ends of Farhop.
    Farhop {
        /// As the lab knows it.
        variant: Variant,
        /// Lines of `[link]` of both ends' settings.
        link: String,
        /// Lines of the remote's settings.
        remote: String,
        /// Where both ends are.
        stand: Stand,
        /// Whether it takes connections as they pass, without being asked as a proxy (`farhop-split`).
        caught: bool,
    },
    /// What others made.
    Peer(Peer),
}

/// A figure: what stands on the axis across, and what is a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The study's number.
    pub figure: String,
    /// Where in the study it stands.
    pub place: String,
    /// What it shows.
    pub title: String,
    /// What is drawn.
    pub measure: Measure,
    /// What of the repetitions is drawn.
    pub statistic: Statistic,
    /// What stands across.
    pub x: Axis,
    /// The places of the links that are drawn; all where it is empty.
    pub links: Vec<usize>,
    /// The places of the variants that are drawn; all where it is empty.
    pub variants: Vec<usize>,
    /// Its name.
    pub label: String,
    /// What the study found.
    pub found: String,
}

/// A figure of single loads over time: rates and active connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamicsFigure {
    /// The study's number.
    pub figure: String,
    /// Where in the study it stands.
    pub place: String,
    /// What it shows.
    pub title: String,
    /// What the study found.
    pub found: String,
}

/// What of repetitions a figure draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The middle one.
    Median,
    /// The arithmetic mean.
    Mean,
    /// The 95th percentile.
    P95,
    /// The least.
    Min,
    /// The most.
    Max,
}

/// What the study says of a variant against another.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The study's figure, table or section.
    pub figure: String,
    /// What it says.
    pub says: String,
    /// Of what.
    pub measure: Measure,
    /// The variant's place.
    pub variant: usize,
    /// The place of the one that it is compared with.
    pub against: usize,
    /// The variant as a multiple of the other; none where the study gives no number.
    pub times: Option<f64>,
    /// Without a number: -1 less, 0 the same, 1 more.
    pub direction: i8,
    /// The places of the pages that it is about; all where it is empty.
    pub pages: Vec<usize>,
    /// The places of the links.
    pub links: Vec<usize>,
    /// The place of the link over which the other is loaded, where that is another one.
    pub against_link: Option<usize>,
    /// Why it differs here, as far as that is known.
    pub why: String,
}

/// What a figure has across.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Pages.
    Page,
    /// Links.
    Link,
    /// Variants.
    Variant,
}

/// One page over one link in one way, by their places in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// The link.
    pub link: usize,
    /// The page.
    pub page: usize,
    /// The variant.
    pub variant: usize,
}

impl Plan {
    /// What `--quick` leaves: fewer pages, links and repetitions. Its loads are loads of the whole plan.
    #[must_use]
    pub fn quickened(&self) -> Plan {
        let Quick { runs, pages, links } = &self.quick;
        let chosen = |chosen: &[usize], place: &usize| chosen.is_empty() || chosen.contains(place);
        let mut plan = self.clone();
        plan.runs = Runs { least: *runs, most: *runs, ..self.runs };
        plan.pages = keep(&self.pages, |place| chosen(pages, place));
        plan.links = keep(&self.links, |place| chosen(links, place));
        plan.figures = self.figures.iter().filter_map(|figure| figure.among(links)).collect();
        plan.claims = self.claims.iter().filter_map(|claim| claim.among(pages, links)).collect();
        plan
    }

    /// Every cell, link by link, page by page.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for link in 0..self.links.len() {
            for page in 0..self.pages.len() {
                cells.extend((0..self.variants.len()).map(|variant| Cell { link, page, variant }));
            }
        }
        cells
    }

    /// `httpep-5 over geo-256k, browser`
    pub fn in_words(&self, cell: Cell) -> String {
        let Cell { link, page, variant } = cell;
        format!("{} over {}, {}", self.pages[page].name, self.links[link].name, self.variants[variant].name)
    }
}

/// The places of what is wanted among what is left (all where there are none); none where nothing of it is left.
fn left_of(wanted: &[usize], left: &[usize]) -> Option<Vec<usize>> {
    if left.is_empty() || wanted.is_empty() {
        return Some(wanted.to_vec());
    }
    let mut left = left.to_vec();
    left.sort_unstable();
    left.dedup();
    let now: Vec<usize> = wanted.iter().filter_map(|place| left.iter().position(|it| it == place)).collect();
    (!now.is_empty()).then_some(now)
}

impl Figure {
    /// The figure in a plan of these links alone (all where there are none); none where it draws others.
    fn among(&self, links: &[usize]) -> Option<Figure> {
        Some(Figure { links: left_of(&self.links, links)?, ..self.clone() })
    }

    /// Whether both draw the same of the same cells, but for the statistic (and the title that tells it).
    pub(crate) fn differs_by_statistic_alone(&self, other: &Figure) -> bool {
        let as_other = Figure { statistic: other.statistic, title: other.title.clone(), ..self.clone() };
        as_other == *other && self.statistic != other.statistic
    }
}

impl Claim {
    /// The claim in a plan of these pages and links alone (all where there are none); none where it is about others.
    fn among(&self, pages: &[usize], links: &[usize]) -> Option<Claim> {
        let against_link = match self.against_link {
            None => None,
            Some(link) => Some(*left_of(&[link], links)?.first()?),
        };
        let (pages, links) = (left_of(&self.pages, pages)?, left_of(&self.links, links)?);
        Some(Claim { pages, links, against_link, ..self.clone() })
    }
}

fn keep<T: Clone>(all: &[T], wanted: impl Fn(&usize) -> bool) -> Vec<T> {
    all.iter().enumerate().filter(|(place, _)| wanted(place)).map(|(_, it)| it.clone()).collect()
}

impl PageSpec {
    /// `40 objects of 8 KB and a document of 4 KB`
    pub fn in_words(&self) -> String {
        match &self.kind {
            PageKind::Known(name) => format!("the lab's page {name}"),
            PageKind::Made { objects, object, document } => {
                let objects = words::counted(u64::from(*objects), "object");
                format!("{objects} of {object} and a document of {document}")
            }
            PageKind::Recording(file, _) => format!("recorded in {}", file.display()),
            PageKind::Upload(bytes) => format!("an upload of {bytes}"),
            PageKind::Folder(folder, entry) => format!("{} of {}", entry, folder.display()),
        }
    }
}
