//! Sites as the command line names them: `DIR[=HOST]`, and `HOST=TIME` for an origin's own delay. Pure but for a look at
//! the folder.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A folder to be served under a host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteArgument {
    /// The folder.
    pub folder: PathBuf,
    /// The host name.
    pub host: String,
}

/// An origin's own delay before each answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDelay {
    /// The host name.
    pub host: String,
    /// The delay.
    pub delay: Duration,
}

impl FromStr for SiteArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A folder's name may have an equals sign; a host name may not.
        let (folder, host) = match text.rsplit_once('=') {
            Some((folder, host)) if !std::path::Path::new(text).is_dir() => (folder, Some(host)),
            _ => (text, None),
        };
        let folder = std::path::absolute(folder).map_err(|error| format!("folder '{folder}': {error}"))?;
        if !folder.is_dir() {
            return Err(format!("'{}' is no folder: give DIR or DIR=HOST", folder.display()));
        }
        let folder =
            folder.canonicalize().map_err(|error| format!("folder '{}': {error}", folder.display()))?;
        let host = match host {
            Some(host) => host.to_ascii_lowercase(),
            None => format!("{}.test", host_label(&folder)),
        };
        if !is_host(&host) {
            return Err(format!("'{host}' is no host name: use letters, digits, dots and hyphens"));
        }
        Ok(SiteArgument { folder, host })
    }
}

impl FromStr for HostDelay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, time) = text.split_once('=').ok_or_else(|| format!("'{text}' is not HOST=TIME"))?;
        let delay = farhop_units::parse_duration(time).map_err(|error| error.to_string())?;
        Ok(HostDelay { host: host.to_ascii_lowercase(), delay })
    }
}

/// A folder's name as one label of a host name.
pub(crate) fn host_label(folder: &std::path::Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let label: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(63).collect();
    match label.trim_matches('-') {
        "" => "site".into(),
        label => label.into(),
    }
}

/// RFC 1123 §2.1, and not an address: certificates and DNS want a name.
fn is_host(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(label) && host.parse::<std::net::IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_a_folder_with_or_without_a_host() {
        let folder = tempfile::Builder::new().prefix("My Site").tempdir().unwrap();
        let path = folder.path().display();
        let named: SiteArgument = format!("{path}=Shop.Example").parse().unwrap();
        assert_eq!((named.host.as_str(), named.folder.is_dir()), ("shop.example", true));
        let unnamed: SiteArgument = path.to_string().parse().unwrap();
        assert!(unnamed.host.starts_with("my-site") && unnamed.host.ends_with(".test"), "{}", unnamed.host);
    }

    #[test]
    fn what_is_no_folder_or_no_host_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let error = |text: &str| text.parse::<SiteArgument>().unwrap_err();
        assert!(error("/nonexistent=a.test").contains("'/nonexistent' is no folder"));
        for host in ["", "a b", "-a.test", "a..b", "10.0.0.1", "a/b"] {
            let text = format!("{}={host}", folder.path().display());
            assert!(error(&text).contains("is no host name"), "{host}");
        }
    }

    #[test]
    fn a_delay_has_a_host_and_a_unit() {
        let delay: HostDelay = "a.test=50 ms".parse().unwrap();
        assert_eq!(delay, HostDelay { host: "a.test".into(), delay: Duration::from_millis(50) });
        assert!("a.test=50".parse::<HostDelay>().is_err());
        assert!("50 ms".parse::<HostDelay>().is_err());
    }
}
