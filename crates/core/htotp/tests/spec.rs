//! Holds docs/htotp.md to the code: every example decodes to what stands beside it and is written again in the
//! same bytes, every frame has one, and the tables are the code's. `FARHOP_UPDATE_DOCS=1` writes the tables anew.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;
use farhop_htotp::fields::{Line, Lines, SectionError, SectionLimit, codec, dictionary, huffman};
use farhop_htotp::frame::{Frame, FrameError, FrameReader, kind};
use farhop_htotp::mux::{self, MuxError};

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/htotp.md"))
}

fn document() -> String {
    std::fs::read_to_string(path()).expect("the specification is part of the repository")
}

/// The lines of each fenced block of a kind.
fn blocks<'a>(document: &'a str, kind: &str) -> Vec<Vec<&'a str>> {
    let opening = format!("```{kind}\n");
    let inside = |rest: &'a str| rest.split("\n```").next().unwrap_or_default().lines().collect();
    let found: Vec<_> = document.split(opening.as_str()).skip(1).map(inside).collect();
    assert!(!found.is_empty(), "no example of a {kind}");
    found
}

fn unhex(line: &str) -> Bytes {
    let byte = |two: &str| u8::from_str_radix(two, 16).unwrap_or_else(|_| panic!("{two:?} is no byte"));
    line.split(' ').map(byte).collect()
}

fn lines(block: &[&str]) -> Lines {
    let line = |text: &&str| {
        let end = 1 + text[1..].find(':').unwrap_or_else(|| panic!("{text:?} is no line"));
        Line::new(&text[..end], text[end + 1..].trim_start())
    };
    Lines(block.iter().map(line).collect())
}

#[test]
fn every_frame_has_an_example_that_decodes_as_written_and_is_written_as_it_stands() {
    let text = document();
    let mut shown = BTreeSet::new();
    for block in blocks(&text, "frame") {
        let [hex, meaning] = block[..] else { panic!("bytes and meaning, not {block:?}") };
        let bytes = unhex(hex);
        let mut rest = bytes.clone();
        let frame = FrameReader::default().next(&mut rest).expect(hex).expect("a whole frame");
        assert!(rest.is_empty(), "{hex} has more than a frame");
        assert_eq!(format!("{frame:?}"), meaning);
        let again = match &frame {
            Frame::Data(body) => [&farhop_htotp::frame::data_header(body.len())[..], body].concat().into(),
            _ => frame.encode(),
        };
        assert_eq!(again, bytes, "{meaning}");
        shown.insert(frame.kind());
    }
    for (number, name) in kind::ALL {
        assert!(shown.contains(number), "{name} has no example");
        let heading = text
            .lines()
            .any(|line| line.starts_with("### ") && line.contains(&format!("`{name}` {number:#04x}")));
        assert!(heading, "no heading names {name} with {number:#04x}");
    }
}

#[test]
fn every_frame_of_a_lane_has_an_example_that_decodes_as_written_and_is_written_as_it_stands() {
    let text = document();
    let mut shown = BTreeSet::new();
    for block in blocks(&text, "lane") {
        let [hex, meaning] = block[..] else { panic!("bytes and meaning, not {block:?}") };
        let bytes = unhex(hex);
        let mut reader = mux::FrameReader::default();
        reader.push(&bytes);
        let frame = reader.take().expect(hex).expect("a whole frame");
        assert!(reader.into_rest().is_empty(), "{hex} has more than a frame");
        assert_eq!(format!("{frame:?}"), meaning);
        assert_eq!(frame.encode(), bytes, "{meaning}");
        shown.insert(frame.kind());
    }
    for (number, name) in mux::kind::ALL {
        assert!(shown.contains(number), "{name} has no example");
        let heading = format!("`{name}` {number:#04x}");
        assert!(text.lines().any(|line| line.starts_with("### ") && line.contains(&heading)), "{heading}");
    }
    let errors = [
        MuxError::UnknownCritical(0x3f),
        MuxError::TooLong(mux::kind::DATA),
        MuxError::Malformed(mux::kind::DATA),
        MuxError::Misplaced(mux::kind::DATA),
        MuxError::Overrun,
        MuxError::TooManyStreams,
    ];
    assert_eq!(blocks(&text, "lane-errors")[0], errors.map(|error| error.to_string()));
}

