//! What an operator meets: files that load, and one line for each that does not.

use std::path::Path;
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_settings::{
    GroundSettings, LinkManagerSettings, LocalSettings, RemoteSettings, SettingsError, changes, parse,
    reference, sample,
};
use farhop_units::{BitRate, Bytes};

const REMOTE: &str = r#"
listen = ["127.0.0.1:3128", "[::1]:3128"]
identity = "keys/remote.key"

[link]
profile = "geo-20m"
round_trip = "600 ms"

[[ground]]
name = "home"
address = "192.0.2.1:4433"
keys = ["farhop-ed25519 AAAA home"]

[[ground]]
name = "spare"
address = "[2001:db8::1]:4433"
keys = ["farhop-ed25519 BBBB", "farhop-ed25519 CCCC"]
"#;

const GROUND: &str = "[[remote]]\nname = \"ship\"\nkeys = [\"farhop-ed25519 AAAA\"]\n";

fn remote(text: &str, sets: &[&str]) -> Result<RemoteSettings, SettingsError> {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    parse(text, Path::new("/etc/farhop/remote.toml"), &sets)
}

fn ground(text: &str) -> Result<GroundSettings, SettingsError> {
    parse(text, Path::new("ground.toml"), &[])
}

fn line<T: std::fmt::Debug>(result: Result<T, SettingsError>) -> String {
    let line = result.expect_err("it must be refused").to_string();
    assert!(!line.contains('\n'), "one line: {line}");
    line
}

#[test]
fn a_file_is_read_with_its_units_and_defaults_fill_the_rest() {
    let settings = remote(REMOTE, &[]).unwrap();
    assert_eq!(settings.listen.len(), 2);
    assert_eq!(settings.link.told(), "geo-20m");
    assert_eq!(settings.link.round_trip, Some(Duration::from_millis(600)));
    assert_eq!(settings.link.forward_rate, None);
    assert_eq!(settings.repository.size, Bytes(32_000_000));
    assert_eq!(settings.timeouts.outage, None);
    assert_eq!(settings.ground[1].address.host, "2001:db8::1");
    assert_eq!(settings.ground[1].keys.len(), 2);
}

#[test]
fn relative_paths_start_where_they_are_written() {
    let settings = remote(REMOTE, &["control=run/remote.sock"]).unwrap();
    assert_eq!(settings.identity, Path::new("/etc/farhop/keys/remote.key"));
    assert_eq!(settings.control, Path::new("run/remote.sock"));
    let settings = remote(&REMOTE.replace("keys/remote.key", "/var/lib/remote.key"), &[]).unwrap();
    assert_eq!(settings.identity, Path::new("/var/lib/remote.key"));
}

#[test]
fn a_controller_is_named_or_left_open_and_unknown_ones_are_refused_with_the_list() {
    assert_eq!(remote(REMOTE, &[]).unwrap().link.congestion, None);
    let named = remote(REMOTE, &["link.congestion=hybla"]).unwrap();
    assert_eq!(named.link.congestion, Some(Choice::Hybla));
    let refused = line(remote(REMOTE, &["link.congestion=pigeon"]));
    assert!(refused.contains("\"pigeon\" is not a congestion controller"), "{refused}");
    assert!(Choice::ALL.iter().all(|choice| refused.contains(choice.name())), "{refused}");
}

#[test]
fn arguments_stand_over_the_file() {
    let settings = remote(
        REMOTE,
        &[
            "link.round_trip=1 s",
            "link.forward_rate=2 Mbit/s",
            "ground.0.address=ground.example:1",
            "listen=127.0.0.1:1,[::1]:2",
        ],
    )
    .unwrap();
    assert_eq!(settings.link.round_trip, Some(Duration::from_secs(1)));
    assert_eq!(settings.link.forward_rate, Some(BitRate::mbit(2)));
    assert_eq!(settings.ground[0].address.host, "ground.example");
    assert_eq!(settings.ground[0].name.as_str(), "home");
    assert_eq!(settings.listen[1].port(), 2);
}

#[test]
fn a_remote_can_be_set_up_by_arguments_alone() {
    let sets = ["ground.0.name=home", "ground.0.address=192.0.2.1:4433", "ground.0.keys=farhop-ed25519 AAAA"];
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let settings: RemoteSettings = parse("", Path::new(""), &sets).unwrap();
    assert_eq!(settings.ground[0].keys, ["farhop-ed25519 AAAA"]);
}

