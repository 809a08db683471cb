//! The ways a page is loaded. Pure, but for a look at which programs the machine has.

use clap::ValueEnum;

use crate::peers;

/// A way to load a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Variant {
    /// Plain HTTP/1.1 from the browser to the origins.
    DirectH1,
    /// HTTPS with HTTP/1.1.
    DirectH1s,
    /// HTTPS with HTTP/2.
    DirectH2,
    /// HTTPS with HTTP/3 from the first byte on, by Caddy in front of the origins.
    DirectH3,
    /// Plain HTTP/1.1, the origins sending with BBR.
    #[value(name = "direct-h1+bbr")]
    DirectH1Bbr,
    /// HTTPS with HTTP/1.1, the origins sending with BBR.
    #[value(name = "direct-h1s+bbr")]
    DirectH1sBbr,
    /// HTTPS with HTTP/2, the origins sending with BBR.
    #[value(name = "direct-h2+bbr")]
    DirectH2Bbr,
    /// A pair of Squid proxies, one at each end of the link, their caches cold.
    Squid,
    /// Through Farhop, told the profile of the link.
    Farhop,
    /// HTTPS through Farhop untouched: tunnels, no interception.
    FarhopTunnel,
    /// Plain HTTP through Farhop, whatever the others load.
    FarhopHttp,
    /// Farhop with nothing lossy.
    FarhopIdentity,
    /// Farhop with JPEG images at quality 50, as HTTPEP's study had them.
    FarhopHttpep,
    /// Farhop without bundling: its carrier alone.
    FarhopTransport,
}

/// The congestion control of origins for the `+bbr` variants.
pub(crate) const BBR: &str = "bbr";
/// What the names of servers for `direct-h3` begin with in the DNS.
pub(crate) const H3: &str = "h3";
/// The same for what stands in for origins at the gateway.
pub(crate) const GATEWAY: &str = "gateway";

impl Variant {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Variant::DirectH1 => "direct-h1",
            Variant::DirectH1s => "direct-h1s",
            Variant::DirectH2 => "direct-h2",
            Variant::DirectH3 => "direct-h3",
            Variant::DirectH1Bbr => "direct-h1+bbr",
            Variant::DirectH1sBbr => "direct-h1s+bbr",
            Variant::DirectH2Bbr => "direct-h2+bbr",
            Variant::Squid => "squid",
            Variant::Farhop => "farhop",
            Variant::FarhopTunnel => "farhop-tunnel",
            Variant::FarhopHttp => "farhop-http",
            Variant::FarhopIdentity => "farhop-identity",
            Variant::FarhopHttpep => "farhop-httpep",
            Variant::FarhopTransport => "farhop-transport",
        }
    }

    /// Whether it goes through Farhop.
    pub fn is_farhop(self) -> bool {
        self.name().starts_with("farhop")
    }

    /// Whether origins send with BBR.
    pub(crate) fn is_bbr(self) -> bool {
        self.name().ends_with("+bbr")
    }

    /// The scheme of its URLs, in a comparison over HTTPS (`tls`) or over plain HTTP.
    pub(crate) fn scheme(self, tls: bool) -> &'static str {
        let secure = match self {
            Variant::DirectH1 | Variant::DirectH1Bbr | Variant::FarhopHttp => false,
            Variant::DirectH1s
            | Variant::DirectH2
            | Variant::DirectH3
            | Variant::DirectH1sBbr
            | Variant::DirectH2Bbr
            | Variant::FarhopTunnel => true,
            _ => tls,
        };
        if secure { "https" } else { "http" }
    }

    /// Whether its remote intercepts HTTPS where it has a CA.
    pub(crate) fn intercepts(self) -> bool {
        self.is_farhop() && self != Variant::FarhopTunnel
    }

    /// The program of others that it needs and that this machine lacks, which is also its Debian package.
    pub fn lacks(self) -> Option<&'static str> {
        let program = match self {
            Variant::DirectH3 => "caddy",
            Variant::Squid => "squid",
            _ => return None,
        };
        peers::program(program).is_none().then_some(program)
    }

    /// Whether the browser may speak HTTP/2 to HTTPS origins.
    pub(crate) fn http2(self) -> bool {
        !matches!(self, Variant::DirectH1s | Variant::DirectH1sBbr)
    }

    /// Whether images may come recoded.
    pub(crate) fn may_recode(self) -> bool {
        matches!(self, Variant::Farhop | Variant::FarhopHttp | Variant::FarhopHttpep)
    }

    /// What stands in ground's settings for it, beside what every variant has.
    pub(crate) fn ground_settings(self) -> &'static str {
        match self {
            Variant::FarhopTransport => "[bundle]\nenabled = false\n[squeeze]\npolicy = \"identity\"\n",
            Variant::FarhopIdentity => "[squeeze]\npolicy = \"identity\"\n",
            Variant::FarhopHttpep => "[squeeze]\npolicy = \"httpep\"\n",
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

    #[test]
    fn a_variant_with_bbr_differs_from_its_twin_in_nothing_else() {
        let mut pairs = 0;
        for bbr in Variant::value_variants().iter().filter(|variant| variant.is_bbr()) {
            let twin = Variant::from_str(bbr.name().trim_end_matches("+bbr"), false).unwrap();
            assert_eq!((bbr.scheme(false), bbr.http2()), (twin.scheme(false), twin.http2()));
            assert!(!bbr.is_farhop() && !twin.is_bbr());
            pairs += 1;
        }
        assert_eq!(pairs, 3);
    }

    #[test]
    fn over_https_all_load_https_but_those_that_are_plain_by_name() {
        let plain = |tls| {
            let of = |variant: &&Variant| variant.scheme(tls) == "http";
            Variant::value_variants().iter().filter(of).map(|variant| variant.name()).collect::<Vec<_>>()
        };
        assert_eq!(plain(true), ["direct-h1", "direct-h1+bbr", "farhop-http"]);
        let proxied =
            ["squid", "farhop", "farhop-http", "farhop-identity", "farhop-httpep", "farhop-transport"];
        assert_eq!(plain(false), [&["direct-h1", "direct-h1+bbr"], &proxied[..]].concat());
    }
}
