//! The portal as a function: what is asked and what is known go in, the answer comes out.

use std::process::{Command, Stdio};

use farhop_authority::{Authority, Terms};
use http::header::ORIGIN;

use super::*;

const TOKEN: &str = "0123456789abcdef";

fn view() -> View {
    let authority = Authority::ephemeral(&Terms { name: "MV <Aurora>".into(), ..Terms::default() }).unwrap();
    let certificate = authority.certificate().clone();
    View {
        proxy: "10.0.0.1:3128".into(),
        ways: Ways { direct: true, ..Ways::default() },
        round_trip: Some(Duration::from_millis(640)),
        rate: Some(BitRate::mbit(8)),
        user: "10.0.0.7".into(),
        token: TOKEN.into(),
        interception: Some(Interception {
            certificate,
            in_force: true,
            covers_portal: true,
            ports: vec!["443".into()],
            older: None,
            left_alone: vec!["banking".into(), "app-stores".into()],
            on: true,
            refused: false,
            passed_on: Vec::new(),
            sites_off: vec!["www.bank.example".into()],
        }),
        savings: Savings::default(),
    }
}

fn without_interception() -> View {
    View { interception: None, ..view() }
}

fn fields(given: &[(&'static str, &'static str)]) -> HeaderMap {
    let given =
        given.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    [(HOST_FIELD, HeaderValue::from_static(HOST))].into_iter().chain(given).collect()
}

fn asked<'a>(method: &'a Method, path: &'a str, fields: &'a HeaderMap, form: &'a str) -> Asked<'a> {
    Asked { method, scheme: Scheme::Http, path, fields, form: form.as_bytes() }
}

fn get(path: &str, view: &View) -> Reply {
    answer(&asked(&Method::GET, path, &fields(&[]), ""), view)
}

fn post(form: &str, given: &[(&'static str, &'static str)]) -> Reply {
    answer(&asked(&Method::POST, "/switch", &fields(given), form), &view())
}

fn text(reply: &Reply) -> &str {
    std::str::from_utf8(&reply.body).unwrap()
}

#[test]
fn a_request_is_the_portals_by_host_or_as_a_file_for_browsers() {
    let is_asked = |request: &str| {
        let request = format!("{request}\r\n\r\n");
        is_asked(&RequestHead::parse(request.as_bytes(), &farhop_front::HeadLimits::default()).unwrap())
    };
    for request in [
        "GET http://farhop.internal/ HTTP/1.1\r\nHost: farhop.internal",
        "GET http://FARHOP.internal.:80/install?x HTTP/1.1\r\nHost: farhop.internal",
        "POST http://farhop.internal/switch HTTP/1.1\r\nHost: farhop.internal",
        "GET /proxy.pac HTTP/1.1\r\nHost: 10.0.0.1:3128",
        "GET /wpad.dat?v=1 HTTP/1.1\r\nHost: wpad.example.org",
        "GET /wpad.dat HTTP/1.0",
        "GET / HTTP/1.1\r\nHost: farhop.internal",
    ] {
        assert!(is_asked(request), "{request}");
    }
    for request in [
        "GET http://farhop.internal.example/ HTTP/1.1\r\nHost: x",
        "GET http://www.farhop.internal/ HTTP/1.1\r\nHost: x",
        "GET http://farhop.internal:8080/ HTTP/1.1\r\nHost: x",
        "GET http://example.org/proxy.pac HTTP/1.1\r\nHost: x",
        "GET / HTTP/1.1\r\nHost: 10.0.0.1:3128",
        "CONNECT farhop.internal:443 HTTP/1.1\r\nHost: farhop.internal:443",
        "OPTIONS * HTTP/1.1\r\nHost: farhop.internal",
    ] {
        assert!(!is_asked(request), "{request}");
    }
}