#[test]
fn inline_tables_are_tables_too() {
    let settings =
        ground("remote = [{ name = 'a', keys = ['x A'] }, { name = 'b', keys = ['x B'] }]").unwrap();
    assert_eq!(settings.remote[1].name.as_str(), "b");
}

#[test]
fn settings_of_the_other_end_are_told_as_such() {
    assert_eq!(
        line(remote(GROUND, &[])),
        "/etc/farhop/remote.toml:3: 'keys' in [[remote]] is a setting of `farhop ground`, not of `farhop remote`; \
         set it there, or start that with this file"
    );
    assert!(line(ground(REMOTE)).contains("is a setting of `farhop remote`, not of `farhop ground`; "));
    assert!(
        line(ground("[ground]\ndrain = \"1 s\"\n")).contains("'ground.drain' is a setting of `farhop local`")
    );
    let typed = remote(REMOTE, &["spool.total=1 GB"]).unwrap_err();
    assert!(typed.is_usage());
    assert!(
        typed
            .to_string()
            .starts_with("--set spool.total=1 GB: 'spool.total' is a setting of `farhop ground`")
    );
}

#[test]
fn a_contradiction_that_only_an_argument_makes_is_a_fault_of_the_command_line() {
    let file = format!("{REMOTE}\n[repository]\nentry = \"2 MB\"\n");
    let told = |error: SettingsError| (error.is_usage(), error.to_string());
    // Whatever the setting is that the line tells of.
    let (is_usage, line) = told(remote(&file, &["log.level=warn", "repository.size=1 MB"]).unwrap_err());
    assert!(is_usage, "{line}");
    assert!(line.starts_with("--set repository.size=1 MB: 'repository.entry' (2 MB) is larger"), "{line}");
    let (is_usage, line) = told(remote(REMOTE, &["repository.size=64 KB"]).unwrap_err());
    assert!(is_usage, "against a default: {line}");
    // What the file says wrong by itself stays the file's, whatever is typed besides.
    let wrong = format!("{REMOTE}\n[repository]\nentry = \"2 MB\"\nsize = \"1 MB\"\n");
    let (is_usage, line) = told(remote(&wrong, &["log.level=warn"]).unwrap_err());
    assert!(!is_usage && line.starts_with("/etc/farhop/remote.toml:"), "{line}");
}

#[test]
fn unknown_settings_are_refused_with_the_nearest_known_one() {
    let refused = |addition: &str| line(remote(&format!("{addition}\n{REMOTE}"), &[]));
    assert_eq!(
        refused("lisen = \"127.0.0.1:1\""),
        "/etc/farhop/remote.toml:1: unknown setting 'lisen'; did you mean 'listen'?"
    );
    assert!(
        refused("round_trip = \"1 s\"")
            .ends_with("unknown setting 'round_trip'; did you mean 'link.round_trip'?")
    );
    assert_eq!(
        line(remote(&REMOTE.replace("address = \"192", "adress = \"192"), &[])),
        "/etc/farhop/remote.toml:11: unknown setting 'adress' in [[ground]]; did you mean 'address' in [[ground]]?"
    );
    assert_eq!(
        line(remote(REMOTE, &["link.proflie=none"])),
        "--set link.proflie=none: unknown setting 'link.proflie'; did you mean 'link.profile'?"
    );
}

#[test]
fn a_single_table_where_an_array_belongs_is_told_apart() {
    let text = line(ground(&GROUND.replace("[[remote]]", "[remote]")));
    assert_eq!(text, "ground.toml:3: unknown setting 'remote.keys'; did you mean 'keys' in [[remote]]?");
}

#[test]
fn values_that_cannot_be_read_say_how_they_are_written() {
    let text = line(remote(&REMOTE.replace("\"600 ms\"", "600"), &[]));
    assert_eq!(
        text,
        "/etc/farhop/remote.toml:7: 'link.round_trip': 600 is not a duration, write it like \"650 ms\", or \"auto\""
    );
    let text = line(ground(&format!("listen = ['192.0.2.1:4433']\n{GROUND}")));
    assert_eq!(
        text,
        "ground.toml:1: 'listen': one text is wanted and not a list: an address with a port, write it like \"127.0.0.1:3128\""
    );
    let text = line(ground(&format!("tcp = [true]\n{GROUND}")));
    assert_eq!(text, "ground.toml:1: 'tcp': one value is wanted and not a list: true or false");
    let text = line(remote(REMOTE, &["listen=localhost"]));
    assert!(
        text.starts_with("--set listen=localhost: 'listen': \"localhost\" is not an address with a port"),
        "{text}"
    );
}

