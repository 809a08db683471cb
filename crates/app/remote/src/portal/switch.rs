//! Switching interception off and on again: a form that no other site can send in the user's name. Pure.
//!
//! Three things have to be right: the token, which is the user's alone and stands only on the portal's own page; the
//! Origin, which browsers send with every form; and `Sec-Fetch-Site`, where they send it.

use std::net::IpAddr;

use farhop_consent::Host;
use farhop_front::Scheme;
use http::header::{HeaderName, ORIGIN};
use http::{HeaderMap, StatusCode};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use url::Url;

use super::html::Text;
use super::{Asked, Interception, Reply, View, is_host, named_host, refusal, see_other};

/// What a user wants switched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Interception for everything this user does.
    All {
        /// Whether it is to be on.
        on: bool,
    },
    /// Interception for the site of a host.
    Site {
        /// The host that was named.
        host: Host,
        /// Whether it is to be on.
        on: bool,
    },
    /// Forget that this client's handshakes failed: it has the certificate now.
    TryAgain,
}

/// What tokens are made with: random, and gone with the process.
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// From the system's random numbers.
    ///
    /// # Errors
    /// Its generator failed.
    pub(crate) fn random() -> Result<Secret, Unspecified> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes)?;
        Ok(Secret(bytes))
    }

    /// The token of a user.
    pub(crate) fn token(&self, user: &str) -> String {
        blake3::keyed_hash(&self.0, user.as_bytes()).to_hex().to_string()
    }
}

pub(super) fn answer(asked: &Asked<'_>, view: &View) -> Reply {
    if !is_from_here(asked.scheme, asked.fields) {
        return refusal(
            StatusCode::FORBIDDEN,
            "This form was sent by another site, and nothing was changed.",
        );
    }
    let form: Vec<(String, String)> = url::form_urlencoded::parse(asked.form).into_owned().collect();
    let value = |name: &str| form.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    if !is_equal(value("token"), &view.token) {
        let words = "This page had been open for too long, and nothing was changed. Go back, load it again and try once more.";
        return refusal(StatusCode::FORBIDDEN, words);
    }
    let site = || site(value("site")).ok_or_else(|| NO_SITE.to_owned());
    let switch = match value("do") {
        "all-off" => Ok(Switch::All { on: false }),
        "all-on" => Ok(Switch::All { on: true }),
        "try-again" => Ok(Switch::TryAgain),
        "site-off" => site().and_then(one).map(|host| Switch::Site { host, on: false }),
        "site-on" => site().map(|host| Switch::Site { host, on: true }),
        _ => Err(NO_SWITCH.to_owned()),
    };
    match switch {
        Ok(switch) => Reply { switch: Some(switch), ..see_other("/") },
        Err(words) => refusal(StatusCode::BAD_REQUEST, &words),
    }
}

/// The list of sites that are left alone ends once it is so long, in bytes, so that the page stays a small one.
const LONGEST_LIST: usize = 16 * 1024;

const NO_SITE: &str = "That is no site. Write its name, such as www.example.org.";
const NO_SWITCH: &str = "This form asks for something that cannot be switched here, and nothing was changed. Load the overview again and use its buttons.";

/// A host that stands for one site. Whole countries' or providers' sites are not switched off by a slip.
fn one(host: Host) -> Result<Host, String> {
    if is_host(&host.to_string()) {
        return Err(
            "These pages are the proxy's own: there is nothing to switch off, and nothing was changed."
                .to_owned(),
        );
    }
    if !host.is_public_suffix() {
        return Ok(host);
    }
    let name = host.to_string();
    let name = Text(&name);
    Err(format!(
        "{name} is no site: it is what the names of many sites end in, and nothing was changed. Write the whole name, such as www.example.{name}, or switch it off for all your pages."
    ))
}

fn is_from_here(scheme: Scheme, fields: &HeaderMap) -> bool {
    let scheme = scheme.as_str();
    let text = |name: HeaderName| fields.get(name).map(|value| value.to_str().unwrap_or("?"));
    let named = fields.get(http::header::HOST).and_then(|value| value.to_str().ok()).unwrap_or("");
    let own_host = is_host(&named_host(fields));
    // Browsers leave the Origin out only where the form cannot come from elsewhere; the token decides there.
    let own_origin =
        text(ORIGIN).is_none_or(|origin| origin.eq_ignore_ascii_case(&format!("{scheme}://{named}")));
    let own_site = text(HeaderName::from_static("sec-fetch-site"))
        .is_none_or(|site| matches!(site, "same-origin" | "none"));
    own_host && own_origin && own_site
}

/// Compared in a time that tells nothing of where they differ.
fn is_equal(given: &str, expected: &str) -> bool {
    let differ = given.bytes().zip(expected.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == expected.len() && differ == 0
}

/// The host that a user means: a name, an address, or a URL pasted from the address bar.
fn site(text: &str) -> Option<Host> {
    let text = text.trim();
    if text.parse::<IpAddr>().is_ok() {
        return text.parse().ok();
    }
    let url =
        if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("https://{text}")) }.ok()?;
    let host = url.host_str()?.parse().ok()?;
    match &host {
        // A range of addresses: one of them is not what is meant.
        Host::Address(_)
            if url.path().bytes().skip(1).all(|byte| byte.is_ascii_digit()) && url.path() != "/" =>
        {
            None
        }
        // RFC 952: nor is a label that begins or ends so.
        Host::Name(name) if name.split('.').any(|label| label.starts_with('-') || label.ends_with('-')) => {
            None
        }
        _ => Some(host),
    }
}

