//! The tables and keys of a plan's file. Unknown ones are refused.

use serde::Deserialize;
use serde_spanned::Spanned;

/// A text, a number or a whole number, and where it stands.
pub(crate) type Text = Spanned<String>;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    pub(crate) title: String,
    pub(crate) study: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) timeout: Option<Text>,
    pub(crate) goal: Option<Text>,
    pub(crate) base: Option<Text>,
    #[serde(default)]
    pub(crate) measures: Vec<Text>,
    pub(crate) runs: Option<Spanned<Runs>>,
    pub(crate) quick: Option<Spanned<Quick>>,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    #[serde(default)]
    pub(crate) page: Vec<Spanned<Page>>,
    #[serde(default)]
    pub(crate) link: Vec<Spanned<Link>>,
    #[serde(default)]
    pub(crate) variant: Vec<Spanned<Variant>>,
    #[serde(default)]
    pub(crate) plot: Vec<Spanned<Plot>>,
    #[serde(default)]
    pub(crate) claim: Vec<Spanned<Claim>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Runs {
    pub(crate) least: u32,
    pub(crate) most: u32,
    pub(crate) within: Text,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quick {
    pub(crate) runs: u32,
    #[serde(default)]
    pub(crate) pages: Vec<Text>,
    #[serde(default)]
    pub(crate) links: Vec<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    pub(crate) name: Text,
    pub(crate) at: Option<f64>,
    pub(crate) group: Option<String>,
    pub(crate) objects: Option<u32>,
    pub(crate) object: Option<Text>,
    pub(crate) document: Option<Text>,
    pub(crate) upload: Option<Text>,
    pub(crate) recording: Option<Text>,
    pub(crate) folder: Option<Text>,
    pub(crate) entry: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Link {
    pub(crate) name: Text,
    pub(crate) at: Option<f64>,
    pub(crate) like: Option<Text>,
    pub(crate) file: Option<Text>,
    pub(crate) rate: Option<Text>,
    pub(crate) return_rate: Option<Text>,
    pub(crate) delay: Option<Text>,
    pub(crate) loss: Option<Text>,
    pub(crate) terrestrial_loss: Option<Text>,
    pub(crate) terminals: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub(crate) name: Text,
    pub(crate) at: Option<f64>,
    pub(crate) line: Option<String>,
    pub(crate) through: Option<Text>,
    pub(crate) pep: Option<Text>,
    pub(crate) protocol: Option<Text>,
    pub(crate) handshake: Option<Text>,
    pub(crate) connections: Option<usize>,
    pub(crate) pipeline: Option<usize>,
    pub(crate) retry: Option<Text>,
    pub(crate) receive_buffer: Option<Text>,
    pub(crate) fast_open: Option<bool>,
    pub(crate) streams: Option<usize>,
    pub(crate) idle: Option<Text>,
    pub(crate) push: Option<Text>,
    pub(crate) pushes: Option<Text>,
    pub(crate) own_server: Option<bool>,
    pub(crate) client: Option<Text>,
    pub(crate) vpn: Option<bool>,
    pub(crate) users: Option<u8>,
    pub(crate) initial_window: Option<u32>,
    pub(crate) server_congestion: Option<Text>,
    pub(crate) carrier: Option<Text>,
    pub(crate) tcp_connections: Option<u32>,
    pub(crate) tcp_congestion: Option<Text>,
    pub(crate) carrier_window: Option<u32>,
    pub(crate) congestion: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    #[serde(default)]
    pub(crate) figure: String,
    /// Where in the study it stands.
    #[serde(default)]
    pub(crate) place: String,
    pub(crate) title: String,
    pub(crate) measure: Option<Text>,
    pub(crate) statistic: Option<Text>,
    pub(crate) x: Text,
    /// The links that are drawn; all unless said.
    #[serde(default)]
    pub(crate) links: Vec<Text>,
    /// The variants that are drawn; all unless said.
    #[serde(default)]
    pub(crate) variants: Vec<Text>,
    #[serde(default)]
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) found: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    #[serde(default)]
    pub(crate) figure: String,
    pub(crate) says: String,
    pub(crate) measure: Text,
    pub(crate) variant: Text,
    pub(crate) against: Option<Text>,
    /// The variant as a multiple of the other.
    pub(crate) times: Option<f64>,
    pub(crate) direction: Option<Text>,
    #[serde(default)]
    pub(crate) pages: Vec<Text>,
    #[serde(default)]
    pub(crate) links: Vec<Text>,
    /// Another link over which what it is compared with is loaded.
    pub(crate) against_link: Option<Text>,
    #[serde(default)]
    pub(crate) why: String,
}
