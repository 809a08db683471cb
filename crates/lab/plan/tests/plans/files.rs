//! What is said is done, and what is wrong is told with its line.

use std::time::Duration;

use farhop_compare::{Stand, Variant};
use farhop_loader::{Handshake, Persistence, Protocol, Push};
use farhop_plan::{
    Axis, Cell, Client, Dressing, Measure, PageKind, Plan, Statistic, Through, estimate, study,
};
use farhop_report::Series;
use farhop_units::{BitRate, Bytes};
use farhop_workload::browser::Engine;

use crate::sample::{WHOLE, live, read, with};

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

#[test]
fn an_estimate_grows_with_repetitions_and_round_trips() {
    let plan = read(WHOLE).unwrap();
    let whole = estimate(&plan);
    assert_eq!(whole.loads, [24, 48]);
    assert!(whole.time[0] < whole.time[1] && whole.time[0] > Duration::from_secs(60));
    assert!(estimate(&plan.quickened()).time[1] < whole.time[0]);
}
