//! The ways a page is loaded. Pure.

use clap::ValueEnum;

/// A way to load a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Variant {
    /// Plain HTTP/1.1 from the browser to the origins.
    DirectH1,
    /// HTTPS with HTTP/1.1.
    DirectH1s,
    /// HTTPS with HTTP/2.
    DirectH2,
    /// Plain HTTP through Farhop as it comes.
    Farhop,
    /// Farhop with nothing lossy.
    FarhopIdentity,
    /// Farhop without bundling: its carrier alone.
    FarhopTransport,
}

impl Variant {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Variant::DirectH1 => "direct-h1",
            Variant::DirectH1s => "direct-h1s",
            Variant::DirectH2 => "direct-h2",
            Variant::Farhop => "farhop",
            Variant::FarhopIdentity => "farhop-identity",
            Variant::FarhopTransport => "farhop-transport",
        }
    }

    /// Whether it goes through Farhop.
    pub fn is_farhop(self) -> bool {
        matches!(self, Variant::Farhop | Variant::FarhopIdentity | Variant::FarhopTransport)
    }

    /// The scheme of its URLs.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Variant::DirectH1s | Variant::DirectH2 => "https",
            _ => "http",
        }
    }

    /// Whether images may come recoded.
    pub(crate) fn may_recode(self) -> bool {
        self == Variant::Farhop
    }

    /// What stands in ground's settings for it, beside what every variant has.
    pub(crate) fn ground_settings(self) -> &'static str {
        match self {
            Variant::FarhopTransport => "[bundle]\nenabled = false\n",
            // Nothing lossy exists yet, so that there is nothing to switch off for identity.
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_knows_variants_by_the_names_of_reports() {
        for variant in Variant::value_variants() {
            assert_eq!(Variant::from_str(variant.name(), false), Ok(*variant));
        }
    }
}