#[test]
fn examples_of_sections_decode_as_written_and_are_written_as_they_stand() {
    for block in blocks(&document(), "section") {
        let at = |word: &str| block.iter().position(|line| *line == word).expect(word);
        let (bytes, after) = (at("bytes"), at("lines"));
        let reference = if block[0] == "against" { lines(&block[1..bytes]) } else { Lines::default() };
        let (hex, section) = (unhex(&block[bytes + 1..after].join(" ")), lines(&block[after + 1..]));
        assert_eq!(codec::decode(hex.clone(), &reference, SectionLimit::default()), Ok(section.clone()));
        let mut written = Vec::new();
        codec::encode(&section, &reference, &mut written);
        assert_eq!(written, hex);
    }
}

#[test]
fn the_sections_in_examples_of_frames_are_sections() {
    let text = document();
    let mut base = Lines::default();
    for block in blocks(&text, "frame") {
        let mut bytes = unhex(block[0]);
        let Ok(Some(frame)) = FrameReader::default().next(&mut bytes) else { panic!("{block:?}") };
        let (section, against) = match frame {
            Frame::Request { section, .. } => (section, Lines::default()),
            Frame::Promise { section, .. } => (section, base.clone()),
            Frame::Response { section, .. } | Frame::Informational(section) | Frame::Trailers(section) => {
                (section, Lines::default())
            }
            _ => continue,
        };
        // Header, and the id where the section is to be kept: one byte each in the examples.
        let begin = 1 + usize::from(section[0] & 1);
        base = match codec::decode(section.slice(begin..), &against, SectionLimit::default()) {
            Ok(lines) if lines.0[0].name == ":method" => lines,
            Ok(_) => base,
            Err(error) => panic!("{block:?}: {error}"),
        };
    }
}

#[test]
fn the_example_of_the_string_code_decodes() {
    for block in blocks(&document(), "string") {
        let bytes = unhex(block[0]);
        assert_eq!(huffman::decode(&bytes).as_deref(), Some(block[1].as_bytes()));
        let mut written = Vec::new();
        huffman::encode(block[1].as_bytes(), &mut written);
        assert_eq!(written, bytes);
    }
}

#[test]
fn every_reason_to_end_the_carrier_is_in_the_list() {
    let frames = [
        FrameError::UnknownCritical(0x3f),
        FrameError::TooLong(kind::REQUEST),
        FrameError::Malformed(kind::REQUEST),
        FrameError::Misplaced(kind::DATA),
        FrameError::Truncated,
        FrameError::Version,
        FrameError::Unfinished,
        FrameError::Unread,
    ];
    let sections = [
        SectionError::Truncated,
        SectionError::NoSuchLine,
        SectionError::NoSuchSection,
        SectionError::CannotKeep,
        SectionError::BadPatch,
        SectionError::BadString,
        SectionError::TooLarge,
    ];
    let all = frames.into_iter().chain(sections.map(FrameError::Section));
    let said: Vec<String> = all.map(|error| error.to_string()).collect();
    assert_eq!(blocks(&document(), "errors")[0], said);
}

/// What the document says after its heading "Tables".
fn tables() -> String {
    let mut out = String::from(
        "### Lengths of the string code\n\nIn bits, for byte values 0 to 255, sixteen a line.\n\n```text\n",
    );
    for row in huffman::LENGTHS.chunks(16) {
        out += &row.iter().map(|length| format!("{length:2}")).collect::<Vec<_>>().join(" ");
        out.push('\n');
    }
    out += "```\n\n### Dictionary\n\nNumber, name, value; an empty value stands for values that vary.\n\n```text\n";
    for (number, (name, value)) in dictionary::LINES.iter().enumerate() {
        out += format!("{number} {name}: {value}").trim_end();
        out.push('\n');
    }
    out + "```\n"
}

#[test]
fn the_tables_are_the_codes() {
    const MARK: &str = "--test spec`.\n\n";
    let text = document();
    let (before, stands) = text.split_once(MARK).expect("the mark before the tables");
    let expected = tables();
    if std::env::var_os("FARHOP_UPDATE_DOCS").is_some() {
        std::fs::write(path(), format!("{before}{MARK}{expected}")).expect("docs/ is writable");
        return;
    }
    assert!(stands == expected, "write the tables of docs/htotp.md anew with FARHOP_UPDATE_DOCS=1");
}
