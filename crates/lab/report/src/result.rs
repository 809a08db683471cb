//! The results of a comparison as data. Their JSON is an interface: `schema/compare.json` describes it and a test holds
//! both together.

use serde::{Deserialize, Serialize, Serializer};

use crate::{Accounts, Spread, Waterfall};

/// The JSON schema of [`Comparison`].
pub const SCHEMA: &str = include_str!("../schema/compare.json");

/// Everything that one run of `farhop lab compare` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The link, and what else a reader has to know to judge the numbers.
    pub link: Link,
    /// One result per page.
    pub results: Vec<PageResult>,
}

/// The conditions of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The link profile's name.
    pub profile: String,
    /// Round trip of the idle link, in seconds.
    pub rtt_s: f64,
    /// Gateway to terminal, the way of downloads.
    pub forward: Leg,
    /// Terminal to gateway, the way of requests.
    #[serde(rename = "return")]
    pub return_: Leg,
    /// The link as measured before the first load.
    pub calibration: Calibration,
    /// The settings of the origins' servers.
    pub servers: Servers,
    /// The browser's name and version.
    pub browser: String,
    /// How the loads were made: what was cold, what was restarted, what stood open.
    pub method: Vec<String>,
    /// What a reader must be told: loads left out, resources that were wrong, names that should not have been asked for.
    pub notes: Vec<String>,
}

/// One direction of the link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leg {
    /// Rate in bit/s; none where there is no limit.
    pub rate_bit_s: Option<u64>,
    /// One-way delay in seconds.
    pub delay_s: f64,
    /// Bytes that may wait.
    pub queue_bytes: u64,
    /// Share of packets lost at random.
    pub loss: f64,
}

/// The link as measured over the real kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Median round trip in seconds.
    pub rtt_s: f64,
    /// Rate of the forward way in bit/s; none where none is set.
    pub forward_bit_s: Option<u64>,
    /// Rate of the return way in bit/s.
    pub return_bit_s: Option<u64>,
    /// Whether all of it lies within 2 % of the profile.
    pub fit: bool,
    /// The same in words.
    pub text: String,
}

/// What the opponent's servers are set to, in words, and the names of the sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Servers {
    /// Settings of all origins.
    pub settings: String,
    /// Each origin with its own delay.
    pub origins: Vec<String>,
}

/// One page through every variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageResult {
    /// The page's name.
    pub page: String,
    /// The path of its document.
    pub entry: String,
    /// Seconds below which no load can be expected; none when its parts could not be measured.
    pub limit_s: Option<f64>,
    /// The parts of the limit.
    pub limit: Limit,
    /// What each variant did.
    pub variants: Vec<VariantResult>,
}

/// The parts of `limit_s = browser_s + rtt_s + origin_s + bytes ÷ rate`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Limit {
    /// Median load time over link `none` with direct HTTP/2, same browser, same run, in seconds.
    pub browser_s: Option<f64>,
    /// Round trip of the link in seconds.
    pub rtt_s: f64,
    /// The origin's own delay for the document, in seconds.
    pub origin_s: f64,
    /// Bytes of the resources that the browser used, each in its smallest known encoding.
    pub bytes: u64,
}

impl Limit {
    /// The limit over a link of this forward rate; none without `browser_s`.
    pub fn seconds(&self, rate_bit_s: Option<u64>) -> Option<f64> {
        let transfer = rate_bit_s.map_or(0.0, |rate| self.bytes as f64 * 8.0 / rate as f64);
        Some(self.browser_s? + self.rtt_s + self.origin_s + transfer)
    }
}

