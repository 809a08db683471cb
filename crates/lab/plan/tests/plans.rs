//! Plans as files: what is said is done, and what is wrong is told with its line. And the course of a plan: pairs, turns, and
//! when there are enough.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use farhop_compare::{Stand, Variant};
use farhop_loader::{Handshake, Persistence, Protocol, Push};
use farhop_plan::{
    Axis, Cell, Client, Course, Dressing, Measure, PageKind, Plan, Run, Statistic, Through, estimate, study,
};
use farhop_report::Series;
use farhop_units::{BitRate, Bytes};
use farhop_workload::browser::Engine;

const WHOLE: &str = r#"
title = "All that can be said"
study = "HTTPEP"
seed = 7
timeout = "90 s"
measures = ["load", "bytes"]
base = "direct"
runs = { least = 2, most = 4, within = "10 %" }
quick = { runs = 1, pages = ["ten"], links = ["slow"] }

[[page]]
name = "ten"
objects = 10
object = "8 KB"
at = 10
[[page]]
name = "photos"
at = 30

[[link]]
name = "slow"
like = "geo-256k"
rate = "128 kbit/s"
loss = "1 %"
terrestrial_loss = "2 %"
at = 128
[[link]]
name = "own"
file = "mine.toml"
at = 1

[[variant]]
name = "direct"
protocol = "http/1.1"
pipeline = 4
connections = 2
retry = "250 ms"
receive_buffer = "128 KB"
idle = "5 s"
[[variant]]
name = "two"
protocol = "http/2"
handshake = "resumed"
streams = 50
[[variant]]
name = "old"
protocol = "http/1.0"
through = "farhop-identity"
carrier = "tcp"
tcp_connections = 8
congestion = "bbr"

[[plot]]
figure = "9"
title = "Load time"
measure = "load"
x = "page"
label = "objects"
found = "something"
"#;

fn read(text: &str) -> Result<Plan, String> {
    let mut open = |path: &Path| match path.to_str() {
        Some("plans/mine.toml") => Ok("like = 'geo-2m'\nreturn.trace = 'up.trace'\n".to_owned()),
        Some("plans/up.trace") => Ok("10\n".to_owned()),
        other => Err(format!("{other:?} is not there")),
    };
    Plan::from_toml(text, "plans/sample.toml", &mut open).map_err(|error| error.to_string())
}

/// The plan with a line of it replaced.
fn with(line: &str, other: &str) -> Result<Plan, String> {
    assert!(WHOLE.contains(line), "{line}");
    read(&WHOLE.replacen(line, other, 1))
}