#[test]
fn values_outside_their_range_are_refused_with_the_range() {
    let text = line(remote(REMOTE, &["probe.active=1 ms"]));
    assert_eq!(
        text,
        "--set probe.active=1 ms: 'probe.active': \"1 ms\" is outside its range, 100 ms to 1 min"
    );
    assert!(remote(REMOTE, &["probe.active=100 ms"]).is_ok(), "bounds are included");
    assert!(line(remote(REMOTE, &["link.forward_rate=0 bit/s"])).contains("outside its range"));
}

#[test]
fn what_must_be_given_is_asked_for_at_its_table() {
    let text = line(remote(&REMOTE.replace("address = \"192.0.2.1:4433\"\n", ""), &[]));
    assert_eq!(
        text,
        "/etc/farhop/remote.toml:9: 'address' in [[ground]] is missing; add it (Where it listens (UDP, and TCP on the same port), by name or address)"
    );
    assert_eq!(line(ground("")), "ground.toml: there is no [[remote]]; add one with name and keys");
    let none: Result<GroundSettings, _> = parse("", Path::new(""), &[]);
    assert_eq!(line(none), "no settings file: there is no [[remote]]; add one with name and keys");
    assert!(line(ground("[[remote]]\n")).starts_with("ground.toml:1: 'name' in [[remote]] is missing"));
    assert!(line(ground(&GROUND.replace("\"farhop-ed25519 AAAA\"", ""))).contains("remote ship has no key"));
}

#[test]
fn what_contradicts_itself_is_refused_at_the_line_that_does() {
    let text = line(remote(&REMOTE.replace("\"spare\"", "\"home\""), &[]));
    assert_eq!(text, "/etc/farhop/remote.toml:15: [[ground]] number 1 and 2 are both named home; rename one");
    let text = line(remote(REMOTE, &["repository.entry=1 GB"]));
    assert!(
        text.starts_with("--set repository.entry=1 GB: 'repository.entry' (1000 MB) is larger"),
        "{text}"
    );
    let twice =
        format!("{GROUND}[[remote]]\nname = \"boat\"\nkeys = [\"farhop-ed25519 AAAA other comment\"]\n");
    assert!(line(ground(&twice)).contains("boat and ship have the same key"));
}

#[test]
fn what_cannot_be_caught_is_refused_in_one_line() {
    for (sets, says) in [
        (&["role=transport"][..], "but no connection is caught; switch on 'transparent.enabled'"),
        (&["transparent.enabled=true", "auth.required=true"], "nobody can be asked for a password"),
        (&["transparent.interfaces=lan 0"], "has 'lan 0', which is no name of a network device"),
    ] {
        let text = line(remote(REMOTE, sets));
        assert!(text.contains(says), "{text}");
    }
    let caught =
        remote(REMOTE, &["role=transport", "transparent.enabled=true", "transparent.interfaces=lan0"]);
    assert_eq!(caught.unwrap().transparent.interfaces, ["lan0"]);
}

#[test]
fn an_argument_that_would_be_dropped_is_refused() {
    let text = line(remote(REMOTE, &["ground.5.name=x"]));
    assert_eq!(text, "--set ground.5.name=x: there is no element 5 of ground; the next new one is ground.2");
    assert!(line(remote(REMOTE, &["listen"])).contains("has no '='"));
}

#[test]
fn a_file_that_is_not_toml_is_refused_at_its_line() {
    let text = line(ground("listen = \"0.0.0.0:1\"\nallow = [\n"));
    assert!(text.starts_with("ground.toml:") && text.contains("not TOML"), "{text}");
    assert!(line(ground("drain = 1979-05-27\n")).starts_with("ground.toml:1: 'drain'"));
}

#[test]
fn a_file_that_is_not_there_is_refused_with_what_to_do() {
    let path = std::env::temp_dir().join("farhop-no-such-settings.toml");
    let text = line(farhop_settings::load::<GroundSettings>(Some(&path), &[]));
    assert!(
        text.starts_with(&path.display().to_string()) && text.contains("farhop check --sample"),
        "{text}"
    );
}

