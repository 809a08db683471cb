//! The parts of DESIGN.md's limit, above all its bytes: what must cross at least, each resource in its smallest known
//! encoding. Pure.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use farhop_orbit::Profile;
use farhop_report::{Limit, Spread};
use farhop_workload::origins::media::is_text;
use farhop_workload::origins::site::Asset;
use farhop_workload::pages::Page;

use crate::load::Measured;

/// The limit of a page, and what it was made of.
pub(crate) struct PageLimit {
    /// The parts for what is sent as it is.
    pub(crate) parts: Limit,
    used: Vec<Arc<Asset>>,
}

impl PageLimit {
    /// The limit by loads over link `none`, with direct HTTP/2.
    pub(crate) fn of(
        reference: &[Measured],
        page: &Page,
        profile: &Profile,
        smallest: &mut Smallest,
    ) -> PageLimit {
        let used = used(reference.iter().flat_map(|load| &load.checked.used));
        let parts = Limit {
            browser_s: Spread::of(reference.iter().filter_map(|load| load.plt_s)).map(|spread| spread.median),
            rtt_s: profile.rtt().as_secs_f64(),
            origin_s: page.sites.first().map_or(0.0, |site| site.delay.as_secs_f64()),
            bytes: used.iter().map(|asset| smallest.size(asset)).sum(),
        };
        PageLimit { parts, used }
    }

    /// The same with images as these loads had them: a lossy variant's own limit.
    pub(crate) fn recoded(&self, loads: &[Measured], smallest: &mut Smallest) -> Limit {
        let mut recoded: HashMap<&PathBuf, u64> = HashMap::new();
        for (path, bytes) in loads.iter().flat_map(|load| &load.checked.recoded) {
            recoded.entry(path).and_modify(|known| *known = (*known).min(*bytes)).or_insert(*bytes);
        }
        let size = |asset: &Arc<Asset>| recoded.get(&asset.path).copied().unwrap_or(u64::MAX);
        let bytes = self.used.iter().map(|asset| smallest.size(asset).min(size(asset))).sum();
        Limit { bytes, ..self.parts.clone() }
    }
}

/// Each of the files that loads used, once.
pub(crate) fn used<'a>(loads: impl Iterator<Item = &'a Arc<Asset>>) -> Vec<Arc<Asset>> {
    let mut used: Vec<Arc<Asset>> = Vec::new();
    for asset in loads {
        if !used.iter().any(|known| known.path == asset.path) {
            used.push(Arc::clone(asset));
        }
    }
    used
}

/// Sizes already found, by content hash: the best codings take their time.
#[derive(Debug, Default)]
pub(crate) struct Smallest(HashMap<String, u64>);

impl Smallest {
    /// The size of the smallest known encoding of a file, in bytes: brotli 11 or zstd 19 for text, else as it is.
    pub(crate) fn size(&mut self, asset: &Asset) -> u64 {
        if let Some(known) = self.0.get(&asset.sha256) {
            return *known;
        }
        let coded =
            asset.held.as_ref().filter(|_| is_text(asset.media_type)).and_then(|bytes| smallest(bytes));
        let size = coded.map_or(asset.len, |coded| coded.min(asset.len));
        self.0.insert(asset.sha256.clone(), size);
        size
    }
}

fn smallest(bytes: &[u8]) -> Option<u64> {
    // Window of 2^24: the largest that browsers must take (RFC 7932 §9.1).
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 64 << 10, 11, 24);
    brotli.write_all(bytes).ok()?;
    let brotli = brotli.into_inner().len() as u64;
    let zstd = zstd::bulk::compress(bytes, 19).ok()?.len() as u64;
    Some(brotli.min(zstd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_workload::origins::site::{Found, Site};

    #[test]
    fn a_variants_own_limit_has_images_as_they_came_and_nothing_larger_than_it_was() {
        let folder = tempfile::tempdir().unwrap();
        for (name, len) in [("a.jpg", 1000), ("b.jpg", 500)] {
            std::fs::write(folder.path().join(name), vec![7; len]).unwrap();
        }
        let site = Site::open(folder.path()).unwrap();
        let asset = |path: &str| match site.find(path).unwrap() {
            Found::File(asset) => asset,
            other => panic!("{other:?}"),
        };
        let (a, b) = (asset("/a.jpg"), asset("/b.jpg"));
        let mut reference = Measured::sample(0.5, 2, 0);
        reference.checked.used = vec![a.clone(), b.clone()];
        let page = Page { name: "p".into(), entry: "/".into(), sites: Vec::new() };
        let profile = Profile::named("geo-2m").unwrap();
        let mut smallest = Smallest::default();
        let limit = PageLimit::of(&[reference], &page, &profile, &mut smallest);
        assert_eq!((limit.parts.bytes, limit.parts.browser_s, limit.parts.rtt_s), (1500, Some(0.5), 0.6));
        let recoded = |sizes: &[(&Arc<Asset>, u64)]| {
            let mut load = Measured::sample(1.0, 2, 0);
            load.checked.recoded = sizes.iter().map(|(asset, size)| (asset.path.clone(), *size)).collect();
            load
        };
        let loads = [recoded(&[(&a, 400)]), recoded(&[(&a, 300), (&b, 900)])];
        assert_eq!(limit.recoded(&loads, &mut smallest).bytes, 300 + 500);
        assert_eq!(limit.recoded(&[], &mut smallest), limit.parts);
    }

    #[test]
    fn text_counts_at_its_best_coding_and_all_else_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let text = "a line that repeats itself\n".repeat(200);
        for name in ["t.css", "t.jpg"] {
            std::fs::write(folder.path().join(name), &text).unwrap();
        }
        std::fs::write(folder.path().join("tiny.css"), "a").unwrap();
        let site = Site::open(folder.path()).unwrap();
        let size = |path: &str| match site.find(path).unwrap() {
            Found::File(asset) => Smallest::default().size(&asset),
            other => panic!("{other:?}"),
        };
        assert!((10..60).contains(&size("/t.css")), "{}", size("/t.css"));
        assert_eq!(size("/t.jpg"), text.len() as u64);
        assert_eq!(size("/tiny.css"), 1);
    }
}
