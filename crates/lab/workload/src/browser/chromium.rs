//! The command line of Chromium: the switches every load has, and how its maker's hosts are kept off the link. Pure.

use super::Order;

/// The switches of every load, exactly.
const SWITCHES: [&str; 7] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// Domains that Chromium calls by itself despite those switches: on a small link they distort what is measured. No page of
/// the lab uses them.
const MAKERS_DOMAINS: [&str; 10] = [
    "google.com",
    "googleapis.com",
    "gstatic.com",
    "googleusercontent.com",
    "google-analytics.com",
    "googletagmanager.com",
    "gvt1.com",
    "gvt2.com",
    "chrome.com",
    "chromium.org",
];

/// The command line of one load, without the profile.
pub(super) fn arguments(order: &Order) -> Vec<String> {
    let mut arguments: Vec<String> = SWITCHES.map(str::to_owned).into();
    // Neither a proxy nor a resolver is asked about these: bypassing the proxy alone would only send them direct.
    let nowhere = MAKERS_DOMAINS.map(|domain| format!("MAP {domain} ~NOTFOUND,MAP *.{domain} ~NOTFOUND"));
    let elsewhere = order.looked_up_as.iter().map(|(host, name)| format!("MAP {host} {name}"));
    let rules: Vec<String> = nowhere.into_iter().chain(elsewhere).collect();
    arguments.push(format!("--host-resolver-rules={}", rules.join(",")));
    if let Some(proxy) = &order.proxy {
        let bypass = MAKERS_DOMAINS.map(|domain| format!("{domain};*.{domain}"));
        arguments.push(format!("--proxy-server=http://{proxy}"));
        arguments.push(format!("--proxy-bypass-list=<-loopback>;{}", bypass.join(";")));
    }
    if !order.http2 {
        arguments.push("--disable-http2".into());
    }
    if !order.http3.is_empty() {
        let origins: Vec<String> = order.http3.iter().map(|host| format!("{host}:443")).collect();
        arguments.push("--enable-quic".into());
        arguments.push(format!("--origin-to-force-quic-on={}", origins.join(",")));
    }
    if let Some(spki) = &order.spki {
        arguments.push(format!("--ignore-certificate-errors-spki-list={spki}"));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http3_is_spoken_from_the_first_byte_where_it_is_wanted_and_nowhere_else() {
        let mut order = Order::new("https://a.test/");
        assert!(!arguments(&order).iter().any(|argument| argument.contains("quic")));
        order.http3 = vec!["a.test".into(), "b.test".into()];
        assert!(arguments(&order).contains(&"--origin-to-force-quic-on=a.test:443,b.test:443".to_owned()));
    }

    #[test]
    fn a_proxied_load_keeps_loopback_on_the_proxy_and_its_maker_off_it() {
        let mut order = Order::new("http://a.test/");
        assert!(!arguments(&order).iter().any(|argument| argument.contains("proxy")));
        order.proxy = Some("127.0.0.1:3128".into());
        let line = arguments(&order).join(" ");
        assert!(line.contains(
            "--proxy-server=http://127.0.0.1:3128 --proxy-bypass-list=<-loopback>;google.com;*.google.com;"
        ));
        assert!(line.contains("MAP *.googleapis.com ~NOTFOUND"));
    }
}
