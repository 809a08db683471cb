//! Recorded bytes keep decoding: each file of `recorded/` is a whole session as it crossed a carrier, and what
//! each end heard. A recording is never changed; a new version gets one of its own, made by
//! `FARHOP_RECORD=NAME cargo test -p farhop-htotp --test recorded`.

mod recording;

use std::path::{Path, PathBuf};

use recording::replay;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

#[test]
fn recorded_sessions_say_today_what_they_said_then() {
    if let Some(name) = std::env::var_os("FARHOP_RECORD") {
        let file = folder().join(name).with_extension("session");
        assert!(!file.exists(), "{} stands; recordings are not made anew", file.display());
        std::fs::write(file, recording::record()).expect("the folder is writable");
    }
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).expect("recordings are part of the repository") {
        let file = entry.expect("a readable folder").path();
        let text = std::fs::read_to_string(&file).expect("a recording is text");
        let (wire, heard) = text.split_once("\n\n").expect("an empty line after the bytes");
        let now = replay(wire);
        let differs = now.lines().zip(heard.lines()).find(|(now, then)| now != then);
        assert!(now == heard, "{}: {differs:?}", file.display());
        count += 1;
    }
    assert!(count > 0, "no recordings");
}

/// The script of the next recording still holds every kind of frame.
#[test]
fn a_recording_has_every_kind_of_frame() {
    let kinds = recording::kinds(&recording::record());
    for (kind, name) in farhop_htotp::frame::kind::ALL {
        assert!(kinds.contains(kind), "no {name}");
    }
}