/// One variant of one page. Numbers that are not a spread are medians over the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantResult {
    /// The variant's name.
    pub name: String,
    /// Loads that count, the stand-in of an unfit variant included.
    pub runs: u32,
    /// Page load time (`loadEventEnd`) in seconds; none when no load counted.
    pub plt_s: Option<Spread>,
    /// First contentful paint in seconds.
    pub fcp_s: Option<Spread>,
    /// First byte of the document in seconds.
    pub ttfb_s: Option<Spread>,
    /// TCP and QUIC connections on the link.
    #[serde(serialize_with = "count")]
    pub connections: f64,
    /// Bytes on the link itself.
    pub link_bytes: Ways,
    /// Packets on the link itself.
    pub link_packets: Ways,
    /// Requests that crossed the link.
    #[serde(serialize_with = "count")]
    pub requests_crossed: f64,
    /// Responses promised unasked.
    #[serde(serialize_with = "count")]
    pub promised: f64,
    /// Promises that answered a request.
    #[serde(serialize_with = "count")]
    pub used: f64,
    /// Body bytes that crossed and that nobody used.
    #[serde(serialize_with = "count")]
    pub wasted_bytes: f64,
    /// The limit for what this variant sends, in seconds: where images come recoded, they count as they come.
    pub limit_s: Option<f64>,
    /// The bytes of that limit.
    pub limit_bytes: u64,
    /// Whether no load was fit to count, the link having been late in each: the least late one stands in, and its numbers
    /// are an indication only.
    pub unfit: bool,
    /// Whether the machine has the program that the variant needs; without it nothing was loaded.
    pub present: bool,
    /// What became of hints, promises and requests, load by load; none for direct variants.
    pub accounts: Vec<Accounts>,
    /// Resources equal to the folder's, in the worst load.
    pub resources_ok: u64,
    /// Resources that were wrong or failed, in the worst load, those left out included.
    pub resources_bad: u64,
    /// When the last resource was there, in seconds: some pages load most files after their load event.
    #[serde(skip)]
    pub last_s: Option<Spread>,
    /// The load in the middle, resource by resource.
    #[serde(skip)]
    pub waterfall: Waterfall,
}

impl VariantResult {
    /// Whether it goes through Farhop.
    pub fn is_farhop(&self) -> bool {
        self.name.starts_with("farhop")
    }
}

/// A number for each way.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Ways {
    /// Gateway to terminal.
    #[serde(serialize_with = "count")]
    pub forward: f64,
    /// Terminal to gateway.
    #[serde(rename = "return", serialize_with = "count")]
    pub return_: f64,
}

/// A median of counts is mostly whole, and then reads as a count does.
fn count<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && (0.0..9e15).contains(value) {
        serializer.serialize_u64(*value as u64)
    } else {
        serializer.serialize_f64(*value)
    }
}

impl PageResult {
    /// The variant of this name.
    pub fn variant(&self, name: &str) -> Option<&VariantResult> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

/// The share of `base`'s median load time that `variant` saves; negative where it is slower.
pub fn saving(base: &VariantResult, variant: &VariantResult) -> Option<f64> {
    ratio(base, variant).map(|times| 1.0 - 1.0 / times)
}

/// The share of `base`'s median load time that would be saved at `variant`'s limit.
pub fn saving_at_limit(base: &VariantResult, variant: &VariantResult) -> Option<f64> {
    let base = base.plt_s?.median;
    (base > 0.0).then_some(1.0 - variant.limit_s? / base)
}

/// How many times faster `variant` is than `base`, by median load time.
pub fn ratio(base: &VariantResult, variant: &VariantResult) -> Option<f64> {
    let (base, variant) = (base.plt_s?.median, variant.plt_s?.median);
    (variant > 0.0).then(|| base / variant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_sum_of_its_parts() {
        let limit = Limit { browser_s: Some(0.5), rtt_s: 0.65, origin_s: 0.1, bytes: 1_000_000 };
        assert_eq!(limit.seconds(Some(8_000_000)), Some(2.25));
        assert_eq!(limit.seconds(None), Some(1.25));
        assert_eq!(Limit { browser_s: None, ..limit }.seconds(None), None);
    }
}