#[test]
fn what_a_file_says_is_what_is_done() {
    let plan = read(WHOLE).unwrap();
    assert_eq!((plan.name.as_str(), plan.seed, plan.timeout), ("sample", 7, Duration::from_secs(90)));
    assert_eq!((plan.runs.least, plan.runs.most, plan.runs.within), (2, 4, 0.1));
    assert_eq!(plan.measures, [Measure::Load, Measure::Bytes]);
    let made = PageKind::Made { objects: 10, object: Bytes(8_000), document: Bytes(4_000) };
    assert_eq!((&plan.pages[0].kind, &plan.pages[1].kind), (&made, &PageKind::Known("photos".into())));
    let slow = &plan.links[0].profile;
    assert_eq!(slow.forward.rate, Some(BitRate::kbit(128)));
    assert_eq!(slow.return_.rate, Some(BitRate::kbit(256)));
    assert_eq!(slow.forward.loss.share(Bytes(1500)), 0.01);
    assert_eq!(slow.forward.before.loss.share(Bytes(1500)), 0.02, "towards the user the ground comes first");
    assert_eq!(slow.return_.after.loss.share(Bytes(1500)), 0.02);
    assert_eq!(plan.links[1].profile.return_.rate, Some(BitRate::kbit(1200)), "a packet each 10 ms");
    let [direct, two, old] = &plan.variants[..] else { panic!("three variants") };
    assert_eq!(direct.settings.protocol, Protocol::Http1(Persistence::Pipelined(4)));
    assert_eq!((direct.settings.connections, direct.settings.receive_buffer), (2, Some(128_000)));
    assert_eq!(direct.settings.retry, Some(Duration::from_millis(250)));
    assert_eq!(direct.settings.idle, Some(Duration::from_secs(5)));
    assert_eq!(
        (direct.through.clone(), direct.settings.patience),
        (Through::Direct, Duration::from_secs(90))
    );
    assert_eq!(
        (two.settings.protocol, two.settings.handshake),
        (Protocol::Http2(Push::Off), Handshake::Resumed)
    );
    assert_eq!((two.settings.streams, two.settings.connections), (50, 1));
    let Through::Farhop { variant, link, remote, .. } = &old.through else { panic!("through Farhop") };
    assert_eq!(variant.name(), "farhop-identity");
    assert_eq!(
        (link.as_str(), remote.as_str()),
        ("congestion = \"bbr\"\n", "carrier = \"tcp\"\ntcp_connections = 8\n")
    );
    assert_eq!((plan.figures[0].x, plan.figures[0].measure), (Axis::Page, Measure::Load));
    assert_eq!(plan.cells().len(), 12);
    let quick = plan.quickened();
    assert_eq!((quick.cells().len(), quick.runs.least, quick.runs.most), (3, 1, 1));
    assert_eq!(quick.digest, plan.digest, "its loads are loads of the whole plan");
}

#[test]
fn pushes_and_0_rtt_have_a_server_of_the_labs_own() {
    let plan = with("streams = 50", "push = \"30 %\"\npushes = \"refused\"").unwrap();
    let two = &plan.variants[1];
    assert_eq!((two.settings.protocol, two.own, two.push), (Protocol::Http2(Push::Refused), true, Some(0.3)));
    let plan = with("handshake = \"resumed\"", "handshake = \"0-rtt\"").unwrap();
    assert_eq!((plan.variants[1].settings.handshake, plan.variants[1].own), (Handshake::ZeroRtt, true));
    assert!(!plan.variants[0].own && !plan.variants[2].own);
}

#[test]
fn browsers_tunnels_windows_and_uploads_are_a_variants_or_a_pages_own() {
    let plan = with("handshake = \"resumed\"\nstreams = 50", "client = \"chromium\"\nvpn = true").unwrap();
    let two = &plan.variants[1];
    assert_eq!((two.client, two.dressing.vpn), (Client::Browser(Engine::Chromium, Variant::DirectH2), true));
    assert_eq!((two.settings.handshake, plan.variants[0].client), (Handshake::Full, Client::Loader));
    let plan = with("protocol = \"http/2\"\nhandshake = \"resumed\"\nstreams = 50", "client = \"chromium\"")
        .unwrap();
    let direct = Client::Browser(Engine::Chromium, Variant::DirectH1);
    assert_eq!(plan.variants[1].client, direct, "plain unless said");
    let plan = with("handshake = \"resumed\"\nstreams = 50", "client = \"firefox\"").unwrap();
    assert_eq!(plan.variants[1].client, Client::Browser(Engine::Firefox, Variant::DirectH2));
    let plan = with("streams = 50", "fast_open = true\ninitial_window = 3").unwrap();
    let two = &plan.variants[1];
    assert_eq!((two.settings.fast_open, two.dressing.initial_window), (true, Some(3)));
    assert!(!plan.variants[0].settings.fast_open);
    let plan = with(
        "carrier = \"tcp\"",
        "carrier = \"tcp\"\ntcp_congestion = \"hybla\"\ncarrier_window = 3\ninitial_window = 10\nserver_congestion = \"bbr\"",
    )
    .unwrap();
    let expected = Dressing {
        initial_window: Some(10),
        server_congestion: Some("bbr".into()),
        carrier_window: Some(3),
        carrier_congestion: Some("hybla".into()),
        vpn: false,
    };
    assert_eq!(plan.variants[2].dressing, expected);
    let upload = "upload = \"100 KB\"";
    let plan = with("objects = 10\nobject = \"8 KB\"", upload).unwrap();
    assert_eq!(plan.pages[0].kind, PageKind::Upload(Bytes(100_000)));
    let plan =
        with("objects = 10\nobject = \"8 KB\"", "recording = \"shop.har\"\nentry = \"https://a.example/\"")
            .unwrap();
    let recording = PageKind::Recording("plans/shop.har".into(), Some("https://a.example/".into()));
    assert_eq!(plan.pages[0].kind, recording);
    let pushed = WHOLE.replacen("streams = 50", "push = \"30 %\"", 1).replacen(
        "objects = 10\nobject = \"8 KB\"",
        upload,
        1,
    );
    assert!(read(&pushed).unwrap_err().contains("'two' cannot upload"));
}

