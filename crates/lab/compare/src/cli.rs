//! The command lines of `farhop lab compare`, `farhop lab origins` and `farhop demo`, and where their results go.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use farhop_orbit::Profile;
use farhop_report::{Comparison, html, table};
use farhop_workload::pages::{self, Page, Site};

use crate::compare::{Experiment, Plan};
use crate::demo::{Demo, demonstrate};
use crate::interrupt::Interrupt;
use crate::link::links;
use crate::site::host_label;
use crate::{CompareError, HostDelay, SiteArgument, Variant};

/// What is compared unless one is asked for, over plain HTTP and over HTTPS.
const PLAIN: [Variant; 3] = [Variant::DirectH1, Variant::DirectH2, Variant::Farhop];
const SECURE: [Variant; 6] = [
    Variant::DirectH1s,
    Variant::DirectH2,
    Variant::DirectH3,
    Variant::Squid,
    Variant::FarhopTunnel,
    Variant::Farhop,
];

/// Loads a page in a real browser through each variant over an emulated satellite link.
#[derive(Debug, clap::Args)]
pub struct CompareArguments {
    /// A folder to serve as a site; the first has the page. Without HOST it is called after the folder
    #[arg(long = "site", value_name = "DIR[=HOST]", required = true)]
    pub sites: Vec<SiteArgument>,
    /// The page's path on the first site
    #[arg(long, value_name = "/PATH", default_value = "/")]
    pub entry: String,
    /// The link
    #[arg(long, value_name = "LINK", default_value = "geo-hylas2", value_parser = links())]
    pub link: Profile,
    /// Serves the sites over HTTPS; Farhop intercepts with a CA that the browser trusts
    #[arg(long)]
    pub tls: bool,
    /// The ways to load the page, separated by commas [default: direct-h1,direct-h2,farhop; with --tls
    /// direct-h1s,direct-h2,direct-h3,squid,farhop-tunnel,farhop]
    #[arg(long, value_delimiter = ',')]
    pub variants: Vec<Variant>,
    /// Loads through each variant
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Where the result goes as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Where the result goes as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// A site's own delay before each answer, such as a.test=50ms
    #[arg(long = "origin-delay", value_name = "HOST=TIME")]
    pub delays: Vec<HostDelay>,
    /// The sites have their text in Brotli, too, for who takes it (browsers do over HTTPS)
    #[arg(long)]
    pub brotli: bool,
    /// When a load is given up
    #[arg(long, value_name = "TIME", default_value = "300 s", value_parser = duration)]
    pub timeout: Duration,
    /// Decides which packets a lossy link loses
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Shows the difference: three pages, directly and through Farhop, over an emulated satellite link.
#[derive(Debug, clap::Args)]
pub struct DemoArguments {
    /// The link
    #[arg(long, value_name = "LINK", default_value = "geo-hylas2", value_parser = links())]
    pub link: Profile,
    /// The pages; flags, photos and article where it is left out
    #[arg(long = "page", value_name = "PAGE", value_delimiter = ',', value_parser = page_names())]
    pub pages: Vec<String>,
    /// The ways to load them, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "direct-h1,direct-h2,farhop")]
    pub variants: Vec<Variant>,
    /// Loads of each page through each variant
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Leaves the testbed up afterwards and says how to use it with one's own browser
    #[arg(long)]
    pub keep: bool,
    /// Writes the result as JSON to standard output, and everything else to standard error
    #[arg(long)]
    pub json: bool,
    /// Where the result goes as one HTML file
    #[arg(long, value_name = "FILE", default_value = "target/demo.html")]
    pub html: PathBuf,
    /// When a load is given up
    #[arg(long, value_name = "TIME", default_value = "300 s", value_parser = duration)]
    pub timeout: Duration,
}

/// Serves origins; started by the lab itself within a testbed.
#[derive(Debug, clap::Args)]
pub struct OriginsArguments {
    /// What to serve, as JSON
    #[arg(long, value_name = "FILE")]
    pub spec: PathBuf,
}

fn page_names() -> PossibleValuesParser {
    PossibleValuesParser::new(pages::NAMES.iter().chain(&pages::HTTPEP))
}

fn duration(text: &str) -> Result<Duration, String> {
    farhop_units::parse_duration(text).map_err(|error| error.to_string())
}

/// Runs `farhop lab compare`. The table goes to standard output unless the JSON does.
///
/// # Errors
/// See [`CompareError`].
pub fn compare(arguments: &CompareArguments) -> Result<(), CompareError> {
    if !arguments.entry.starts_with('/') {
        return Err(CompareError::Arguments(format!(
            "--entry '{}' is no path: it starts with /",
            arguments.entry
        )));
    }
    farhop_testbed::require_privileges()?;
    let interrupt = Interrupt::install()?;
    let delay =
        |host: &str| arguments.delays.iter().rfind(|delay| delay.host == host).map(|delay| delay.delay);
    let site = |site: &SiteArgument| Site {
        delay: delay(&site.host).unwrap_or_default(),
        brotli: arguments.brotli,
        ..Site::new(&site.host, &site.folder)
    };
    if let Some(stray) =
        arguments.delays.iter().find(|delay| arguments.sites.iter().all(|site| site.host != delay.host))
    {
        let host = &stray.host;
        return Err(CompareError::Arguments(format!(
            "no site is called {host}, so that it can have no delay"
        )));
    }
    let name = arguments.sites.first().map(|site| host_label(&site.folder)).unwrap_or_default();
    let page =
        Page { name, entry: arguments.entry.clone(), sites: arguments.sites.iter().map(site).collect() };
    let mut variants = Vec::new();
    let wanted = match (arguments.variants.is_empty(), arguments.tls) {
        (false, _) => arguments.variants.as_slice(),
        (true, false) => &PLAIN,
        (true, true) => &SECURE,
    };
    for variant in wanted {
        if !variants.contains(variant) {
            variants.push(*variant);
        }
    }
    let experiment = Experiment {
        profile: arguments.link.clone(),
        seed: arguments.seed,
        plan: Plan {
            pages: vec![page],
            variants,
            runs: arguments.runs,
            timeout: arguments.timeout,
            tls: arguments.tls,
        },
    };
    let comparison = experiment.carry_out(interrupt, &mut |line| eprintln!("{line}"))?;
    let json_to_stdout = arguments.json.as_deref() == Some(Path::new("-"));
    if let Some(file) = &arguments.html {
        write(file, &html(&comparison))?;
    }
    match &arguments.json {
        Some(file) if !json_to_stdout => write(file, &json(&comparison))?,
        _ => {}
    }
    show(&comparison, json_to_stdout)
}

/// Runs `farhop demo`.
///
/// # Errors
/// See [`CompareError`].
pub fn demo(arguments: &DemoArguments) -> Result<(), CompareError> {
    let every = || pages::NAMES.map(str::to_owned).into();
    let demo = Demo {
        profile: arguments.link.clone(),
        pages: if arguments.pages.is_empty() { every() } else { arguments.pages.clone() },
        variants: arguments.variants.clone(),
        runs: arguments.runs,
        timeout: arguments.timeout,
        tls: false,
        keep: arguments.keep,
    };
    demonstrate(&demo, &mut |line| eprintln!("{line}"), |comparison| {
        write(&arguments.html, &html(comparison))?;
        show(comparison, arguments.json)?;
        eprintln!("the same as a page: {}", arguments.html.display());
        Ok(())
    })
}

/// Runs `farhop lab origins` until the process ends.
///
/// # Errors
/// Nothing can be served.
pub fn origins(arguments: &OriginsArguments) -> Result<(), CompareError> {
    match farhop_workload::origins::run(&arguments.spec)? {}
}

/// JSON alone to standard output, or the table.
fn show(comparison: &Comparison, as_json: bool) -> Result<(), CompareError> {
    let text = table(comparison);
    let mut out = std::io::stdout().lock();
    let shown = if as_json {
        eprint!("{text}");
        out.write_all(json(comparison).as_bytes())
    } else {
        out.write_all(text.as_bytes())
    };
    shown.and_then(|()| out.flush()).map_err(CompareError::file("standard output"))
}

fn json(comparison: &Comparison) -> String {
    // Every field is a number, a text or a list of them: there is nothing that JSON could refuse.
    serde_json::to_string_pretty(comparison).map(|text| text + "\n").unwrap_or_default()
}

fn write(file: &Path, text: &str) -> Result<(), CompareError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(CompareError::file(folder))?;
    }
    std::fs::write(file, text).map_err(CompareError::file(file))
}
