//! HLS (RFC 8216): a master playlist names renditions, a media playlist the pieces of one.

use std::time::Duration;

use farhop_units::BitRate;

use crate::pick::{Rendition, families, nothing_left_out, pick, without};
use crate::{Left, Limited};

/// Renditions, and pieces of one, beyond which a playlist is not read.
const MOST_RENDITIONS: usize = 1_000;
const MOST_PIECES: usize = 20_000;
/// A piece that is played for longer is none.
const LONGEST_PIECE: f64 = 3_600.0;

/// What a player may need one of: the way of delivery (content steering), what it decodes and shows, whether there is a picture.
type Kind<'a> = (&'a str, Vec<String>, &'a str, bool);

/// The master playlist without what is beyond `most`.
pub(crate) fn limit(text: &str, most: BitRate) -> Result<Limited, Left> {
    let mut lines = lines(text);
    if lines.next().is_none_or(|line| line.words != "#EXTM3U") {
        return Err(Left::NotUnderstood);
    }
    let (mut streams, mut stills) = (Vec::new(), Vec::new());
    let mut begun: Option<Rendition<Kind<'_>>> = None;
    for line in lines {
        if let Some(list) = line.words.strip_prefix("#EXT-X-STREAM-INF:") {
            if begun.is_some() || streams.len() >= MOST_RENDITIONS {
                return Err(Left::NotUnderstood);
            }
            begun = Some(rendition(list, &line)?);
        } else if let Some(list) = line.words.strip_prefix("#EXT-X-I-FRAME-STREAM-INF:") {
            if stills.len() >= MOST_RENDITIONS {
                return Err(Left::NotUnderstood);
            }
            stills.push(rendition(list, &line)?);
        } else if line.words.starts_with("#EXTINF") || line.words.starts_with("#EXT-X-TARGETDURATION") {
            return Err(Left::NoChoice);
        } else if !line.words.is_empty() && !line.words.starts_with('#') {
            // RFC 8216 §4.3.4.2: the line that follows the tag is where the rendition is.
            let mut rendition = begun.take().ok_or(Left::NotUnderstood)?;
            rendition.pieces.push((line.from, line.to));
            streams.push(rendition);
        }
    }
    if begun.is_some() {
        return Err(Left::NotUnderstood);
    }
    if streams.is_empty() {
        return Err(Left::NoChoice);
    }
    let (picked, mut also) = (pick(&streams, most), pick(&stills, most));
    if picked.left_out == 0 {
        return Err(nothing_left_out(&streams, most));
    }
    let mut cut = picked.cut;
    cut.append(&mut also.cut);
    Ok(Limited {
        text: without(text, cut),
        kept: picked.kept,
        left_out: picked.left_out,
        best: BitRate(picked.best),
    })
}

fn rendition<'a>(list: &'a str, line: &Line<'_>) -> Result<Rendition<Kind<'a>>, Left> {
    let list = attributes(list).ok_or(Left::NotUnderstood)?;
    let of = |name: &str| list.iter().find(|(it, _)| *it == name).map(|(_, value)| *value);
    let rate = of("BANDWIDTH").and_then(|rate| rate.parse().ok()).ok_or(Left::NotUnderstood)?;
    let codecs = families(of("CODECS").unwrap_or_default());
    let is_sound = |family: &String| {
        ["mp4a", "ac-3", "ec-3", "ac-4", "opus", "flac", "alac", "mp3"].contains(&family.as_str())
    };
    let has_picture = of("RESOLUTION").is_some() || codecs.is_empty() || !codecs.iter().all(is_sound);
    let kind =
        (of("PATHWAY-ID").unwrap_or_default(), codecs, of("VIDEO-RANGE").unwrap_or_default(), has_picture);
    Ok(Rendition { kind, rate, pieces: vec![(line.from, line.to)] })
}

/// A piece of a rendition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece<'a> {
    pub(crate) uri: &'a str,
    pub(crate) plays: Duration,
    /// Where it is a part of a longer file, so many bytes.
    pub(crate) bytes: Option<u64>,
}

/// The pieces that a media playlist names; none where it is no such playlist.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut lines = lines(text);
    if lines.next().is_none_or(|line| line.words != "#EXTM3U") {
        return Vec::new();
    }
    let (mut pieces, mut plays, mut bytes) = (Vec::new(), None, None);
    for line in lines {
        if let Some(rest) = line.words.strip_prefix("#EXTINF:") {
            let seconds = rest.split(',').next().and_then(|it| it.trim().parse::<f64>().ok());
            plays = seconds.filter(|it| *it > 0.0 && *it <= LONGEST_PIECE).map(Duration::from_secs_f64);
        } else if let Some(rest) = line.words.strip_prefix("#EXT-X-BYTERANGE:") {
            bytes = rest.split('@').next().and_then(|it| it.trim().parse().ok());
        } else if !line.words.is_empty() && !line.words.starts_with('#') {
            if let (Some(plays), false) = (plays.take(), line.words.contains("{$")) {
                pieces.push(Piece { uri: line.words, plays, bytes: bytes.take() });
            }
            if pieces.len() >= MOST_PIECES {
                break;
            }
        }
    }
    pieces
}

/// A line, with where it stands in the text; its end is that of its line break.
struct Line<'a> {
    words: &'a str,
    from: usize,
    to: usize,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut from = 0;
    text.split_inclusive('\n').map(move |whole| {
        let line = Line { words: whole.trim_end_matches(['\n', '\r']), from, to: from + whole.len() };
        from = line.to;
        line
    })
}