#[test]
fn what_the_study_says_is_judged_by_what_was_measured() {
    let claim = |more: &str| {
        let claim = format!(
            "\n[[claim]]\nfigure = \"9\"\nsays = \"less\"\nmeasure = \"load\"\nvariant = \"two\"\n{more}\n"
        );
        read(&format!("{WHOLE}{claim}"))
    };
    let plan = claim("times = 0.5").unwrap();
    assert_eq!((plan.claims[0].variant, plan.claims[0].against, plan.claims[0].times), (1, 0, Some(0.5)));
    let load = |cell: Cell, _| Some(if cell.variant == 1 { 4.0 } else { 10.0 } + cell.page as f64);
    let found = study(&plan, &live(&plan, load), false);
    let judged = &found.claims[0];
    assert_eq!((judged.cells, judged.verdict.as_str()), (4, "confirmed"), "{judged:?}");
    let expected = (0.4_f64 * 5.0 / 11.0).sqrt();
    assert!((judged.here.unwrap() - expected).abs() < 1e-9, "{judged:?}");
    // About one page alone, and the other way round.
    let plan = claim("direction = \"more\"\npages = [\"photos\"]\nwhy = \"a reason\"").unwrap();
    let judged = &study(&plan, &live(&plan, load), false).claims[0];
    assert_eq!(
        (judged.cells, judged.verdict.as_str(), judged.why.as_str()),
        (2, "not confirmed", "a reason")
    );
    assert!(plan.quickened().claims.is_empty(), "the quick plan has no photos");
    assert_eq!(study(&plan, &[], false).claims[0].verdict, "not measured");
    // The same variant over one link against another.
    let plan = claim("direction = \"less\"\nlinks = [\"own\"]\nagainst_link = \"slow\"").unwrap();
    let slower = |cell: Cell, _| Some(if cell.link == 0 { 8.0 } else { 2.0 });
    let judged = &study(&plan, &live(&plan, slower), false).claims[0];
    assert_eq!((judged.variant.as_str(), judged.against.as_str()), ("two over own", "two over slow"));
    assert_eq!((judged.here, judged.verdict.as_str()), (Some(0.25), "confirmed"));
    for bad in ["", "times = 0.5\ndirection = \"less\"", "times = -1.0"] {
        assert!(claim(bad).unwrap_err().contains("a claim has either 'times'"), "{bad}");
    }
    assert!(claim("times = 0.5\nagainst = \"none\"").unwrap_err().contains("no variant of this plan"));
}