#[test]
fn the_samples_load_as_they_are_and_mean_the_defaults() {
    let remote_sample = sample::<RemoteSettings>("remote.toml");
    let from_sample = remote(&remote_sample, &[]).unwrap();
    let bare = "[[ground]]\nname='home'\naddress='192.0.2.1:4433'\nkeys=['farhop-ed25519 …']";
    assert_eq!(from_sample, remote(bare, &[]).unwrap());
    ground(&sample::<GroundSettings>("ground.toml")).unwrap();
    // A rule that asks for nothing holds for everything.
    let manager = link(&sample::<LinkManagerSettings>("link.toml")).unwrap();
    assert!(manager.rule.is_empty() && manager.window.is_empty());
}

#[test]
fn rules_for_policies_are_an_example_in_the_sample_and_their_bounds_are_compared() {
    let text = sample::<GroundSettings>("ground.toml");
    assert_eq!(ground(&text).unwrap().squeeze.rule, []);
    let uncommented: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest == "[[squeeze.rule]]" || rest.starts_with("policy = ") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let [rule] = &ground(&uncommented).unwrap().squeeze.rule[..] else { panic!("{uncommented}") };
    assert_eq!(rule.policy, farhop_squeeze::Policy::Strong);
    assert_eq!((rule.hold, rule.above.fraction()), (Duration::from_secs(10), 0.85));
    let refused = line(ground(&format!("{GROUND}[[squeeze.rule]]\npolicy = 'strong'\nbelow = '90 %'\n")));
    assert!(refused.contains("'below' (90 %) is not less than 'above' (85 %)"), "{refused}");
    assert!(
        line(ground(&format!("{GROUND}[[squeeze.rule]]\npolicy = 'weak'\n"))).contains("an image policy")
    );
}

#[test]
fn a_ceiling_says_something_once() {
    let of = |text: &str| ground(&format!("{GROUND}{text}"));
    let one = "[[ceiling]]\nof = 'backups'\nrate = '1 Mbit/s'\nhours = '22:00-06:00'\n";
    let [ceiling] = &of(one).unwrap().ceiling[..] else { panic!() };
    assert_eq!((ceiling.of.to_string(), ceiling.outside.to_string()), ("backups".into(), "8 kbit/s".into()));
    let nothing = line(of("[[ceiling]]\nof = 'bulk'\n"));
    assert!(nothing.contains("the ceiling of 'bulk' limits nothing; give it a rate, or hours"), "{nothing}");
    let twice = line(of(&format!("{one}{one}")));
    assert!(twice.contains("'backups' has two ceilings; join them"), "{twice}");
    assert!(line(of("[[ceiling]]\nof = 'voice'\n")).contains("\"peer-to-peer\""));
    assert_eq!(ground(&sample::<GroundSettings>("ground.toml")).unwrap().ceiling, []);
}