/// RFC 8216 §4.2: `NAME=VALUE,NAME="VALUE, TOO"`.
fn attributes(mut list: &str) -> Option<Vec<(&str, &str)>> {
    let mut attributes = Vec::new();
    loop {
        let (name, rest) = list.split_once('=')?;
        let name = name.trim();
        let good = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || !name.bytes().all(good) {
            return None;
        }
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (value, rest) = quoted.split_once('"')?;
                (value, rest.trim_start())
            }
            None => {
                let (value, rest) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                (value.trim(), rest)
            }
        };
        attributes.push((name, value));
        if rest.is_empty() {
            return Some(attributes);
        }
        list = rest.strip_prefix(',')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTER: &str = "#EXTM3U\r
#EXT-X-VERSION:6\r
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"English, plain\",URI=\"audio/en.m3u8\"\r
#EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS=\"avc1.4d401e,mp4a.40.2\",RESOLUTION=640x360\r
low/index.m3u8\r
#EXT-X-STREAM-INF:BANDWIDTH=7680000,AVERAGE-BANDWIDTH=5000000,CODECS=\"avc1.640028,mp4a.40.2\",RESOLUTION=1920x1080\r
# a remark\r
../hi/index.m3u8?x=1\r
#EXT-X-STREAM-INF:BANDWIDTH=65000,CODECS=\"mp4a.40.5\"\r
sound.m3u8\r
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=86000,URI=\"low/i.m3u8\"\r
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=550000,URI=\"hi/i.m3u8\"\r
";

    fn limited(text: &str, kbit: u64) -> Result<(String, usize, usize), Left> {
        let done = limit(text, BitRate::kbit(kbit))?;
        Ok((String::from_utf8(done.text).unwrap(), done.kept, done.left_out))
    }

    #[test]
    fn what_is_beyond_the_limit_goes_and_the_rest_stays_byte_for_byte() {
        let (text, kept, left_out) = limited(MASTER, 2_000).unwrap();
        assert_eq!((kept, left_out), (2, 1));
        let gone = [
            "#EXT-X-STREAM-INF:BANDWIDTH=7680000,AVERAGE-BANDWIDTH=5000000,CODECS=\"avc1.640028,mp4a.40.2\",RESOLUTION=1920x1080\r\n",
            "../hi/index.m3u8?x=1\r\n",
        ];
        let expected = gone.iter().fold(MASTER.to_owned(), |text, gone| text.replace(gone, ""));
        assert_eq!(text, expected);
        assert_eq!(
            limited(MASTER, 400).unwrap().0,
            expected.replace("#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=550000,URI=\"hi/i.m3u8\"\r\n", "")
        );
    }

    #[test]
    fn the_least_of_each_kind_stays_whatever_the_limit() {
        // The picture is not given up for the sound alone.
        assert_eq!(limited(MASTER, 100).unwrap().1, 2);
        assert_eq!(limited(MASTER, 0).unwrap().1, 2);
        let codecs = |codec, rate| format!("#EXT-X-STREAM-INF:BANDWIDTH={rate},CODECS=\"{codec}\"\nx\n");
        let text = format!(
            "#EXTM3U\n{}{}{}{}",
            codecs("hvc1.2.4", 900),
            codecs("hvc1.1.6", 9_000),
            codecs("avc1.4d", 2_000),
            codecs("avc1.64", 8_000)
        );
        let (text, kept, left_out) = limited(&text, 1).unwrap();
        assert_eq!((kept, left_out), (2, 2));
        assert!(text.contains("=900") && text.contains("=2000"), "who knows one of the two has one: {text}");
        let steered = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=5,PATHWAY-ID=\"A\"\na\n#EXT-X-STREAM-INF:BANDWIDTH=9000,PATHWAY-ID=\"B\"\nb\n";
        assert_eq!(limited(steered, 1), Err(Left::Least));
        let twice = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9000\na\n#EXT-X-STREAM-INF:BANDWIDTH=9000\nb\n";
        assert_eq!(limited(twice, 1), Err(Left::Least), "a second place of the same");
    }

    #[test]
    fn what_offers_no_choice_or_is_not_understood_is_left_alone() {
        for (text, left) in [
            (MASTER.replace("7680000", "1"), Left::Fits),
            (MASTER.replace("#EXTM3U", "\u{feff}#EXTM3U"), Left::NotUnderstood),
            (MASTER.replace("BANDWIDTH=7680000", "BANDWIDTH=many"), Left::NotUnderstood),
            (
                MASTER.replace("RESOLUTION=640x360\r\nlow", "RESOLUTION=640x360\r\nlow\r\nlow"),
                Left::NotUnderstood,
            ),
            (MASTER.replace("\"mp4a.40.5\"", "\"mp4a.40.5"), Left::NotUnderstood),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9".into(), Left::NotUnderstood),
            ("#EXTM3U\n#EXTINF:4,\na.ts\n".into(), Left::NoChoice),
            ("#EXTM3U\n".into(), Left::NoChoice),
            ("<html>".into(), Left::NotUnderstood),
            (String::new(), Left::NotUnderstood),
        ] {
            assert_eq!(limited(&text, 2_000), Err(left), "{text}");
        }
    }

    #[test]
    fn pieces_say_how_long_they_play() {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6.006,one\n#EXT-X-BYTERANGE:1000@0\nall.ts\n#EXTINF:4,\n\nb.ts?k=1\n#EXTINF:-1,\nc.ts\n#EXTINF:4,\n{$host}/d.ts\n";
        let found = pieces(text);
        let seconds = |it: &Piece<'_>| (it.uri.to_owned(), it.plays.as_millis(), it.bytes);
        assert_eq!(
            found.iter().map(seconds).collect::<Vec<_>>(),
            [("all.ts".into(), 6006, Some(1000)), ("b.ts?k=1".into(), 4000, None)]
        );
        assert!(pieces(MASTER).is_empty());
    }
}