#[test]
fn loads_over_time_and_extremes_are_drawn_where_a_figure_asks_for_them() {
    let text = WHOLE.replacen(
        "measure = \"load\"\nx = \"page\"",
        "measure = \"load\"\nstatistic = \"max\"\nx = \"page\"",
        1,
    );
    let plan =
        read(&format!("{text}\n[[plot]]\nfigure = \"2\"\nplace = \"§4\"\ntitle = \"rates\"\nx = \"time\"\n"))
            .unwrap();
    assert_eq!((plan.figures.len(), plan.dynamics.len(), plan.figures[0].statistic), (1, 1, Statistic::Max));
    let mut runs = live(&plan, |_, round| Some(f64::from(round)));
    let series = Series { step_s: 0.1, down: vec![1.0], up: vec![2.0], connections: vec![vec![[0, 1]]] };
    // The first of a cell that counts.
    let of_two: Vec<usize> = (0..runs.len()).filter(|at| runs[*at].variant == "two").collect();
    runs[of_two[0]].faults = vec!["wrong".into()];
    for at in [of_two[0], of_two[1]] {
        runs[at].series = Some(series.clone());
    }
    let found = study(&plan, &runs, false);
    assert_eq!(found.dynamics.len(), 1);
    assert_eq!((found.dynamics[0].load[2].as_str(), &found.dynamics[0].series), ("two", &series));
    let point = found.plots[0].lines[0].points[0];
    assert_eq!((point.y, point.interval), (3.0, None), "the most of four repetitions");
}

