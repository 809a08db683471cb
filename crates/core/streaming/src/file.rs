//! How long a file plays, from its beginning: MP4 (ISO/IEC 14496-12) and WebM (RFC 9559).

use std::time::Duration;

/// What plays for longer says nothing true.
const LONGEST: f64 = 7.0 * 24.0 * 3_600.0;

/// How long the file that begins so plays; none where that is not among these bytes.
pub fn play_time(beginning: &[u8]) -> Option<Duration> {
    let seconds = mp4(beginning).or_else(|| webm(beginning))?;
    (seconds > 0.0 && seconds <= LONGEST).then(|| Duration::from_secs_f64(seconds))
}

fn mp4(bytes: &[u8]) -> Option<f64> {
    let movie = boxes(bytes).take(64).find(|(name, _)| name == b"moov")?.1;
    let (_, head) = boxes(movie).take(64).find(|(name, _)| name == b"mvhd")?;
    let (scale, length) = match head.first()? {
        0 => (number(head, 12, 4)?, known(number(head, 16, 4)?, u64::from(u32::MAX))),
        _ => (number(head, 20, 4)?, known(number(head, 24, 8)?, u64::MAX)),
    };
    let length = length.or_else(|| {
        // In fragments: the movie's own length stands elsewhere.
        let (_, extends) = boxes(movie).take(64).find(|(name, _)| name == b"mvex")?;
        let (_, head) = boxes(extends).take(64).find(|(name, _)| name == b"mehd")?;
        known(if head.first()? == &0 { number(head, 4, 4)? } else { number(head, 4, 8)? }, u64::MAX)
    });
    (scale > 0).then_some(length? as f64 / scale as f64)
}

fn known(length: u64, unknown: u64) -> Option<u64> {
    (length > 0 && length != unknown).then_some(length)
}

/// Boxes one after the other, each with what of its content is here.
fn boxes(mut rest: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let name: [u8; 4] = rest.get(4..8)?.try_into().ok()?;
        let (head, size) = match number(rest, 0, 4)? {
            1 => (16, number(rest, 8, 8)?),
            0 => (8, rest.len() as u64),
            size => (8, size),
        };
        let size = usize::try_from(size).ok().filter(|size| *size >= head)?.min(rest.len());
        let content = rest.get(head..size)?;
        rest = &rest[size..];
        Some((name, content))
    })
}

fn webm(bytes: &[u8]) -> Option<f64> {
    let mut top = elements(bytes);
    top.next().filter(|(id, _)| *id == 0x1a45_dfa3)?;
    let segment = top.next().filter(|(id, _)| *id == 0x1853_8067)?.1;
    let information = elements(segment).take(64).find(|(id, _)| *id == 0x1549_a966)?.1;
    let of = |wanted: u64| elements(information).take(64).find(|(id, _)| *id == wanted).map(|(_, it)| it);
    let scale = of(0x2a_d7b1).and_then(|it| number(it, 0, it.len())).unwrap_or(1_000_000);
    let length = of(0x4489)?;
    let length = match length.len() {
        4 => f64::from(f32::from_be_bytes(length.try_into().ok()?)),
        8 => f64::from_be_bytes(length.try_into().ok()?),
        _ => return None,
    };
    Some(length * scale as f64 / 1e9)
}

/// Elements of EBML (RFC 8794) one after the other, each with what of its content is here.
fn elements(mut rest: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let id_bytes = rest.first()?.leading_zeros() as usize + 1;
        if id_bytes > 4 {
            return None;
        }
        let id = number(rest, 0, id_bytes)?;
        let size_bytes = rest.get(id_bytes)?.leading_zeros() as usize + 1;
        if size_bytes > 8 {
            return None;
        }
        let size = number(rest, id_bytes, size_bytes)? & !(1u64 << (7 * size_bytes));
        let unknown = (1u64 << (7 * size_bytes)) - 1;
        let head = id_bytes + size_bytes;
        let all = rest.len() - head;
        let size = if size == unknown { all } else { usize::try_from(size).unwrap_or(all).min(all) };
        let content = &rest[head..head + size];
        rest = &rest[head + size..];
        Some((id, content))
    })
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?).filter(|_| length <= 8)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32 + 8).to_be_bytes()[..], name, content].concat()
    }

    fn header(scale: u32, length: u32) -> Vec<u8> {
        boxed(b"mvhd", &[&[0; 12][..], &scale.to_be_bytes(), &length.to_be_bytes(), &[0; 80]].concat())
    }

    fn movie(content: &[u8]) -> Vec<u8> {
        [boxed(b"ftyp", b"isom\0\0\0\0"), boxed(b"moov", content), b"\0\0\0\x10mdat".to_vec()].concat()
    }

    #[test]
    fn a_film_says_how_long_it_is_where_its_head_comes_first() {
        let minute = Some(Duration::from_secs(60));
        assert_eq!(play_time(&movie(&header(1000, 60_000))), minute);
        let fragments = boxed(b"mvex", &boxed(b"mehd", &[&[0; 4][..], &60_000u32.to_be_bytes()].concat()));
        assert_eq!(play_time(&movie(&[header(1000, 0), fragments].concat())), minute);
        let long = [&[1][..], &[0; 19], &90_000u32.to_be_bytes(), &5_400_000u64.to_be_bytes()].concat();
        assert_eq!(play_time(&movie(&boxed(b"mvhd", &long))), minute);
        assert_eq!(play_time(&movie(&header(0, 60_000))), None);
        assert_eq!(play_time(&movie(&header(1000, u32::MAX))), None);
        let last = [boxed(b"ftyp", b"isom"), b"\0\x10\0\0mdat....".to_vec()].concat();
        assert_eq!(play_time(&last), None);
    }

    #[test]
    fn so_does_webm() {
        let information =
            [&[0x2a, 0xd7, 0xb1, 0x83, 0x0f, 0x42, 0x40, 0x44, 0x89, 0x84][..], &60_000f32.to_be_bytes()]
                .concat();
        let whole = [
            &[
                0x1a, 0x45, 0xdf, 0xa3, 0x80, 0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff,
                0xff, 0xff,
            ][..],
            &[0xec, 0x82, 0, 0, 0x15, 0x49, 0xa9, 0x66, 0x80 | information.len() as u8],
            &information,
        ]
        .concat();
        assert_eq!(play_time(&whole), Some(Duration::from_secs(60)));
        for end in 0..whole.len() - 1 {
            assert_eq!(play_time(&whole[..end]), None, "{end}");
        }
    }
}
