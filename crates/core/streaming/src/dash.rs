//! DASH (ISO/IEC 23009-1): a media presentation names renditions (`Representation`) in sets of which a player takes one each.

use farhop_units::BitRate;

use crate::pick::{Rendition, families, nothing_left_out, pick, without};
use crate::xml::{Event, Reader};
use crate::{Left, Limited};

/// Renditions beyond which a manifest is not read.
const MOST_RENDITIONS: usize = 2_000;

/// What a rendition says, or its set for it.
#[derive(Debug, Clone, Default)]
struct Said<'a> {
    media: &'a str,
    codecs: &'a str,
    /// Where its pieces are, from the outermost `BaseURL` inwards.
    bases: Vec<&'a str>,
    /// How their names are made.
    template: &'a str,
    is_picture: bool,
    is_sound: bool,
}

impl<'a> Said<'a> {
    /// What it says besides what it was said before.
    fn and(&self, attributes: &[(&'a str, &'a str)]) -> Said<'a> {
        let mut said = self.clone();
        for (name, value) in attributes {
            match *name {
                "mimeType" | "contentType" => said.media = value,
                "codecs" => said.codecs = value,
                "width" | "maxWidth" => said.is_picture = true,
                "audioSamplingRate" => said.is_sound = true,
                _ => {}
            }
        }
        said.is_picture |= said.media.starts_with("video");
        said.is_sound |= said.media.starts_with("audio");
        said
    }
}

/// A rendition as the manifest has it.
struct Representation<'a> {
    id: &'a str,
    rate: u64,
    said: Said<'a>,
    /// It adds to others.
    depends: bool,
    set: usize,
    period: usize,
    from: usize,
    to: usize,
}

/// The manifest without pictures beyond `most`, less what the least of the sound takes.
pub(crate) fn limit(text: &str, most: BitRate) -> Result<Limited, Left> {
    let all = representations(text)?;
    let (mut cut, mut kept, mut left_out, mut best) = (Vec::new(), 0, 0, 0);
    let mut why = None;
    let mut choice = false;
    for (period, sets) in grouped(&all) {
        let sound = sound_of(&all, period);
        let most = BitRate(most.0.saturating_sub(sound));
        for set in sets {
            let its: Vec<&Representation<'_>> = all.iter().filter(|it| it.set == set).collect();
            choice |= its.len() > 1;
            let is_picture = its.iter().all(|it| it.said.is_picture);
            if !is_picture || its.iter().any(|it| it.depends) {
                kept += its.len();
                continue;
            }
            let renditions: Vec<Rendition<Vec<String>>> = its
                .iter()
                .map(|it| Rendition {
                    kind: families(it.said.codecs),
                    rate: it.rate,
                    pieces: vec![(it.from, it.to)],
                })
                .collect();
            let picked = pick(&renditions, most);
            if picked.left_out == 0 && why != Some(Left::Least) {
                why = Some(nothing_left_out(&renditions, most));
            }
            cut.extend(picked.cut);
            kept += picked.kept;
            left_out += picked.left_out;
            best = best.max(picked.best);
        }
    }
    if left_out == 0 {
        return Err(if choice { why.unwrap_or(Left::NoChoice) } else { Left::NoChoice });
    }
    Ok(Limited { text: without(text, cut), kept, left_out, best: BitRate(best) })
}

