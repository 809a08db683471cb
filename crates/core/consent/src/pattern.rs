//! Host patterns as operators write them.

use std::fmt;
use std::str::FromStr;

use crate::host::{Host, NotAHost};

/// Some hosts, or, after `!`, an exception from others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPattern {
    /// Whether these hosts are to be left out of what other patterns and lists name.
    pub is_exception: bool,
    /// Which hosts.
    pub form: Form,
}

/// Which hosts a pattern names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Form {
    /// `*`: all of them.
    All,
    /// `example.org`, `192.0.2.1`: this one.
    Exactly(Host),
    /// `.example.org`: this one and all below it.
    AndBelow(Host),
    /// `*.example.org`: all below it.
    Below(Host),
}

impl FromStr for HostPattern {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let text = text.trim();
        let (is_exception, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        // Nothing is below an address.
        let name = |text: &str| match text.parse::<Host>()? {
            host @ Host::Name(_) => Ok(host),
            Host::Address(_) => Err(NotAHost),
        };
        let form = if text == "*" {
            Form::All
        } else if let Some(rest) = text.strip_prefix("*.") {
            Form::Below(name(rest)?)
        } else if let Some(rest) = text.strip_prefix('.') {
            Form::AndBelow(name(rest)?)
        } else {
            Form::Exactly(text.parse()?)
        };
        Ok(HostPattern { is_exception, form })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exception {
            write!(f, "!")?;
        }
        match &self.form {
            Form::All => write!(f, "*"),
            Form::Exactly(host) => write!(f, "{host}"),
            Form::AndBelow(host) => write!(f, ".{host}"),
            Form::Below(host) => write!(f, "*.{host}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_back_as_it_is_shown() {
        for text in
            ["*", "a.example", ".a.example", "*.a.example", "!a.example", "!*", "192.0.2.1", "2001:db8::1"]
        {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), text);
        }
        assert_eq!(
            " ! *.BÜCHER.example. ".parse::<HostPattern>().unwrap().to_string(),
            "!*.xn--bcher-kva.example"
        );
    }

    #[test]
    fn slips_are_refused() {
        for text in
            ["", "!", "!!a", "*a.example", "a.*", "*.", ".192.0.2.1", "https://a.example", "a.example:443"]
        {
            assert_eq!(text.parse::<HostPattern>(), Err(NotAHost), "{text}");
        }
    }
}
