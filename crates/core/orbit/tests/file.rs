//! A satellite as a file: what it may say, and how a bad one is refused.

use farhop_orbit::{
    Bursts, CoDel, Discipline, Entitlement, Handovers, Leg, Loss, OnDemand, Others, Outage, Policer, Profile,
    Reordering, Schedule, Segment, Signalling, Steps, Supply, Trace, Volume, Way, Wifi,
};
use farhop_units::{BitRate, Bytes};
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn read(text: &str) -> Result<Profile, String> {
    let files = &mut |name: &str| match name {
        "train.trace" => Ok("10\n20\n".to_owned()),
        "rain.txt" => Ok("0 0\n10 5\n20 0\n30 0\n".to_owned()),
        "bad.trace" => Ok("10\nx\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    Profile::from_toml(text, "sky/rain.toml", files).map_err(|error| error.to_string())
}

#[test]
fn what_a_file_says_is_what_the_link_does() {
    let text = r#"
        name = "everything"
        [forward]
        delay = "280 ms"
        rate = "8 Mbit/s"
        queue = "600 KB"
        codel = { ecn = true }
        policer = { rate = "6 Mbit/s", burst = "100 KB" }
        bursts = { enter = "0.1 %", leave = "25 %" }
        jitter = "4 ms"
        reordering = { share = "1 %", by = "30 ms" }
        terrestrial = { delay = "20 ms", loss = "1 %" }
        [return]
        delay = "280 ms"
        trace = "train.trace"
        bit_errors = 1e-7
        [return.access]
        jitter = "2 ms"
        [[outage]]
        at = "10 s"
        lasts = "1 s"
        way = "forward"
        [[outage]]
        at = "1 min"
        lasts = "2 s"
        every = "1 h"
        [handover]
        every = "15 s"
        gap = "50 ms"
    "#;
    let hourly = Outage { at: 60_000 * MS, lasts: 2000 * MS, every: Some(3_600_000 * MS) };
    let handovers = Some(Handovers { every: 15_000 * MS, gap: 50 * MS, delays: Vec::new() });
    let once = Outage { at: 10_000 * MS, lasts: 1000 * MS, every: None };
    let forward = Leg {
        delay: 280 * MS,
        rate: Some(BitRate::mbit(8)),
        queue: Bytes(600_000),
        // 280 + 20 + 280 ms there and back.
        discipline: Discipline::CoDel(CoDel { target: 29 * MS, interval: 580 * MS, ecn: true }),
        policer: Some(Policer { rate: BitRate::mbit(6), burst: Bytes(100_000) }),
        loss: Loss::Bursts(Bursts { enter: 0.001, leave: 0.25, good: 0.0, bad: 1.0 }),
        jitter: 4 * MS,
        reordering: Some(Reordering { share: 0.01, by: 30 * MS }),
        before: Segment { delay: 20 * MS, loss: Loss::Independent(0.01), ..Segment::NONE },
        schedule: Schedule { outages: vec![once, hourly], handovers: handovers.clone() },
        ..Leg::transparent()
    };
    let return_ = Leg {
        delay: 280 * MS,
        rate: Some(BitRate::kbit(1200)),
        queue: Bytes(84_000),
        supply: Supply::Trace(Arc::new(Trace::parse("10\n20\n").unwrap())),
        loss: Loss::Bits(1e-7),
        before: Segment { jitter: 2 * MS, ..Segment::NONE },
        schedule: Schedule { outages: vec![hourly], handovers },
        ..Leg::transparent()
    };
    assert_eq!(read(text), Ok(Profile { name: "everything".into(), forward, return_ }));
}

#[test]
fn a_file_may_say_only_what_differs_from_a_link_that_is_known() {
    let hylas = Profile::named("geo-hylas2").unwrap();
    let rain = read("like = 'geo-hylas2'\nforward.loss = '2 %'\n").unwrap();
    assert_eq!(rain, Profile { name: "rain".into(), ..hylas.clone().with_loss(0.02, 0.0) });
    let faster = read("like = 'geo-hylas2'\nreturn.rate = '4 Mbit/s'\n").unwrap();
    assert_eq!((faster.forward, faster.return_.queue), (hylas.forward, Bytes(325_000)));
    assert_eq!(read("like = 'none'\n").unwrap().forward, Leg::transparent());
}

#[test]
fn capacity_on_demand_is_a_table_of_the_return_link() {
    let text = r#"
        like = "geo-2m"
        [return.on_demand]
        capacity = "2 Mbit/s"
        superframe = "26.5 ms"
        slot = "53 B"
        header = "5 B"
        cra = "64 kbit/s"
        rbdc = "512 kbit/s"
        volume = "avbdc"
        request_loss = "1 %"
        contention = 16
        request = "16 B"
        others = { terminals = 19, rate = "32 kbit/s" }
    "#;
    let profile = read(text).unwrap();
    let Supply::OnDemand(link) = &profile.return_.supply else { panic!("{profile:?}") };
    let expected = OnDemand {
        superframe: Duration::from_micros(26_500),
        capacity: BitRate::mbit(2),
        slot: Bytes(53),
        header: Bytes(5),
        // There, back, and a superframe: 24 superframes.
        control_round: Duration::from_micros(626_500),
        entitlement: Entitlement {
            cra: BitRate::kbit(64),
            rbdc: BitRate::kbit(512),
            volume: Volume::Absolute,
            fca: false,
        },
        rbdc_timeout: 8,
        signalling: Signalling { loss: 0.01, contention: Some(16), size: Bytes(16) },
        terminals: 1,
        others: Some(Others { terminals: 19, rate: BitRate::kbit(32) }),
    };
    assert_eq!((link.as_ref(), link.round(), profile.return_.contract()), (&expected, 24, None));
    let error = read(&text.replace("64 kbit/s", "128 kbit/s")).unwrap_err();
    assert_eq!(
        error,
        "sky/rain.toml:3: on_demand: the constant rates of all terminals are more than the capacity"
    );
}

#[test]
fn a_recorded_fade_becomes_rates_and_outages() {
    let text = r#"
        like = "geo-hylas2"
        [forward.fade]
        trace = "rain.txt"
        clear_sky = 13.0
        margin = 1.0
        reaction = "2 s"
        modcods = [{ needs = 6.0, rate = "4 Mbit/s" }, { needs = 11.0, rate = "8 Mbit/s" }]
    "#;
    let forward = read(text).unwrap().forward;
    let steps = [(0, 8), (12_000, 4), (22_000, 8)].map(|(at, mbit)| (at * MS, BitRate::mbit(mbit)));
    let steps = Steps::new(steps.into(), Some(30_000 * MS)).unwrap();
    assert_eq!(forward.supply, Supply::Steps(Arc::new(steps)));
    let outage = Outage { at: 10_000 * MS, lasts: 2000 * MS, every: Some(30_000 * MS) };
    assert_eq!(forward.schedule.outages, [outage]);
    let error = read(&text.replace("needs = 6.0", "needs = 12.0")).unwrap_err();
    assert_eq!(
        error,
        "sky/rain.toml:3: fade: 'modcods' lists at least one, the most robust first, each needing more and carrying \
         more than the one before"
    );
    let error = read(&text.replace("rain.txt", "train.trace")).unwrap_err();
    assert!(error.starts_with("sky/rain.toml:4: the fade train.trace: line 1: write a time"), "{error}");
}

#[test]
fn the_presets_from_low_orbit_to_the_moon_are_such_files() {
    let leo = Profile::named("leo-100m").unwrap();
    assert_eq!(leo.leg(Way::Return).schedule.delay(31_000 * MS), Some(12 * MS));
    assert!(leo.is_preset() && leo.forward.schedule.is_out(15_010 * MS));
}

#[test]
fn users_may_be_behind_a_wireless_lan() {
    let text = r#"
        like = "geo-2m"
        [forward]
        access = { wifi = { rate = "54 Mbit/s", loss = "10 %" } }
        [return]
        access = { delay = "1 ms", wifi = { rate = "6 Mbit/s", retries = 4, contention = "5 ms", queue = "60 KB" } }
    "#;
    let profile = read(text).unwrap();
    let plain = Wifi {
        rate: BitRate::mbit(54),
        loss: 0.1,
        retries: 7,
        contention: Duration::ZERO,
        queue: Bytes(300_000),
    };
    let busy =
        Wifi { rate: BitRate::mbit(6), loss: 0.0, retries: 4, contention: 5 * MS, queue: Bytes(60_000) };
    assert_eq!(profile.forward.after, Segment { wifi: Some(plain), ..Segment::NONE });
    assert_eq!(profile.return_.before, Segment { delay: MS, wifi: Some(busy), ..Segment::NONE });
    assert_eq!((profile.forward.before.wifi, profile.return_.after.wifi), (None, None));
}

#[test]
fn a_bad_file_is_refused_with_line_and_reason() {
    let refused =
        |text: &str, expected: &str| assert_eq!(read(text).unwrap_err(), format!("sky/rain.toml:{expected}"));
    let hylas = |text: &str| format!("like = 'geo-hylas2'\n{text}\n");
    refused(
        "like = 'geo-hylas3'\n",
        "1: no link profile is called 'geo-hylas3', known are leo-100m, meo-50m, geo-256k, \
        geo-500k, geo-2m, geo-isti-128k, geo-isti-1m, geo-hylas2, geo-hylas2-4m, geo-20m, lunar-10m, none",
    );
    refused("\n[forward]\n", "1: there is no [return], nor a 'like' that has it; add one");
    refused(
        "# mine\nlike = 'none'\nname = 'geo-2m'\n",
        "3: a link that Farhop knows is called 'geo-2m'; write another name",
    );
    refused(&hylas("[forward]\nrate = '8'"), "3: '8' is not a bit rate, write it like '8 Mbit/s'");
    refused(&hylas("[forward]\nrate = 8"), "3: invalid type: integer `8`, expected a text with its unit");
    refused(
        &hylas("[forward]\nrate = '0 bit/s'"),
        "3: at 0 bit/s nothing would ever pass; for a link that is not there \
        write an [[outage]]",
    );
    refused(&hylas("[forward]\n\ndelay = '2000 h'"), "4: '2000 h' is more than a day");
    refused(&hylas("forward.loss = '101 %'"), "2: '101 %' is not a share, write it like '1 %'");
    refused(
        &hylas("[forward]\nloss = '1 %'\nbit_errors = 1e-6"),
        "2: more than one of 'loss', 'bursts' and 'bit_errors' \
        says what gets lost; keep one",
    );
    refused(
        &hylas("[return]\ntrace = 'x'\nrate = '1 Mbit/s'"),
        "2: more than one of 'rate', 'trace', 'steps', 'fade' and 'on_demand' says how \
        fast it sends; keep one",
    );
    refused(&hylas("[return]\ntrace = 'lost.trace'"), "3: the trace lost.trace: no such file");
    refused(
        &hylas(
            "[forward]\non_demand = { capacity = '1 Mbit/s', superframe = '45 ms', slot = '53 B', fca = true }",
        ),
        "3: capacity on demand is the return link's, whose terminals ask for it: [return.on_demand]",
    );
    refused(
        &hylas("[return]\ntrace = 'bad.trace'"),
        "3: the trace bad.trace: line 2: 'x' is no time in whole milliseconds \
        from 10 up",
    );
    refused(
        &hylas("[[outage]]\nat = '1 s'\nlasts = '9 s'\nevery = '5 s'"),
        "2: an outage lasts longer than 0 s, and ends \
        before the next one begins ('every')",
    );
    refused(
        &hylas("[handover]\nevery = '0 s'"),
        "2: a handover's gap ends before the next handover ('every')",
    );
    refused(
        &hylas("[forward]\ncodel = { target = '1 s' }"),
        "3: codel: 'target' is above 0 s and below 'interval', which is \
        about a round trip",
    );
    refused(
        "like = 'none'\n[forward]\nmark = '20 KB'",
        "2: without a rate nothing waits: 'mark' and 'codel' need one",
    );
    refused(
        &hylas("[forward]\nterrestrial = { wifi = { rate = '54 Mbit/s' } }"),
        "3: 'wifi' is where the users are: write it under 'access'",
    );
    refused(
        &hylas("[forward]\naccess = { wifi = { rate = '54 Mbit/s', queue = '1 KB' } }"),
        "3: a wireless LAN of 0 bit/s, or whose queue holds no packet of 1500 B, lets nothing through",
    );
    refused(
        &hylas("[forward]\naccess = { wifi = { rate = '54 Mbit/s', retries = 256 } }"),
        "3: 256 is none of 0 to 255",
    );
    refused(&hylas("[forward]\nqueue = '1 KB'"), "3: a queue of less than 1500 B drops every full packet");
    assert!(read(&hylas("[forward]\nspeed = '1 Mbit/s'")).unwrap_err().starts_with(
        "sky/rain.toml:3: unknown field `speed`, \
        expected one of `delay`, `rate`,"
    ));
    assert!(read(&hylas("[forward]\nrate = '1 Mbit/s")).unwrap_err().starts_with("sky/rain.toml:3: "));
}
