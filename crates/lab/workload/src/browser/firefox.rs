//! The profile of Firefox: what it would ask of its maker is off, and what a load orders. Pure.

use super::Order;

/// The preferences of every load.
const PREFERENCES: [(&str, &str); 30] = [
    // What its driver would set besides is for tests, and changes how it loads.
    ("remote.prefs.recommended", "false"),
    ("app.normandy.enabled", "false"),
    ("app.update.enabled", "false"),
    ("app.update.disabledForTesting", "true"),
    ("browser.aboutwelcome.enabled", "false"),
    // What a tab would show beside its title is none of the page; Chromium without a window asks for none either.
    ("browser.chrome.site_icons", "false"),
    ("browser.contentblocking.report.hide_vpn_banner", "true"),
    ("browser.newtabpage.enabled", "false"),
    ("browser.region.network.url", "\"\""),
    ("browser.safebrowsing.blockedURIs.enabled", "false"),
    ("browser.safebrowsing.downloads.remote.enabled", "false"),
    ("browser.safebrowsing.malware.enabled", "false"),
    ("browser.safebrowsing.phishing.enabled", "false"),
    ("browser.search.update", "false"),
    ("browser.shell.checkDefaultBrowser", "false"),
    ("browser.startup.page", "0"),
    ("browser.topsites.contile.enabled", "false"),
    ("datareporting.policy.dataSubmissionEnabled", "false"),
    ("dom.push.connection.enabled", "false"),
    ("extensions.systemAddon.update.enabled", "false"),
    ("extensions.update.enabled", "false"),
    ("media.gmp-manager.url", "\"\""),
    ("network.captive-portal-service.enabled", "false"),
    ("network.connectivity-service.enabled", "false"),
    // Names are asked of the lab's DNS alone.
    ("network.trr.mode", "5"),
    ("services.settings.server", "\"http://localhost:1\""),
    ("toolkit.telemetry.enabled", "false"),
    // Plain HTTP is what a page over it is asked for by.
    ("dom.security.https_first", "false"),
    ("dom.security.https_first_schemeless", "false"),
    // Its clocks count by the millisecond else.
    ("privacy.reduceTimerPrecision", "false"),
];

/// Hosts of its maker that it calls by itself despite those: looked up nowhere, and asked for of no proxy. No page of the lab uses
/// them.
const MAKERS_HOSTS: [&str; 9] = [
    "detectportal.firefox.com",
    "firefox.settings.services.mozilla.com",
    "firefox-settings-attachments.cdn.mozilla.net",
    "content-signature-2.cdn.mozilla.net",
    "incoming.telemetry.mozilla.org",
    "push.services.mozilla.com",
    "contile.services.mozilla.com",
    "merino.services.mozilla.com",
    "versioncheck-bg.addons.mozilla.org",
];

/// The profile's `user.js`.
pub(super) fn preferences(order: &Order) -> String {
    let text = |text: &str| format!("{text:?}");
    let mut all: Vec<(&str, String)> =
        PREFERENCES.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    all.push(("network.dns.localDomains", text(&MAKERS_HOSTS.join(","))));
    // Its older name, and today's.
    for name in ["network.http.spdy.enabled.http2", "network.http.http2.enabled"] {
        all.push((name, order.http2.to_string()));
    }
    if let Some((host, port)) = order.proxy.as_ref().and_then(|proxy| proxy.rsplit_once(':')) {
        let host = host.trim_matches(['[', ']']);
        for kind in ["http", "ssl"] {
            let names = match kind {
                "http" => ("network.proxy.http", "network.proxy.http_port"),
                _ => ("network.proxy.ssl", "network.proxy.ssl_port"),
            };
            all.extend([(names.0, text(host)), (names.1, port.to_owned())]);
        }
        all.push(("network.proxy.type", "1".into()));
        all.push(("network.proxy.allow_hijacking_localhost", "true".into()));
        all.push(("network.proxy.no_proxies_on", text(&MAKERS_HOSTS.join(","))));
    } else {
        all.push(("network.proxy.type", "0".into()));
    }
    all.iter().map(|(name, value)| format!("user_pref({name:?}, {value});\n")).collect()
}

/// What of an order the driver of Firefox cannot do, in words.
pub(super) fn beyond(order: &Order) -> Option<&'static str> {
    let asked = [
        (!order.http3.is_empty(), "begin with HTTP/3"),
        (!order.looked_up_as.is_empty(), "look hosts up by other names"),
        (order.screenshot.is_some() || order.film.is_some(), "take pictures"),
        (order.har.is_some(), "write a HAR"),
        (order.initiators, "tell who asked"),
    ];
    asked.into_iter().find(|(asked, _)| *asked).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxied_load_asks_the_proxy_for_everything_but_its_makers_hosts() {
        let mut order = Order::new("http://a.test/");
        assert!(preferences(&order).contains("user_pref(\"network.proxy.type\", 0);\n"));
        order.proxy = Some("127.0.0.1:3128".into());
        let told = preferences(&order);
        for line in [
            "user_pref(\"network.proxy.ssl\", \"127.0.0.1\");\n",
            "user_pref(\"network.proxy.http_port\", 3128);\n",
            "user_pref(\"network.proxy.type\", 1);\n",
        ] {
            assert!(told.contains(line), "{told}");
        }
        assert!(told.contains("no_proxies_on\", \"detectportal.firefox.com,"));
    }

    #[test]
    fn what_it_is_not_driven_to_do_is_told() {
        let mut order = Order::new("https://a.test/");
        assert_eq!(beyond(&order), None);
        order.http3 = vec!["a.test".into()];
        assert_eq!(beyond(&order), Some("begin with HTTP/3"));
    }
}