/// The sets of each period.
fn grouped(all: &[Representation<'_>]) -> Vec<(usize, Vec<usize>)> {
    let mut periods: Vec<(usize, Vec<usize>)> = Vec::new();
    for it in all {
        match periods.last_mut().filter(|(period, _)| *period == it.period) {
            Some((_, sets)) if sets.last() == Some(&it.set) => {}
            Some((_, sets)) => sets.push(it.set),
            None => periods.push((it.period, vec![it.set])),
        }
    }
    periods
}

/// What the least of a period's sound takes of the link beside the picture.
fn sound_of(all: &[Representation<'_>], period: usize) -> u64 {
    let sound = all.iter().filter(|it| it.period == period && it.said.is_sound && !it.said.is_picture);
    sound.map(|it| it.rate).min().unwrap_or(0)
}

/// Where pieces of a rendition are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pieces {
    pub(crate) rate: u64,
    /// Relative to the manifest's URL, from the outermost inwards; of each the first that is given counts.
    pub(crate) bases: Vec<String>,
    /// What the names of pieces begin and end with; both empty where the last base is all of it.
    pub(crate) begins: String,
    pub(crate) ends: String,
}

/// Where the pieces of each rendition are, as far as templates and base URLs say.
pub(crate) fn pieces(text: &str) -> Vec<Pieces> {
    let all = representations(text).unwrap_or_default();
    let named = all.iter().filter_map(|it| {
        let template = it
            .said
            .template
            .replace("$RepresentationID$", it.id)
            .replace("$Bandwidth$", &it.rate.to_string());
        let (begins, ends) = match (template.find('$'), template.rfind('$')) {
            (Some(first), Some(last)) if first < last => (&template[..first], &template[last + 1..]),
            (None, None) => (template.as_str(), ""),
            _ => return None,
        };
        let bases: Vec<String> = it.said.bases.iter().map(ToString::to_string).collect();
        let is_told = !template.is_empty() || !bases.is_empty();
        let (begins, ends) = (begins.to_owned(), ends.to_owned());
        is_told.then_some(Pieces { rate: it.rate, bases, begins, ends })
    });
    named.collect()
}

fn representations(text: &str) -> Result<Vec<Representation<'_>>, Left> {
    let mut reader = Reader::new(text);
    let mut found: Vec<Representation<'_>> = Vec::new();
    // What holds within the elements that are open: one for each.
    let mut open: Vec<Level<'_>> = Vec::new();
    let (mut begun, mut set, mut period) = (None::<Representation<'_>>, 0, 0);
    while let Some(event) = reader.next().map_err(|_| Left::NotUnderstood)? {
        match event {
            Event::Start { name, attributes, closed, from, to } => {
                if open.is_empty() && name != "MPD" {
                    return Err(Left::NotUnderstood);
                }
                let said = open.last().map_or_else(Said::default, |level| level.said.clone());
                let said = match name {
                    "Signature" => return Err(Left::Signed),
                    "EncryptedData" => return Err(Left::Encrypted),
                    "PatchLocation" => return Err(Left::Patched),
                    "Period" => {
                        period += 1;
                        said.and(&attributes)
                    }
                    "AdaptationSet" => {
                        set += 1;
                        said.and(&attributes)
                    }
                    "Representation" => {
                        let is_nested = begun.is_some() || !open.iter().any(|it| it.name == "AdaptationSet");
                        if is_nested || found.len() >= MOST_RENDITIONS {
                            return Err(Left::NotUnderstood);
                        }
                        let said = said.and(&attributes);
                        let of =
                            |name: &str| attributes.iter().find(|(it, _)| *it == name).map(|(_, it)| *it);
                        let rate = of("bandwidth").and_then(|rate| rate.parse().ok());
                        let rate = rate.ok_or(Left::NotUnderstood)?;
                        let depends = of("dependencyId").or_else(|| of("associationId")).is_some();
                        let id = of("id").unwrap_or_default();
                        let it =
                            Representation { id, rate, said: said.clone(), depends, set, period, from, to };
                        if closed {
                            found.push(it);
                        } else {
                            begun = Some(it);
                        }
                        said
                    }
                    "SegmentTemplate" => {
                        let media = attributes.iter().find(|(it, _)| *it == "media").map(|(_, it)| *it);
                        within(&mut open, &mut begun, |said| said.template = media.unwrap_or(said.template));
                        said
                    }
                    _ => said,
                };
                if !closed {
                    open.push(Level { name, said, has_base: false });
                }
            }
            Event::End { name, to } => {
                open.pop();
                if name == "Representation"
                    && let Some(mut it) = begun.take()
                {
                    it.to = to;
                    found.push(it);
                }
            }
            Event::Text(text) if open.last().is_some_and(|it| it.name == "BaseURL") => {
                let base = open.pop();
                // Of several at one place the first counts: the others are the same elsewhere.
                let is_first = open.last_mut().is_some_and(|it| !std::mem::replace(&mut it.has_base, true));
                if is_first && !text.trim().is_empty() {
                    within(&mut open, &mut begun, |said| said.bases.push(text.trim()));
                }
                open.extend(base);
            }
            Event::Text(_) => {}
        }
    }
    if open.is_empty() { Ok(found) } else { Err(Left::NotUnderstood) }
}

/// An element that is open, and what holds within it.
struct Level<'a> {
    name: &'a str,
    said: Said<'a>,
    has_base: bool,
}

