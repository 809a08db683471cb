//! The portal's first page: what is on, in plain words. Pure.

use farhop_consent::Host;
use farhop_units::Bytes;

use super::html::{self, Text, size, time};
use super::savings::{Kind, Sizes};
use super::{Interception, Savings, View, switch};

/// How many hosts are named in a sentence.
const MOST_NAMED: usize = 10;

/// The page for who comes because of `meant`, if that is anybody's site.
pub(super) fn page(view: &View, meant: Option<&Host>) -> String {
    let main = [link(view), secure_pages(view, meant), savings(view), configuration(view)].concat();
    html::page("Farhop on this network", &main)
}

fn link(view: &View) -> String {
    let state = match view.round_trip {
        Some(time) if time.as_millis() == 0 => {
            "<p><span class=\"state good\">The satellite link is up.</span></p>".to_owned()
        }
        Some(time) => format!(
            "<p><span class=\"state good\">The satellite link is up.</span> A question and its answer take {} millisecond{} to cross it and come back.</p>",
            time.as_millis(),
            if time.as_millis() == 1 { "" } else { "s" }
        ),
        None => "<p><span class=\"state off\">The satellite link does not answer.</span> Requests wait for it, and downloads go on where they stopped.</p>".to_owned(),
    };
    format!(
        "<section>\n<h2>What this is</h2>\n\
         <p>This network reaches the internet over a satellite, and every question to it takes a long way. Farhop sits at both ends of that way: it fetches what a page will need before your browser asks for it, and makes it small.</p>\n\
         {state}\n<p class=\"note\">You are known here as {}.</p>\n</section>\n",
        Text(&view.user)
    )
}

fn secure_pages(view: &View, meant: Option<&Host>) -> String {
    let body = match &view.interception {
        None => "<p><span class=\"state\">Passed on unread.</span> Pages whose address begins with https:// go through Farhop as a sealed stream: quicker to connect, but it can neither fetch ahead nor make them small. Pages that begin with http:// are fully accelerated.</p>\n".to_owned(),
        Some(interception) => on_or_off(interception) + &switch::forms(interception, &view.token, meant),
    };
    format!("<section>\n<h2>Secure pages (https)</h2>\n{body}</section>\n")
}

fn on_or_off(interception: &Interception) -> String {
    let off =
        "<p><span class=\"state off\">Off for you.</span> Your secure pages are passed on unread.</p>\n";
    let on = match interception.in_force {
        true if interception.refused => {
            "<p><span class=\"state off\">Not on this device at the moment.</span> It did not accept the certificate at several sites in a row, so all its secure pages are passed on unread for some time. <a href=\"/install\">Install the certificate</a>, then have it tried again with the button below.</p>\n"
        }
        true => {
            "<p><span class=\"state good\">Accelerated</span> on devices that have <a href=\"/install\">installed the certificate</a>.</p>\n"
        }
        false => {
            "<p><span class=\"state off\">Not at the moment.</span> The certificate of this network is not valid today, so your secure pages are passed on unread. Those who run the network can make a new one.</p>\n"
        }
    };
    let what = "<p>To make secure pages quick, Farhop has to read them: it opens them here and at the far end of the link, and seals them again for you with its own certificate. Whoever runs this proxy could therefore see what is in them. The site's own certificate is checked at the far end, and a site with a bad one is not shown.</p>\n";
    let ports = format!(
        "<p>Only connections to {} are read; those to any other port are passed on unread.</p>\n",
        Text(&named_ports(&interception.ports))
    );
    let hosts = match interception.certificate.permitted() {
        all if all.subtrees().is_empty() => String::new(),
        some => format!(
            "<p>Of these, only those to these hosts, with all names below them: {}.</p>\n",
            Text(&some.to_string())
        ),
    };
    let apps = "<p>An app that does not accept the certificate is passed on unread for some time after its first try.</p>\n";
    let kinds = match interception.left_alone.join(", ").replace('-', " ") {
        kinds if kinds.is_empty() => String::new(),
        kinds => format!("<p>Left alone for everybody, as far as they are known: {}.</p>\n", Text(&kinds)),
    };
    let older = interception.older.as_ref().map_or_else(String::new, |(_, until)| {
        format!("<p class=\"state off\">There is a new certificate: <a href=\"/install\">install it</a> before {until}.</p>\n")
    });
    let passed_on = passed_on(&interception.passed_on);
    if interception.on {
        [&older, on, what, &ports, &hosts, &kinds, apps, &passed_on, "<p>You can have it otherwise:</p>\n"]
            .concat()
    } else {
        [off, what, &ports, &hosts, &kinds].concat()
    }
}