#[test]
fn what_is_wrong_with_a_plan_is_told_with_its_line() {
    let line_of = |text: &str| WHOLE.lines().position(|line| line == text).unwrap() + 1;
    let table = [
        ("seed = 7", "sead = 7", "unknown field `sead`"),
        ("timeout = \"90 s\"", "timeout = \"0 s\"", "'timeout' is more than 0 s"),
        ("timeout = \"90 s\"", "timeout = \"90\"", "'90' is not a duration, write it like '650 ms'"),
        (
            "measures = [\"load\", \"bytes\"]",
            "measures = [\"speed\"]",
            "nothing is measured that is called 'speed': there are load, ",
        ),
        ("base = \"direct\"", "base = \"none\"", "no variant of this plan is called 'none'"),
        (
            "runs = { least = 2, most = 4, within = \"10 %\" }",
            "runs = { least = 2, most = 1, within = \"10 %\" }",
            "'least' is 1 or more",
        ),
        (
            "quick = { runs = 1, pages = [\"ten\"], links = [\"slow\"] }",
            "quick = { runs = 1, pages = [\"nine\"] }",
            "no page of this plan is called 'nine'",
        ),
        (
            "name = \"photos\"",
            "name = \"fotos\"",
            "the lab makes no page called 'fotos': there are flags, photos, ",
        ),
        ("name = \"photos\"", "name = \"ten\"\nobjects = 1\nobject = '1 KB'", "two pages are called 'ten'"),
        ("like = \"geo-256k\"", "like = \"geo-257k\"", "no link profile is called 'geo-257k'"),
        ("file = \"mine.toml\"", "file = \"yours.toml\"", "Some(\"plans/yours.toml\") is not there"),
        ("tcp_connections = 8", "tcp_connections = 9", "'tcp_connections' are 1 to 8"),
        ("measure = \"load\"", "measure = \"packets\"", "'packets' is not among the measures of this plan"),
        ("x = \"page\"", "x = \"weight\"", "'weight' is none of page, link, variant, time"),
        ("x = \"page\"", "x = \"time\"", "over time rates and connections are drawn: no 'measure'"),
        ("measure = \"load\"", "", "what is drawn? Give it a 'measure'"),
        ("x = \"page\"", "x = \"variant\"", "'direct' stands nowhere on this axis: give it an 'at'"),
    ];
    for (line, other, reason) in table {
        let error = with(line, other).unwrap_err();
        let place = error.strip_prefix("plans/sample.toml:").unwrap_or_else(|| panic!("{error}"));
        let (number, said) = place.split_once(": ").unwrap();
        assert!(said.starts_with(reason), "{other}: {said}");
        // The place of a whole table is its header, or a key in it.
        let off = line_of(line).abs_diff(number.parse().unwrap());
        assert!(off <= 6, "{other}: line {number}");
        assert!(!error.contains('\n'));
    }
    let elsewhere = [
        ("rate = \"128 kbit/s\"", "rate = \"128 kbit/s\"\nterminals = 51", "'terminals' are 1 to 50"),
        ("streams = 50", "users = 3", "a terminal has one user or two"),
        (
            "protocol = \"http/1.0\"\nthrough = \"farhop-identity\"\ncarrier = \"tcp\"\ntcp_connections = 8\ncongestion = \"bbr\"",
            "through = \"nginx\"\nclient = \"chromium\"\nhandshake = \"full\"",
            "to browsers nginx is a proxy for plain HTTP alone",
        ),
        ("streams = 50", "push = \"130 %\"", "'130 %' is not a share"),
        ("pipeline = 4", "push = \"30 %\"", "'push' and 'pushes' are http/2's"),
        (
            "streams = 50",
            "push = \"30 %\"\nown_server = false",
            "stock servers neither push nor answer 0-RTT",
        ),
        ("streams = 50", "push = \"30 %\"\nthrough = \"farhop\"", "the lab's own server is asked directly"),
        ("pipeline = 4", "client = \"chromium\"", "a browser lets none of its connections"),
        (
            "protocol = \"http/2\"\nhandshake = \"resumed\"",
            "protocol = \"http/3\"\nretry = \"1 s\"",
            "the loader's http/3 has full handshakes",
        ),
        (
            "protocol = \"http/2\"\nhandshake = \"resumed\"",
            "protocol = \"http/3\"\nthrough = \"farhop\"",
            "http/3 is asked directly, of Caddy",
        ),
        ("streams = 50", "client = \"lynx\"", "'lynx' is none of loader, chromium, firefox"),
        (
            "protocol = \"http/2\"\nhandshake = \"resumed\"\nstreams = 50",
            "client = \"firefox\"\nprotocol = \"http/3\"",
            "Firefox takes http/3 from no server",
        ),
        (
            "carrier = \"tcp\"",
            "carrier = \"tcp\"\nfast_open = true",
            "'fast_open' is between client and origins",
        ),
        (
            "handshake = \"resumed\"\nstreams = 50",
            "client = \"chromium\"\nhandshake = \"plain\"",
            "browsers speak http/2 and http/3 over TLS alone",
        ),
        (
            "carrier = \"tcp\"\ntcp_connections = 8",
            "tcp_congestion = \"hybla\"",
            "those of Farhop's connections",
        ),
        ("carrier = \"tcp\"", "carrier = \"tcp\"\nvpn = true", "a VPN leaves nothing between"),
        (
            "carrier = \"tcp\"",
            "carrier = \"tcp\"\ncarrier_window = 0",
            "an initial window is 1 to 1000 segments",
        ),
        (
            "carrier = \"tcp\"",
            "carrier = \"tcp\"\ntcp_congestion = \"../x\"",
            "no congestion control is called so",
        ),
        (
            "objects = 10\nobject = \"8 KB\"",
            "objects = 10\nupload = \"8 KB\"",
            "two of 'objects', 'folder', 'upload' and 'recording'",
        ),
        ("objects = 10\nobject = \"8 KB\"", "upload = \"0 B\"", "an upload is 1 B to"),
        ("streams = 50", "connections = 3", "http/2 and http/3 have one connection to each origin"),
        (
            "handshake = \"resumed\"",
            "handshake = \"plain\"",
            "origins speak http/2 and http/3 over TLS alone",
        ),
        (
            "through = \"farhop-identity\"",
            "",
            "'carrier', 'tcp_connections', 'congestion' and 'pep' are Farhop's",
        ),
        ("through = \"farhop-identity\"", "through = \"wget\"", "'wget' is none of direct, farhop"),
        ("rate = \"128 kbit/s\"", "rate = \"0 kbit/s\"", "at 0 bit/s nothing would ever pass"),
    ];
    for (line, other, reason) in elsewhere {
        let error = with(line, other).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    assert!(read("title = 'x'").unwrap_err().ends_with("there is no [[page]]: a plan has one at least"));
}

#[test]
fn farhop_splits_tcp_at_either_end_or_both_and_is_at_every_terminal() {
    const OLD: &str =
        "through = \"farhop-identity\"\ncarrier = \"tcp\"\ntcp_connections = 8\ncongestion = \"bbr\"";
    let shared = WHOLE.replacen("rate = \"128 kbit/s\"", "rate = \"128 kbit/s\"\nterminals = 3", 1);
    let of = |text: &str, old: &str| read(&text.replacen(OLD, old, 1));
    let stand = |plan: &Plan| match &plan.variants[2].through {
        Through::Farhop { stand, caught, .. } => Some((*stand, *caught)),
        _ => None,
    };
    let split = "through = \"farhop-split\"";
    for (more, expected) in [
        ("", Stand::Both),
        ("\npep = \"terminal\"", Stand::Terminal),
        ("\npep = \"gateway\"", Stand::Gateway),
    ] {
        let plan = of(WHOLE, &format!("{split}{more}")).unwrap();
        assert_eq!(stand(&plan), Some((expected, true)));
        // A pair of ends at one terminal is none at the others.
        assert_eq!(of(&shared, &format!("{split}{more}")).is_ok(), expected != Stand::Terminal);
    }
    assert_eq!(stand(&read(&shared).unwrap()), Some((Stand::Both, false)));
    for (old, reason) in [
        ("through = \"squid\"", "'old' cannot be loaded from several terminals"),
        ("through = \"farhop\"\npep = \"gateway\"", "'pep' says where connections are split"),
        ("pep = \"gateway\"", "are Farhop's: say through which"),
        (
            "through = \"farhop-split\"\npep = \"gateway\"\ncarrier = \"tcp\"",
            "has no carrier across the link",
        ),
        ("through = \"farhop-split\"\npep = \"nowhere\"", "'nowhere' is none of both, terminal, gateway"),
    ] {
        let error = of(&shared, old).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

/// Lives a course in which the n-th load of a cell takes what `time` says.
fn live(plan: &Plan, time: impl Fn(Cell, u32) -> Option<f64>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut course = Course::new(plan, &[]);
    while let Some(next) = course.next() {
        let Cell { link, page, variant } = next.cell;
        let value = time(next.cell, next.round);
        let run = Run {
            page: plan.pages[page].name.clone(),
            link: plan.links[link].name.clone(),
            variant: plan.variants[variant].name.clone(),
            round: next.round,
            seed: next.seed,
            values: value.map(|value| ("load".to_owned(), value)).into_iter().collect(),
            faults: if value.is_none() { vec!["it fell over".into()] } else { Vec::new() },
            ..Run::default()
        };
        course.made(&run);
        runs.push(run);
        assert!(runs.len() < 1000, "it does not end");
    }
    runs
}

#[test]
fn repetitions_end_as_soon_as_every_variant_of_a_page_is_known_well_enough() {
    let plan = read(WHOLE).unwrap();
    // One page varies so much in one variant that all of its variants go on to the most.
    let runs = live(&plan, |cell, round| {
        let wild = (cell.link, cell.page, cell.variant) == (0, 1, 2);
        Some(10.0 + if wild { f64::from(round) * 5.0 } else { f64::from(round) * 0.01 })
    });
    let mut counts: HashMap<(String, String), u32> = HashMap::new();
    runs.iter().for_each(|run| *counts.entry((run.link.clone(), run.page.clone())).or_default() += 1);
    let count = |link: &str, page: &str| counts[&(link.to_owned(), page.to_owned())];
    assert_eq!(
        [count("slow", "ten"), count("slow", "photos"), count("own", "ten"), count("own", "photos")],
        [6, 12, 6, 6]
    );
    let found = study(&plan, &runs, false);
    assert!(found.complete);
    let settled = |variant: &str| found.cell("photos", "slow", variant).unwrap().settled;
    assert_eq!([settled("direct"), settled("old")], [true, false]);
}

#[test]
fn variants_take_turns_and_a_repetition_has_one_seed_for_all() {
    let plan = read(WHOLE).unwrap();
    let runs = live(&plan, |_, round| Some(f64::from(round)));
    let first: Vec<(u32, u64, &str)> = runs
        .iter()
        .filter(|run| run.link == "slow" && run.page == "ten")
        .map(|run| (run.round, run.seed, run.variant.as_str()))
        .collect();
    assert_eq!(
        first[..6],
        [(0, 7, "direct"), (0, 7, "two"), (0, 7, "old"), (1, 8, "two"), (1, 8, "old"), (1, 8, "direct")]
    );
    // Repetition by repetition: no page has its second before all have their first.
    assert!(runs[..12].iter().all(|run| run.round == 0) && runs[12..24].iter().all(|run| run.round == 1));
}

#[test]
fn a_load_that_does_not_stand_is_made_again_with_its_own_seed() {
    let plan = read(WHOLE).unwrap();
    let mut runs = live(&plan, |_, _| Some(3.0));
    let gone = runs.remove(1);
    let mut course = Course::new(&plan, &runs);
    let next = course.next().unwrap();
    assert_eq!((next.round, next.seed, plan.variants[next.cell.variant].name.as_str()), (0, 7, "two"));
    assert_eq!((gone.round, gone.seed), (next.round, next.seed));
    course.made(&gone);
    assert_eq!(course.next(), None);
}

#[test]
fn a_variant_that_never_loads_keeps_nobody_waiting_and_is_told() {
    let plan = read(WHOLE).unwrap();
    let mut runs = live(&plan, |cell, _| (cell.variant != 2).then_some(3.0));
    runs[3].notes = vec!["a note".into()];
    runs[4].notes = vec!["a note".into()];
    assert_eq!(runs.len(), 24, "two repetitions of each");
    let found = study(&plan, &runs, false);
    let cell = found.cell("ten", "own", "old").unwrap();
    assert_eq!(
        (cell.runs, cell.values.len(), cell.failures.as_slice()),
        (0, 0, &["it fell over".to_owned()][..])
    );
    assert_eq!(found.notes, ["a note"]);
    assert!(found.shifts.iter().all(|shift| shift.variant == "two" && shift.verdict == "no difference"));
}

#[test]
fn shifts_pair_repetitions_and_figures_have_a_line_for_each_variant() {
    let plan = read(WHOLE).unwrap();
    // The machine is slow in odd repetitions: only pairs show that the second variant takes a second less.
    let runs = live(&plan, |cell, round| {
        Some(
            10.0 + f64::from(round % 2) * 8.0 - cell.variant as f64
                + cell.page as f64
                + f64::from(round) * 0.001 * cell.variant as f64,
        )
    });
    let found = study(&plan, &runs, true);
    let shift =
        found.shifts.iter().find(|it| it.page == "ten" && it.link == "own" && it.variant == "two").unwrap();
    assert_eq!(
        (shift.pairs, shift.verdict.as_str(), shift.effect, shift.method.as_str()),
        (4, "less", -1.0, "student")
    );
    assert!((shift.shift + 1.0).abs() < 0.01, "{}", shift.shift);
    let plot = &found.plots[0];
    assert_eq!((plot.figure.as_str(), plot.x.as_str(), plot.y.as_str()), ("9", "objects", "load (s)"));
    let names: Vec<&str> = plot.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["direct", "two", "old"]);
    let places: Vec<f64> = plot.lines[0].points.iter().map(|point| point.x).collect();
    assert_eq!(places, [10.0, 30.0]);
    assert!((plot.lines[0].points[1].y - plot.lines[0].points[0].y - 1.0).abs() < 1e-9, "links are averaged");
    assert!(found.stamp().starts_with("quick: 4 runs"));
}

#[test]
fn averages_are_over_what_every_point_has_and_what_is_left_out_is_told() {
    let plan = read(WHOLE).unwrap();
    // The second link is slower by a hundred: where its load counts for one page alone, that page stands out.
    let runs = live(&plan, |cell, _| Some(10.0 + 100.0 * cell.link as f64));
    let first_of = |page: &str, link: &str| {
        runs.iter().filter(|run| run.page == page && run.link == link).cloned().collect::<Vec<_>>()
    };
    let unfinished = [first_of("ten", "slow"), first_of("photos", "slow"), first_of("ten", "own")].concat();
    let found = study(&plan, &unfinished, false);
    for line in &found.plots[0].lines {
        let points: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(points, [(10.0, 10.0), (30.0, 10.0)], "{}", line.name);
    }
    assert_eq!(found.notes, ["\"Load time\" leaves out what is not measured at each of its points: own"]);
    // What nothing is known of is a gap, and says nothing of the others.
    let only = study(&plan, &first_of("ten", "own"), false);
    let points: Vec<f64> = only.plots[0].lines[0].points.iter().map(|point| point.x).collect();
    assert_eq!((points, only.notes.len()), (vec![10.0], 1));
    let whole = study(&plan, &runs, false);
    assert_eq!((whole.plots[0].lines[0].points[0].y, whole.notes.len()), (60.0, 0));
}

#[test]
fn of_single_runs_the_least_the_most_and_the_mean_are_drawn_once() {
    let second = "[[plot]]\nfigure = \"9\"\ntitle = \"Most\"\nmeasure = \"load\"\nstatistic = \"max\"\n\
                  x = \"page\"\nlabel = \"objects\"\nfound = \"something\"\n";
    let plan = read(&format!("{WHOLE}{second}")).unwrap();
    let runs = live(&plan, |cell, _| Some(10.0 + cell.page as f64));
    assert_eq!(study(&plan, &runs, false).plots.len(), 2);
    let single: Vec<Run> = runs.into_iter().filter(|run| run.round == 0).collect();
    let found = study(&plan, &single, false);
    let titles: Vec<&str> = found.plots.iter().map(|plot| plot.title.as_str()).collect();
    assert_eq!(titles, ["Load time"]);
    assert!(found.notes.iter().any(|note| note.contains("one run")), "{:?}", found.notes);
    // One that draws something else stays.
    let other = read(&format!("{WHOLE}{}", second.replace("\"page\"", "\"link\""))).unwrap();
    assert_eq!(study(&other, &single, false).plots.len(), 2);
}

#[test]
fn a_figure_may_draw_some_links_alone_and_goes_where_a_quick_run_has_none_of_them() {
    let of = |link: &str| format!("x = \"page\"\nlinks = [\"{link}\"]");
    let plan = with("x = \"page\"", &of("own")).unwrap();
    let runs = live(&plan, |cell, _| Some(10.0 + 100.0 * cell.link as f64));
    let found = study(&plan, &runs, false);
    assert!(found.plots[0].lines.iter().flat_map(|line| &line.points).all(|point| point.y == 110.0));
    assert_eq!(plan.quickened().figures.len(), 0);
    assert_eq!(with("x = \"page\"", &of("slow")).unwrap().quickened().figures[0].links, [0]);
    assert!(with("x = \"page\"", &of("fast")).unwrap_err().contains("no link of this plan is called 'fast'"));
}

#[test]
fn an_estimate_grows_with_repetitions_and_round_trips() {
    let plan = read(WHOLE).unwrap();
    let whole = estimate(&plan);
    assert_eq!(whole.loads, [24, 48]);
    assert!(whole.time[0] < whole.time[1] && whole.time[0] > Duration::from_secs(60));
    assert!(estimate(&plan.quickened()).time[1] < whole.time[0]);
}