/// Tells something to the innermost element that is open, and to the rendition where it is that.
fn within<'a>(
    open: &mut [Level<'a>],
    begun: &mut Option<Representation<'a>>,
    mut tell: impl FnMut(&mut Said<'a>),
) {
    let Some(level) = open.last_mut() else { return };
    tell(&mut level.said);
    if level.name == "Representation"
        && let Some(begun) = begun
    {
        tell(&mut begun.said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MPD: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT60S">
  <BaseURL>media/</BaseURL><BaseURL>elsewhere/</BaseURL>
  <Period id="1">
    <AdaptationSet contentType="video" maxWidth="1920">
      <SegmentTemplate media="v-$RepresentationID$-$Number%05d$.m4s" initialization="v-$RepresentationID$.mp4" duration="4"/>
      <Representation id="lo" bandwidth="600000" codecs="avc1.4d401e" width="640"/>
      <Representation id="hi" bandwidth="6000000" codecs="avc1.640028" width="1920"><!-- </Representation> --><Label>x</Label></Representation>
    </AdaptationSet>
    <AdaptationSet mimeType="audio/mp4">
      <Representation id="a" bandwidth="128000" codecs="mp4a.40.2"><BaseURL>sound.mp4</BaseURL></Representation>
      <Representation id="b" bandwidth="9000000" codecs="mp4a.40.2"/>
    </AdaptationSet>
  </Period>
</MPD>
"#;

    fn limited(text: &str, kbit: u64) -> Result<(String, usize, usize), Left> {
        let done = limit(text, BitRate::kbit(kbit))?;
        Ok((String::from_utf8(done.text).unwrap(), done.kept, done.left_out))
    }

    #[test]
    fn pictures_beyond_the_limit_go_and_the_rest_stays_byte_for_byte() {
        let gone = "<Representation id=\"hi\" bandwidth=\"6000000\" codecs=\"avc1.640028\" width=\"1920\"><!-- </Representation> --><Label>x</Label></Representation>";
        let expected = MPD.replace(gone, "");
        assert_eq!(limited(MPD, 2_000), Ok((expected.clone(), 3, 1)));
        assert_eq!(limited(MPD, 1), Ok((expected, 3, 1)), "the least stays");
        // What the sound takes is not there for the picture.
        assert_eq!(limited(MPD, 6_127).map(|it| it.2), Ok(1));
        assert_eq!(limited(MPD, 6_128), Err(Left::Fits));
    }

    #[test]
    fn what_is_signed_encrypted_told_by_place_or_not_understood_is_left_alone() {
        for (text, left) in [
            (MPD.replace("<BaseURL>media/", "<ds:Signature>x</ds:Signature><BaseURL>media/"), Left::Signed),
            (MPD.replace("<BaseURL>media/", "<EncryptedData/><BaseURL>media/"), Left::Encrypted),
            (
                MPD.replace("<BaseURL>media/", "<PatchLocation>p</PatchLocation><BaseURL>media/"),
                Left::Patched,
            ),
            (MPD.replace("bandwidth=\"6000000\"", ""), Left::NotUnderstood),
            (MPD.replace("bandwidth=\"6000000\"", "bandwidth=\"&six;\""), Left::NotUnderstood),
            (MPD.replace("<MPD ", "<!DOCTYPE MPD><MPD "), Left::NotUnderstood),
            (MPD.replace("utf-8", "utf-16"), Left::NotUnderstood),
            (MPD.replace("</Period>", ""), Left::NotUnderstood),
            (MPD.replace("id=\"hi\"", "id=\"hi\" dependencyId=\"lo\""), Left::NoChoice),
            (MPD.replace("avc1.640028", "hvc1.2"), Left::Least),
            ("<html/>".into(), Left::NotUnderstood),
            ("<MPD/>".into(), Left::NoChoice),
        ] {
            assert_eq!(limited(&text, 2_000), Err(left), "{text}");
        }
    }

    #[test]
    fn pieces_are_where_bases_and_templates_say() {
        let of = |rate, bases: &[&str], begins: &str, ends: &str| Pieces {
            rate,
            bases: bases.iter().map(ToString::to_string).collect(),
            begins: begins.into(),
            ends: ends.into(),
        };
        assert_eq!(
            pieces(MPD),
            [
                of(600_000, &["media/"], "v-lo-", ".m4s"),
                of(6_000_000, &["media/"], "v-hi-", ".m4s"),
                of(128_000, &["media/", "sound.mp4"], "", ""),
                of(9_000_000, &["media/"], "", ""),
            ]
        );
    }
}
