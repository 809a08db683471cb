//! The bytes of DESIGN.md's limit: what must cross at least, each resource in its smallest known encoding. Pure but for
//! large files, which it reads.

use std::collections::HashMap;
use std::io::Write;

use farhop_workload::origins::media::is_text;
use farhop_workload::origins::site::Asset;

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