/// The sample with nothing left commented out: each default is written as its setting reads it.
#[test]
fn every_default_of_the_sample_reads_back_as_the_default() {
    let live = |text: String| {
        text.lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase()) => {
                    format!("{rest}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect::<String>()
    };
    let text = sample::<RemoteSettings>("remote.toml");
    assert_eq!(remote(&live(text.clone()), &[]).unwrap(), remote(&text, &[]).unwrap());
    let text = sample::<GroundSettings>("ground.toml");
    assert_eq!(ground(&live(text.clone())).unwrap(), ground(&text).unwrap());
    let text = sample::<LinkManagerSettings>("link.toml");
    assert_eq!(link(&live(text.clone())).unwrap(), link(&text).unwrap());
}

fn link(text: &str) -> Result<LinkManagerSettings, SettingsError> {
    parse(text, Path::new("link.toml"), &[])
}

#[test]
fn a_link_whose_rates_contradict_each_other_is_refused() {
    let device = "interface = 'sat0'\nprofile = 'none'\n";
    let error = line(link(device));
    assert_eq!(
        error,
        "link.toml:2: the link 'none' has no rate of its own; set 'rate', or a 'profile' that has one"
    );
    let error = line(link("interface = 'sat0'\n"));
    assert_eq!(
        error,
        "link.toml: the rate of the link is not known; set 'rate', or a 'profile' that has one"
    );
    assert_eq!(link("interface = 'sat0'\nrate = '512 kbit/s'\n").unwrap().profile, None);
    let known = format!("{device}rate = '512 kbit/s'\n");
    let error = line(link(&format!("{known}[shares]\nef = '72 %'\n")));
    assert_eq!(
        error,
        "link.toml:5: the shares in [shares] make 110 % together, and a link has 100 %; lower some"
    );
    let error = line(link(&format!("{known}[ceilings]\nle = '1 %'\n")));
    assert_eq!(error, "link.toml:5: 'ceilings.le' of 1 % is below the share of 2 %; raise it");
    let rules = "[[rule]]\nname = 'pbx'\nservice = 'voice'\nports = ['16384-32767']\ndscp = ['EF', 'AF41']\n";
    let rule = &link(&format!("{known}{rules}")).unwrap().rule[0];
    assert_eq!((rule.service.to_string(), rule.dscp[1].number()), ("voice".into(), 34));
    let error = line(link(&format!("{known}{rules}{rules}")));
    assert_eq!(
        error,
        "link.toml:10: [[rule]] number 1 and 2 are both named 'pbx', and explanations could not tell them apart; rename one"
    );
    let blanks = link(&format!("{known}[[rule]]\nname = 'large downloads'\nservice = 'web'\n")).unwrap();
    assert_eq!(blanks.rule[0].name.to_string(), "large downloads");
    let night = "[[window]]\nhours = '22:00-06:00'\n";
    let error = line(link(&format!("{known}{night}{night}")));
    assert_eq!(error, "link.toml:6: 'background' has two windows; join them");
    let error = line(link(&format!("{known}[[window]]\nservice = 'voice'\n")));
    assert_eq!(
        error,
        "link.toml:5: 'voice' has no window: calls are refused or have their rate; take this window away"
    );
    for ports in ["70000", "200-100", "0"] {
        let error =
            line(link(&format!("{known}[[rule]]\nname = 'a'\nservice = 'web'\nports = ['{ports}']\n")));
        assert!(error.ends_with("ports go from 1 to 65535, the lower one first"), "{error}");
    }
    let error = line(link(&format!("{known}foo = 1\n")));
    assert_eq!(
        error,
        "link.toml:4: unknown setting 'foo'; `farhop check --reference` names those that there are"
    );
    let error = line(link(&format!("{known}[[rule]]\nname = 'pbx'\nservice = 'telephone'\n")));
    assert!(error.contains("one of \"voice\", \"interactive\""), "{error}");
}

#[test]
fn both_ends_of_one_process_are_set_in_one_file_without_peers() {
    let text = "[remote]\nlisten = ['127.0.0.1:1']\n[remote.repository]\nsize = '8 MB'\n[ground]\nallow = ['127.0.0.0/8']\n";
    let settings: LocalSettings = parse(text, Path::new("local.toml"), &[]).unwrap();
    assert_eq!(settings.remote.repository.size, Bytes(8_000_000));
    assert!(settings.ground.allow[0].contains("127.0.0.1".parse().unwrap()));
    let error =
        line(parse::<LocalSettings>("[remote.repository]\nsize = '1 MB'\n", Path::new("local.toml"), &[]));
    assert!(error.starts_with("local.toml: 'repository.entry'"), "{error}");
}

#[test]
fn what_each_end_of_one_process_has_for_itself_is_not_the_others() {
    let local = |text: &str| parse::<LocalSettings>(text, Path::new("local.toml"), &[]);
    let error = line(local("[remote.store]\ndirectory = 'held'\n[ground.store]\ndirectory = './held/'\n"));
    assert!(
        error.starts_with(
            "local.toml:4: 'remote.store.directory' and 'ground.store.directory' are one folder"
        ),
        "{error}"
    );
    assert!(local("[remote.store]\ndirectory = 'held'\n[ground.store]\ndirectory = 'held2'\n").is_ok());
    let error = line(local("[ground]\ncontrol = 'remote.sock'\n"));
    assert!(
        error.starts_with("local.toml:2: 'remote.control' and 'ground.control' are one socket"),
        "{error}"
    );
}

#[test]
fn what_is_given_is_told_from_a_default() {
    let given = |sets: &[&str], key| {
        farhop_settings::is_given(None, &sets.iter().map(ToString::to_string).collect::<Vec<_>>(), key)
            .unwrap()
    };
    assert!(given(&["ground.control=g.sock"], "ground.control"));
    assert!(!given(&["ground.control=g.sock"], "remote.control"));
}

#[test]
fn a_reload_knows_what_it_can_change_without_a_restart() {
    let old = remote(REMOTE, &[]).unwrap();
    let new = remote(REMOTE, &["log.level=debug", "listen=127.0.0.1:9"]).unwrap();
    let seen = |started, were, new| {
        changes(started, were, new).into_iter().map(|change| (change.key, change.live)).collect::<Vec<_>>()
    };
    let (waits, is_in_force) = (("listen".to_string(), false), ("log.level".to_string(), true));
    assert_eq!(seen(&old, &old, &new), [waits.clone(), is_in_force.clone()]);
    assert_eq!(seen(&old, &new, &new), [waits], "it still waits");
    assert_eq!(
        seen(&old, &new, &old),
        [is_in_force],
        "what is in force for want of a restart waits for none"
    );
    assert!(seen(&old, &old, &old).is_empty());
}

#[test]
fn the_reference_names_every_setting_with_its_default_and_link() {
    let text = reference();
    for expected in
        ["`listen`", "`stall` | duration | `\"2 min\"`", "chosen for geo-hylas2", "### `[[ground]]`", "live"]
    {
        assert!(text.contains(expected), "{expected}");
    }
}

#[test]
fn bypass_patterns_and_categories_are_read_in_their_one_form() {
    let sets = [
        "interception.bypass=*.B\u{fc}cher.example, !www.a.example.",
        "interception.categories=banking,health",
    ];
    let settings = remote(REMOTE, &sets).unwrap();
    let shown: Vec<_> = settings.interception.bypass.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["*.xn--bcher-kva.example", "!www.a.example"]);
    assert_eq!(settings.interception.categories.len(), 2);
    assert!(!settings.interception.enabled, "nothing is intercepted unless someone says so");
    let wrong = line(remote(REMOTE, &["interception.bypass=https://a.example/"]));
    assert!(wrong.contains("'interception.bypass'") && wrong.contains("is not a host pattern"), "{wrong}");
    let wrong = line(remote(REMOTE, &["interception.categories=games"]));
    assert!(wrong.contains("one of \"banking\""), "{wrong}");
}

