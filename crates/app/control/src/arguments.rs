//! Arguments that commands of both ends take.

use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

/// What is to be forgotten of what is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// Everything.
    All,
    /// What this URL was answered with.
    Url(Url),
    /// What all URLs of this host were answered with.
    Site(String),
    /// What is held for this user alone, by name or address.
    User(String),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Asked {
    url: Option<String>,
    site: Option<String>,
    user: Option<String>,
}

impl Chosen {
    /// Reads `{"url":URL}`, `{"site":HOST}` or `{"user":NAME}`; everything is meant where nothing is said.
    ///
    /// # Errors
    /// What is wrong with it, as the caller is told.
    pub fn read(args: Value) -> Result<Chosen, String> {
        let asked = match args {
            Value::Null => Asked::default(),
            args => serde_json::from_value(args).map_err(|error| error.to_string())?,
        };
        match asked {
            Asked { url: None, site: None, user: None } => Ok(Chosen::All),
            Asked { url: Some(url), site: None, user: None } => match Url::parse(&url) {
                Ok(mut parsed) => {
                    parsed.set_fragment(None);
                    Ok(Chosen::Url(parsed))
                }
                Err(error) => Err(format!("{url}: {error}")),
            },
            Asked { url: None, site: Some(site), user: None } => Ok(Chosen::Site(host(&site)?)),
            Asked { url: None, site: None, user: Some(user) } => Ok(Chosen::User(user)),
            _ => Err("say one of url, site and user".into()),
        }
    }

    /// Whether what answers `url` is meant, as far as that goes by the URL.
    pub fn is_meant(&self, url: &str) -> bool {
        match self {
            Chosen::All | Chosen::User(_) => true,
            Chosen::Url(own) => own.as_str() == url,
            Chosen::Site(site) => Url::parse(url).is_ok_and(|url| url.host_str() == Some(site)),
        }
    }
}

/// What is answered when so much was forgotten; nothing is counted of all.
pub fn forgotten(count: Option<u64>) -> Value {
    count.map_or_else(|| json!({}), |count| json!({ "forgotten": count }))
}

/// A host as URLs name it. It goes for all its ports: one that was written with it is left out.
///
/// # Errors
/// It is none, in words.
pub fn host(text: &str) -> Result<String, String> {
    let parsed = |text: &str| Url::parse(&format!("http://{text}/")).ok();
    let url = parsed(text).or_else(|| parsed(&format!("[{text}]")));
    // Nothing but the host, and a port.
    let is_plain = |url: &Url| {
        url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.authority() == {
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                format!("{}{port}", url.host_str().unwrap_or_default())
            }
    };
    let host = url.filter(is_plain).and_then(|url| url.host_str().map(str::to_owned));
    host.ok_or_else(|| format!("'{text}' is no host; write it as URLs do, like www.example.org"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_those_of_urls_whatever_their_ports() {
        for (text, name) in [
            ("www.Example.org", "www.example.org"),
            ("127.0.0.1:18081", "127.0.0.1"),
            ("a.example:443", "a.example"),
            ("a.example:80", "a.example"),
            ("::1", "[::1]"),
            ("[::1]:80", "[::1]"),
        ] {
            assert_eq!(host(text).as_deref(), Ok(name));
        }
        for text in ["", "a b", "http://a.example", "a.example/path", "user@a.example", "a.example?x", "a#b"]
        {
            assert!(host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_thing_is_chosen_or_everything() {
        let read = |args| Chosen::read(args);
        assert_eq!(read(Value::Null), Ok(Chosen::All));
        assert_eq!(read(json!({})), Ok(Chosen::All));
        let url = read(json!({"url": "http://A.test/k1#here"})).unwrap();
        assert!(url.is_meant("http://a.test/k1") && !url.is_meant("http://a.test/k12"));
        let site = read(json!({"site": "a.test:8080"})).unwrap();
        assert!(site.is_meant("http://a.test:81/x") && site.is_meant("https://a.test/"));
        assert!(!site.is_meant("http://b.a.test/") && !site.is_meant("http://b.test/?a.test"));
        assert_eq!(read(json!({"user": "anna"})), Ok(Chosen::User("anna".into())));
        for args in [
            json!({"url": "k1"}),
            json!({"site": ""}),
            json!({"url": "http://a/", "site": "a"}),
            json!({"urls": "x"}),
            json!({"url": 1}),
        ] {
            assert!(read(args.clone()).is_err(), "{args}");
        }
    }
}