#[test]
fn all_pages_together_are_small_and_need_nothing_from_elsewhere() {
    let mut total = 0;
    for path in ["/", "/install", "/style.css"] {
        let reply = get(path, &view());
        assert_eq!(reply.status, StatusCode::OK, "{path}");
        assert!(!text(&reply).contains("<script") && !text(&reply).contains("//cdn"), "{path}");
        assert!(reply.fields[CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'"));
        assert_eq!(reply.fields[X_FRAME_OPTIONS], "DENY");
        total += reply.body.len();
    }
    assert!(total < 50_000, "{total} bytes");
}

#[test]
fn the_overview_says_what_is_on() {
    let on = get("/", &view());
    for words in [
        "A question and its answer take 640 milliseconds",
        "Accelerated",
        "Only connections to port 443 are read",
        "Left alone for everybody, as far as they are known: banking, app stores.",
        "www.bank.example",
        "10.0.0.7",
        "http://10.0.0.1:3128/proxy.pac",
    ] {
        assert!(text(&on).contains(words), "{words}");
    }
    let mut view = view();
    view.round_trip = Some(Duration::ZERO); // not measured yet
    assert!(text(&get("/", &view)).contains("The satellite link is up.</span></p>"));
    view.round_trip = None;
    view.interception.as_mut().unwrap().on = false;
    let off = get("/", &view);
    for words in ["The satellite link does not answer", "Off for you", "value=\"all-on\""] {
        assert!(text(&off).contains(words), "{words}");
    }
    let never = get("/", &without_interception());
    assert!(text(&never).contains("Passed on unread") && !text(&never).contains("<form"));
}

#[test]
fn the_ports_that_are_looked_into_are_named() {
    for (ports, words) in [
        (&["443"][..], "to port 443 are read"),
        (&["443", "8443"], "to the ports 443 and 8443 are read"),
        (&["443", "8000-8443", "9443"], "to the ports 443, 8000-8443 and 9443 are read"),
        (&["8000-8443"], "to the ports 8000-8443 are read"),
        (&[], "to no port are read"),
    ] {
        let mut view = view();
        view.interception.as_mut().unwrap().ports = ports.iter().map(ToString::to_string).collect();
        assert!(text(&get("/", &view)).contains(words), "{words}");
    }
}

#[test]
fn what_a_certificate_keeps_from_being_on_is_said() {
    let mut view = view();
    assert!(!text(&get("/", &view)).contains("Of these, only those"));
    assert!(!text(&get("/install", &view)).contains("not valid today"));
    let permitted = ["example.org", "10.0.0.0/8"].map(|text| text.parse().unwrap()).to_vec().into();
    let authority = Authority::ephemeral(&Terms { permitted, ..Terms::default() }).unwrap();
    let interception = view.interception.as_mut().unwrap();
    interception.certificate = authority.certificate().clone();
    interception.in_force = false;
    let told = get("/", &view);
    for words in ["Not at the moment.", "with all names below them: example.org, 10.0.0.0/8."] {
        assert!(text(&told).contains(words), "{words}: {}", text(&told));
    }
    assert!(!text(&told).contains("Accelerated"));
    assert!(text(&get("/install", &view)).contains("It is not valid today"));
}

#[test]
fn what_was_spared_is_told_by_kind_and_as_time_of_the_link() {
    let ledger = Ledger::default();
    let user = crate::users::User { id: 1, name: "anna".into() };
    let given = |media, crossed| {
        let mut given = Given::with(&[(CONTENT_TYPE, HeaderValue::from_static(media))].into_iter().collect());
        given.crossed = crossed;
        given
    };
    let from = farhop_events::AnsweredFrom::Asked;
    ledger.answered(&user, from, 3_000_000, &given("text/html", 1_000_000));
    ledger.answered(&user, from, 500_000, &given("font/woff2", 500_000));
    let mut view = View { savings: ledger.of(&user), ..view() };
    let told = get("/", &view);
    for words in [
        "other text</th><td>3.0 MB</td><td>1.0 MB</td>",
        "Everything else</th><td>500.0 KB</td><td>500.0 KB</td>",
        "Altogether</th><td>3.5 MB</td><td>1.5 MB</td>",
        "At the rate of this link, sending the 2.0 MB that were spared takes 2 seconds.",
    ] {
        assert!(text(&told).contains(words), "{words}: {}", text(&told));
    }
    view.rate = None;
    assert!(!text(&get("/", &view)).contains("At the rate of this link"));
    view.savings = Savings::default();
    assert!(!text(&get("/", &view)).contains("Altogether"), "nothing to tell yet");
}

#[test]
fn a_device_that_is_passed_on_is_told_so() {
    let mut view = view();
    assert!(!text(&get("/", &view)).contains("did not go along"));
    let interception = view.interception.as_mut().unwrap();
    interception.passed_on = (0..12).map(|n| format!("h{n}.<b>.example")).collect();
    let told = "h8.&lt;b&gt;.example, h9.&lt;b&gt;.example and 2 more.";
    let page = get("/", &view);
    assert!(text(&page).contains(told) && text(&page).contains("Accelerated"), "{}", text(&page));
    view.interception.as_mut().unwrap().refused = true;
    let page = get("/", &view);
    assert!(text(&page).contains("Not on this device at the moment"), "{}", text(&page));
    assert!(!text(&page).contains("Accelerated") && text(&page).contains("value=\"try-again\""));
}

#[test]
fn the_page_stays_small_however_many_sites_are_switched_off() {
    let mut view = view();
    for name in ["example", &"a".repeat(200)] {
        view.interception.as_mut().unwrap().sites_off =
            (0..500).map(|n| format!("site{n:03}.{name}.org")).collect();
        let page = get("/", &view);
        assert!(page.body.len() < 40_000, "{} bytes", page.body.len());
        let shown = text(&page).matches("<li>").count();
        assert!(shown > 10 && text(&page).contains(&format!("And {} more", 500 - shown)), "{shown}");
    }
}

#[test]
fn what_others_named_cannot_become_markup() {
    let mut view = view();
    view.user = "<script>alert(1)</script>".into();
    view.interception.as_mut().unwrap().sites_off = vec!["\"><img src=x>".into()];
    for path in ["/", "/install"] {
        let reply = get(path, &view);
        for markup in ["<script", "<img", "<Aurora>"] {
            assert!(!text(&reply).contains(markup), "{path}: {markup}");
        }
    }
    assert!(text(&get("/install", &view)).contains("MV &lt;Aurora&gt;"));
}

#[test]
fn the_certificate_is_there_in_each_form() {
    let view = view();
    let ca = &view.interception.as_ref().unwrap().certificate;
    for (path, body, content_type) in [
        ("/ca.pem", ca.pem().into_bytes(), "application/x-x509-ca-cert"),
        ("/ca.der", ca.der().to_vec(), "application/x-x509-ca-cert"),
        ("/ca.mobileconfig", ca.profile().into_bytes(), "application/x-apple-aspen-config"),
    ] {
        let reply = get(path, &view);
        assert_eq!((reply.status, &reply.body[..]), (StatusCode::OK, &body[..]), "{path}");
        assert_eq!(reply.fields[CONTENT_TYPE], content_type);
        assert!(reply.fields[CONTENT_DISPOSITION].to_str().unwrap().starts_with("attachment; filename="));
        assert_eq!(get(path, &without_interception()).status, StatusCode::NOT_FOUND);
    }
    let page = get("/install", &view);
    assert!(text(&page).contains("<a href=\"https://farhop.internal/\">"));
    assert!(text(&page).replace("<wbr>", "").contains(&ca.fingerprint()));
    assert!(text(&page).contains("curl -x http://10.0.0.1:3128 "));
    assert!(text(&get("/install", &without_interception())).contains("nothing to install"));
}

#[test]
fn after_a_rotation_users_are_told_until_when_the_older_certificate_will_do() {
    let mut view = view();
    assert!(!text(&get("/", &view)).contains("new certificate"));
    assert!(!text(&get("/install", &view)).contains("It follows"));
    view.interception.as_mut().unwrap().older = Some(("Aurora <old>".into(), "2027-02-20".into()));
    assert!(text(&get("/", &view)).contains("before 2027-02-20"));
    let told = "It follows Aurora &lt;old&gt;</strong>, which will do until 2027-02-20";
    assert!(text(&get("/install", &view)).contains(told));
}

#[test]
fn what_is_not_there_or_not_taken_is_said() {
    assert_eq!(get("/nothing", &view()).status, StatusCode::NOT_FOUND);
    assert_eq!(get("/switch", &without_interception()).status, StatusCode::NOT_FOUND);
    for (method, path, allowed) in [
        (Method::GET, "/switch", "POST"),
        (Method::POST, "/", "GET, HEAD"),
        (Method::PUT, "/proxy.pac", "GET, HEAD"),
        (Method::DELETE, "/ca.pem", "GET, HEAD"),
    ] {
        let reply = answer(&asked(&method, path, &fields(&[]), ""), &view());
        assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        assert_eq!(reply.fields[ALLOW], allowed);
    }
}

#[test]
fn a_user_switches_what_the_forms_offer() {
    let origin: &[(&str, &str)] = &[("origin", "http://farhop.internal")];
    for (form, switch) in [
        ("do=all-off", Switch::All { on: false }),
        ("do=all-on", Switch::All { on: true }),
        ("do=try-again", Switch::TryAgain),
        (
            "do=site-off&site=https%3A%2F%2FWww.Bank.example%2Flogin",
            Switch::Site { host: "www.bank.example".parse().unwrap(), on: false },
        ),
        // Of a network of one's own, where names have no dots.
        ("do=site-off&site=printer", Switch::Site { host: "printer".parse().unwrap(), on: false }),
        (
            "site=www.bank.example&do=site-on",
            Switch::Site { host: "www.bank.example".parse().unwrap(), on: true },
        ),
    ] {
        let reply = post(&format!("token={TOKEN}&{form}"), origin);
        assert_eq!((reply.status, reply.switch), (StatusCode::SEE_OTHER, Some(switch)), "{form}");
        assert_eq!(reply.fields[LOCATION], "/");
    }
    for (form, words) in [
        ("do=site-off&site=-bank", "That is no site."),
        ("do=site-off&site=bank", "bank is no site: it is what the names of many sites end in"),
        ("do=site-off", "That is no site."),
        ("do=site-off&site=co.uk", "co.uk is no site: it is what the names of many sites end in"),
        ("do=everything&site=www.bank.example", "cannot be switched here, and nothing was changed"),
        ("", "cannot be switched here, and nothing was changed"),
    ] {
        let reply = post(&format!("token={TOKEN}&{form}"), origin);
        assert!(text(&reply).contains(words), "{form}: {}", text(&reply));
        assert_eq!((reply.status, reply.switch), (StatusCode::BAD_REQUEST, None), "{form}");
    }
    // What was switched off before the list of suffixes had it can be switched on again.
    assert!(post(&format!("token={TOKEN}&do=site-on&site=co.uk"), origin).switch.is_some());
}

#[test]
fn who_comes_because_of_a_site_finds_it_in_the_form() {
    for (query, filled) in [
        ("site=www.bank.example", Some("www.bank.example")),
        ("x=1&site=https%3A%2F%2FB%C3%BCcher.example%2Fx", Some("bücher.example")),
        ("site=[2001:db8::1]", Some("[2001:db8::1]")),
        ("site=%22%3E%3Cimg%20src%3Dx%3E", None),
        ("site=", None),
        ("site", None),
        ("", None),
    ] {
        let reply = get(&format!("/?{query}"), &view());
        let has_value = text(&reply).contains("placeholder=\"www.example.org\" value=");
        assert_eq!((reply.status, has_value), (StatusCode::OK, filled.is_some()), "{query}");
        if let Some(filled) = filled {
            assert!(text(&reply).contains(&format!(" value=\"{filled}\" autofocus>")), "{}", text(&reply));
        }
        assert!(!text(&reply).contains("<img"), "{query}");
    }
}

#[test]
fn no_other_site_can_send_the_form() {
    let good = format!("token={TOKEN}&do=all-off");
    let cases: &[(&str, &[(&'static str, &'static str)])] = &[
        ("do=all-off", &[]),
        ("token=&do=all-off", &[]),
        ("token=0123456789abcdee&do=all-off", &[]),
        (&good, &[("origin", "http://evil.example")]),
        (&good, &[("origin", "null")]),
        (&good, &[("origin", "https://farhop.internal")]),
        (&good, &[("origin", "http://farhop.internal"), ("sec-fetch-site", "cross-site")]),
        (&good, &[("sec-fetch-site", "same-site")]),
    ];
    for (form, given) in cases {
        let reply = post(form, given);
        assert_eq!((reply.status, reply.switch), (StatusCode::FORBIDDEN, None), "{form} {given:?}");
    }
    // A name of the attacker's that leads here: the Origin agrees with the Host, and neither is the portal.
    let mut rebound = fields(&[("origin", "http://evil.example")]);
    rebound.insert(HOST_FIELD, HeaderValue::from_static("evil.example"));
    let asks = |fields: &HeaderMap, scheme| {
        let asked = Asked { scheme, ..asked(&Method::POST, "/switch", fields, &good) };
        answer(&asked, &view()).status
    };
    assert_eq!(asks(&rebound, Scheme::Http), StatusCode::FORBIDDEN);
    rebound.remove(ORIGIN);
    assert_eq!(asks(&rebound, Scheme::Http), StatusCode::FORBIDDEN);
    // Inside TLS the portal is another origin than in the open.
    for (origin, scheme, expected) in [
        ("https://farhop.internal", Scheme::Https, StatusCode::SEE_OTHER),
        ("http://farhop.internal", Scheme::Https, StatusCode::FORBIDDEN),
        ("https://farhop.internal", Scheme::Http, StatusCode::FORBIDDEN),
    ] {
        assert_eq!(asks(&fields(&[("origin", origin)]), scheme), expected, "{origin}");
    }
    assert!(post(&good, &[]).switch.is_some(), "a browser that sends no Origin");
}

#[test]
fn the_configuration_file_sends_far_requests_to_the_proxy_and_near_ones_not() {
    let mut view = view();
    let bypass = [
        ".intranet.example",
        "one.example",
        "*.below.example",
        "!far.intranet.example",
        "!10.7.7.7",
        "203.0.113.9",
    ];
    view.ways.bypass = bypass.map(|pattern| pattern.parse().unwrap()).into();
    view.ways.ranges = ["198.51.100.0/25", "2001:db8::/33"].map(|range| range.parse().unwrap()).into();
    let reply = get("/wpad.dat", &view);
    assert_eq!(reply.fields[CONTENT_TYPE], "application/x-ns-proxy-autoconfig");
    assert_eq!(get("/proxy.pac", &view).body, reply.body);
    let cases = [
        ("http://example.org/", "example.org", true),
        ("https://example.org/", "example.org", true),
        ("wss://example.org/", "EXAMPLE.org.", true),
        ("http://farhop.internal/", "farhop.internal", true),
        ("http://8.8.8.8/", "8.8.8.8", true),
        ("http://[2001:db9::1]/", "[2001:db9::1]", true),
        ("http://2001:db8:8000::1/", "2001:db8:8000::1", true),
        ("http://notintranet.example/", "notintranet.example", true),
        ("http://198.51.100.200/", "198.51.100.200", true),
        ("http://172.32.0.1/", "172.32.0.1", true),
        ("http://10.example.org/", "10.example.org", true),
        ("ftp://example.org/", "example.org", false),
        ("http://printer/", "printer", false),
        ("http://nas.local/", "nas.local", false),
        ("http://other.internal/", "other.internal", false),
        ("http://localhost/", "localhost", false),
        ("http://a.localhost/", "a.localhost", false),
        ("http://10.1.2.3/", "10.1.2.3", false),
        ("http://172.31.255.255/", "172.31.255.255", false),
        ("http://192.168.1.1/", "192.168.1.1", false),
        ("http://127.0.0.1/", "127.0.0.1", false),
        ("http://[::1]/", "[::1]", false),
        ("http://[::ffff:a01:203]/", "[::ffff:a01:203]", false),
        ("http://[::ffff:808:808]/", "[::ffff:808:808]", true),
        ("http://[fe80::1]/", "fe80::1", false),
        ("http://[fd12:3456::1]/", "[FD12:3456::1]", false),
        ("http://intranet.example/", "intranet.example", false),
        ("http://a.intranet.example/", "a.intranet.example", false),
        ("http://far.intranet.example/", "far.intranet.example", true),
        ("http://10.7.7.7/", "10.7.7.7", true),
        ("http://one.example/", "one.example", false),
        ("http://a.one.example/", "a.one.example", true),
        ("http://below.example/", "below.example", true),
        ("http://a.below.example/", "a.below.example", false),
        ("http://203.0.113.9/", "203.0.113.9", false),
        ("http://203.0.113.90/", "203.0.113.90", true),
        ("http://198.51.100.127/", "198.51.100.127", false),
        ("http://[2001:db8:7fff::1]/", "2001:db8:7fff::1", false),
    ];
    let calls: Vec<_> =
        cases.iter().map(|(url, host, _)| format!("FindProxyForURL({url:?}, {host:?})")).collect();
    let script = format!("{}\nconsole.log([{}].join('\\n'))", text(&reply), calls.join(","));
    let Some(said) = evaluated(&script) else { return };
    assert_eq!(said.lines().count(), cases.len(), "{said}");
    for ((url, _, far), said) in cases.iter().zip(said.lines()) {
        let expected = if *far { "PROXY 10.0.0.1:3128; DIRECT" } else { "DIRECT" };
        assert_eq!(said, expected, "{url}");
    }
    view.ways.direct = false;
    assert!(text(&get("/proxy.pac", &view)).contains("var way = \"PROXY 10.0.0.1:3128\";"));
}

#[test]
fn the_proxys_own_address_is_no_web_site() {
    for (proxy, url, host) in [
        ("cache.ship.example:3128", "http://cache.ship.example:3128/", "cache.ship.example"),
        ("203.0.113.5:3128", "http://203.0.113.5:3128/", "203.0.113.5"),
        ("[2001:db8::5]:3128", "http://[2001:db8::5]:3128/", "[2001:db8::5]"),
    ] {
        let script = format!(
            "{}\nconsole.log(FindProxyForURL({url:?}, {host:?}))",
            pac::file(proxy, &Ways::default())
        );
        let Some(said) = evaluated(&script) else { return };
        assert_eq!(said.trim(), "DIRECT", "{proxy}");
    }
}

/// What a script prints; `None`, and a word on it, where there is no Node.js.
fn evaluated(script: &str) -> Option<String> {
    let strict = format!("\"use strict\";\n{script}");
    let run = Command::new("node").args(["-e", &strict]).stdin(Stdio::null()).output();
    let Ok(output) = run else {
        eprintln!("passed over: node does not run here");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
