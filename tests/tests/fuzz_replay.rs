//! Replays every fuzz corpus through the entry function that its fuzz target calls. A finding, once it lies in
//! `fuzz/corpus/TARGET/`, stays fixed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use farhop_tests::workspace::root;

/// What a fuzz target calls: it panics on what must not be.
type Entry = fn(&[u8]);

/// Each target in `fuzz/fuzz_targets` with its entry.
const TARGETS: &[(&str, Entry)] = &[
    ("capacity", farhop_capacity::fuzz),
    ("consent", farhop_consent::fuzz),
    ("control_request", farhop_control::fuzz_request),
    ("dictionaries", farhop_dictionaries::fuzz),
    ("dns", farhop_dns::fuzz),
    ("fec", farhop_fec::fuzz),
    ("freshness", farhop_freshness::fuzz),
    ("front_chunked", farhop_front::h1::fuzz_chunked_body),
    ("front_frames", farhop_front::fuzz_frames),
    ("front_hello", farhop_front::tls::fuzz_hello),
    ("front_initials", farhop_front::tls::fuzz_initials),
    ("front_request", farhop_front::h1::fuzz_request),
    ("front_response", farhop_front::h1::fuzz_response),
    ("header_compression", farhop_header_compression::fuzz),
    ("htotp_fields", farhop_htotp::fields::shelf::fuzz),
    ("htotp_frames", farhop_htotp::frame::fuzz),
    ("htotp_mux", farhop_htotp::mux::fuzz),
    ("htotp_session", farhop_htotp::session::fuzz),
    ("models", farhop_models::fuzz),
    ("origin_frames", farhop_origin::fuzz_frames),
    ("packets", farhop_packets::fuzz),
    ("page_css", farhop_page::fuzz_css),
    ("page_scan", farhop_page::fuzz_scan),
    ("satellite", farhop_orbit::fuzz_satellite),
    ("settings", farhop_settings::fuzz_settings),
    ("sip", farhop_sip::fuzz),
    ("squeeze_decode", farhop_squeeze::fuzz_decode),
    ("squeeze_hop", farhop_squeeze::fuzz_hop),
    ("squeeze_image", farhop_squeeze::fuzz_image),
    ("streaming", farhop_streaming::fuzz),
];

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = root().join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

#[test]
fn every_corpus_passes() {
    let mut failed = Vec::new();
    for (target, entry) in TARGETS {
        let corpus = files(&format!("fuzz/corpus/{target}"));
        assert!(!corpus.is_empty(), "{target} has no corpus");
        for file in corpus {
            let data = fs::read(&file).expect("a corpus file is readable");
            // So that one finding does not hide the next.
            if std::panic::catch_unwind(|| entry(&data)).is_err() {
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "the entry panicked (reasons above) on {failed:#?}");
}

#[test]
fn every_fuzz_target_is_replayed_and_every_replay_is_a_target() {
    let stems = |folder: &str| -> BTreeSet<String> {
        files(folder).iter().filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect()
    };
    let replayed: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(stems("fuzz/fuzz_targets"), replayed);
    assert_eq!(stems("fuzz/corpus"), replayed);
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("fuzz/ has a manifest");
    for name in &replayed {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml does not build {name}");
    }
}
