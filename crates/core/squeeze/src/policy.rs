//! What may be done to images: the four policies.

use std::fmt;
use std::str::FromStr;

/// How far images may differ from what their origin sent; the greater, the further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Policy {
    /// Not at all: every image crosses as the origin sent it.
    Identity,
    /// Not so that anyone sees it while looking at a page.
    #[default]
    Gentle,
    /// As HTTPEP did (Davern et al., IJNGC 2011): JPEG of quality 50, everything else as it is.
    Httpep,
    /// Visibly, where bytes are dear.
    Strong,
}

impl Policy {
    /// All of them, from the least change to the greatest.
    pub const ALL: [Policy; 4] = [Policy::Identity, Policy::Gentle, Policy::Httpep, Policy::Strong];

    /// The word for it in settings and validators.
    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Identity => "identity",
            Policy::Gentle => "gentle",
            Policy::Httpep => "httpep",
            Policy::Strong => "strong",
        }
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Policy::ALL.into_iter().find(|policy| policy.as_str() == text).ok_or(UnknownPolicy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No policy has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an image policy: they are identity, gentle, httpep and strong")]
pub struct UnknownPolicy;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for other in ["", "Gentle", "lossless"] {
            assert_eq!(other.parse::<Policy>(), Err(UnknownPolicy), "{other}");
        }
    }
}