/// What is passed on unread for this device though nobody has switched it off.
fn passed_on(hosts: &[String]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let named =
        hosts.iter().take(MOST_NAMED).map(|host| Text(host).to_string()).collect::<Vec<_>>().join(", ");
    let more = match hosts.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("<p>Passed on unread for this device now, since it did not go along there: {named}{more}.</p>\n")
}

/// `port 443`, `the ports 443 and 8443`.
fn named_ports(ports: &[String]) -> String {
    match ports {
        [] => "no port".to_owned(),
        [one] if !one.contains('-') => format!("port {one}"),
        [first @ .., last] if !first.is_empty() => format!("the ports {} and {last}", first.join(", ")),
        all => format!("the ports {}", all.join(", ")),
    }
}

fn savings(view: &View) -> String {
    let Savings { answers, bytes, at_once, ahead, bytes_held, .. } = view.savings;
    let rows = [
        ("Answers given to you", answers.to_string()),
        ("of these at once, without a wait for the satellite", at_once.to_string()),
        ("of these already on their way when you asked", ahead.to_string()),
        ("Data given to you", size(bytes)),
        ("of this held here, so that it did not cross again", size(bytes_held)),
    ];
    let rows: String = rows
        .iter()
        .map(|(what, much)| format!("<tr><th scope=\"row\">{what}</th><td>{much}</td></tr>\n"))
        .collect();
    let kinds = if view.savings.all().whole > 0 { by_kind(view) } else { String::new() };
    format!(
        "<section>\n<h2>What you were spared</h2>\n<table>\n{rows}</table>\n{kinds}<p class=\"note\">Since the proxy was started.</p>\n</section>\n"
    )
}

/// What bodies were and what of them crossed, and what the difference means on this link.
fn by_kind(view: &View) -> String {
    let row = |name: &str, Sizes { whole, crossed }: Sizes| {
        format!("<tr><th scope=\"row\">{name}</th><td>{}</td><td>{}</td></tr>\n", size(whole), size(crossed))
    };
    let names = Kind::ALL.map(|kind| match kind {
        Kind::Text => "Pages, styles, scripts and other text",
        Kind::Picture => "Pictures",
        Kind::Other => "Everything else",
    });
    let rows: String =
        Kind::ALL.iter().zip(names).map(|(kind, name)| row(name, view.savings.of(*kind))).collect();
    let all = view.savings.all();
    let spared = all.spared();
    let time = view.rate.filter(|_| spared > 0).map_or_else(String::new, |rate| {
        let time = time(rate.time_for(Bytes(spared)));
        format!(" At the rate of this link, sending the {} that were spared takes {time}.", size(spared))
    });
    format!(
        "<h3>In bytes</h3>\n<table>\n<tr><td></td><th scope=\"col\">In full</th><th scope=\"col\">Crossed</th></tr>\n{rows}{}</table>\n\
         <p class=\"note\">In full is as the sites have it, with text unpacked: many sites pack theirs too, though less tightly. What was held here already did not cross at all.{time}</p>\n",
        row("Altogether", all)
    )
}

fn configuration(view: &View) -> String {
    let proxy = Text(&view.proxy);
    format!(
        "<section>\n<h2>Setting up a browser</h2>\n\
         <p>Give the browser or the system this address for automatic proxy configuration (PAC). It keeps everything near, such as printers and cameras, away from the proxy:</p>\n\
         <p><a href=\"http://{proxy}/proxy.pac\"><code>http://{proxy}/proxy.pac</code></a></p>\n\
         <p>Or set it by hand: the HTTP and the HTTPS proxy are both <code>{proxy}</code>.</p>\n</section>\n"
    )
}