#[test]
fn all_categories_are_on_by_default() {
    let settings = remote(REMOTE, &[]).unwrap();
    assert_eq!(settings.interception.categories, farhop_consent::Category::ALL);
}

#[test]
fn what_interception_and_authentication_refuse_is_said() {
    let ports = ["interception.ports=443,9000-9100"];
    assert!(remote(REMOTE, &ports).is_ok(), "nothing is looked into");
    let wrong = line(remote(REMOTE, &[ports[0], "interception.enabled=true"]));
    assert!(wrong.contains("9000-9100") && wrong.contains("'connect_ports' allows no CONNECT"), "{wrong}");
    assert!(remote(REMOTE, &[ports[0], "interception.enabled=true", "connect_ports=443,9050"]).is_ok());
    let wrong = line(remote(REMOTE, &["interception.learned=24 h", "interception.learned_most=1 h"]));
    assert!(wrong.contains("longer than 'interception.learned_most'"), "{wrong}");
    let wrong = line(remote(REMOTE, &["auth.realm=Schiff \u{dc}"]));
    assert!(wrong.contains("'auth.realm'"), "{wrong}");
}

#[test]
fn a_rule_of_the_remote_goes_by_what_is_known_of_what_begins() {
    let rule = |more: &str| {
        remote(&format!("{REMOTE}[[rule]]\nname = 'pbx'\nservice = 'voice'\nprotocol = 'udp'\n{more}\n"), &[])
    };
    let settings = rule("ports = ['16384-32767']\naddresses = ['10.0.5.0/24']").unwrap();
    assert_eq!(settings.rule[0].rule().conditions.len(), 3);
    for known in ["alpn = ['h2']", "bytes_at_least = '1 MB'", "rate_at_most = '1 Mbit/s'"] {
        assert_eq!(rule(known).unwrap().rule[0].rule().conditions.len(), 2, "{known}");
    }
    let error = line(rule("dscp = ['EF']"));
    assert!(error.contains("the rule 'pbx' goes by 'dscp', which is not known"), "{error}");
}