/// The site that a link to the overview brings along, as error pages have it: `site=www.example.org`.
pub(super) fn meant(query: &str) -> Option<Host> {
    let mut named = url::form_urlencoded::parse(query.as_bytes());
    named.find(|(name, _)| name == "site").and_then(|(_, value)| site(&value))
}

/// A site as people write it.
fn as_written(host: &str) -> String {
    // Reads names alone: an IPv6 address has no brackets here.
    if host.contains("xn--") { url::quirks::domain_to_unicode(host) } else { host.to_owned() }
}

/// The forms, as the overview shows them; `meant` stands in its field already.
pub(super) fn forms(interception: &Interception, token: &str, meant: Option<&Host>) -> String {
    let button = |what: &str, words: &str, hidden: &str, class: &str| {
        format!(
            "<form method=\"post\" action=\"/switch\"><input type=\"hidden\" name=\"token\" value=\"{token}\">{hidden}\
             <button{class} name=\"do\" value=\"{what}\">{words}</button></form>\n"
        )
    };
    if !interception.on {
        return button("all-on", "Switch it on for me", "", "");
    }
    let mut forms = String::new();
    let value = meant.map_or_else(String::new, |host| {
        let written = match host {
            Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
            host => as_written(&host.to_string()),
        };
        format!(" value=\"{}\" autofocus", Text(&written))
    });
    let label = format!(
        "<label>Not for this site <input name=\"site\" required autocomplete=\"off\" placeholder=\"www.example.org\"{value}></label>"
    );
    forms.push_str(&button("site-off", "Leave this site alone", &label, ""));
    if !interception.sites_off.is_empty() {
        forms.push_str("<h3>Left alone for you</h3>\n<ul class=\"sites\">\n");
        let (whole, mut shown_sites) = (forms.len() + LONGEST_LIST, 0);
        for host in &interception.sites_off {
            if forms.len() >= whole {
                break;
            }
            shown_sites += 1;
            let (shown, host) = (as_written(host), Text(host));
            let shown = Text(&shown);
            let hidden =
                format!("<span>{shown}</span><input type=\"hidden\" name=\"site\" value=\"{host}\">");
            forms.push_str(&format!(
                "<li>{}</li>\n",
                button("site-on", &format!("Switch on again for {shown}"), &hidden, " class=\"quiet\"")
            ));
        }
        forms.push_str("</ul>\n");
        let more = interception.sites_off.len() - shown_sites;
        if more > 0 {
            let label = format!(
                "<label>And {more} more, that one among them <input name=\"site\" required autocomplete=\"off\"></label>"
            );
            forms.push_str(&button("site-on", "Switch on again", &label, " class=\"quiet\""));
        }
    }
    forms.push_str(&button(
        "try-again",
        "I have installed the certificate: try again",
        "",
        " class=\"quiet\"",
    ));
    forms.push_str(&button("all-off", "Switch it off for all my pages", "", " class=\"quiet\""));
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_understood_as_people_write_it() {
        for text in [
            "www.Bank.example",
            " https://www.bank.example/login?x=1 ",
            "www.bank.example.",
            "www.bank.example:443",
        ] {
            assert_eq!(site(text), Some("www.bank.example".parse().unwrap()), "{text}");
        }
        assert_eq!(site("bücher.example"), Some("xn--bcher-kva.example".parse().unwrap()));
        assert_eq!(site("printer"), Some("printer".parse().unwrap()));
        for text in ["[2001:db8::1]", "2001:db8::1", "https://[2001:db8::1]:443/x"] {
            assert_eq!(site(text), Some("2001:db8::1".parse().unwrap()), "{text}");
        }
        assert_eq!(site("https://10.0.0.1/8/x"), Some("10.0.0.1".parse().unwrap()));
        for text in ["10.0.0.0/8", "2001:db8::/32", "[2001:db8::]/32"] {
            assert_eq!(site(text), None, "{text}");
        }
        for text in ["", "-a.com", "a-.com", "*.example", "a b.example", "javascript:alert(1)", "https://"] {
            assert_eq!(site(text), None, "{text}");
        }
    }

    #[test]
    fn a_site_is_shown_as_people_write_it() {
        assert_eq!(as_written("xn--tda.example"), "ü.example");
        for host in ["www.bank.example", "2001:db8::1", "192.0.2.1", "\"><img src=x>"] {
            assert_eq!(as_written(host), host);
        }
    }

    #[test]
    fn what_many_sites_end_in_is_not_one_site() {
        assert_eq!(one("www.example.co.uk".parse().unwrap()), Ok("www.example.co.uk".parse().unwrap()));
        for text in ["farhop.internal", "FARHOP.internal."] {
            assert!(one(site(text).unwrap()).unwrap_err().contains("own"), "{text}");
        }
        assert_eq!(one("router.ship".parse().unwrap()), Ok("router.ship".parse().unwrap()));
        for text in ["co.uk", "github.io"] {
            let words = one(text.parse().unwrap()).unwrap_err();
            assert!(words.starts_with(&format!("{text} is no site")), "{words}");
        }
    }

    #[test]
    fn a_token_is_one_users_and_one_processes() {
        let (one, other) = (Secret([1; 32]), Secret([2; 32]));
        assert_eq!(one.token("10.0.0.1"), one.token("10.0.0.1"));
        assert_ne!(one.token("10.0.0.1"), one.token("10.0.0.2"));
        assert_ne!(one.token("10.0.0.1"), other.token("10.0.0.1"));
        assert!(
            is_equal("ab", "ab") && !is_equal("ab", "ac") && !is_equal("ab", "abc") && !is_equal("", "a")
        );
    }
}
