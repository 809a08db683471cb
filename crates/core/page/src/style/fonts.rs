//! Which font files the page's text needs: texts gathered by the font they are set in, and the faces that have their
//! characters.

use super::blocks::SourceId;
use super::browser_font::BrowserFont;
use super::characters::Characters;
use super::face::{Face, choose};
use std::collections::HashMap;
use std::sync::Arc;

/// Different fonts of one page that are told apart.
const MAX_FONTS: usize = 1_000;
/// So many of them are looked through.
const FEW: usize = 8;

/// Families that every desktop has: what stands after them in a list is not asked for.
const PRESENT: [&str; 17] = [
    "serif",
    "sans-serif",
    "monospace",
    "cursive",
    "fantasy",
    "system-ui",
    "ui-serif",
    "ui-sans-serif",
    "ui-monospace",
    "ui-rounded",
    "arial",
    "helvetica",
    "times new roman",
    "times",
    "courier new",
    "courier",
    "-webkit-body",
];

/// Families in order of preference, weight and slant: what text inherits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Font {
    pub(super) weight: u16,
    pub(super) italic: bool,
    /// Lower case.
    pub(super) families: Arc<[Box<str>]>,
}

/// A font of the page, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FontId(u32);

#[derive(Debug, Default)]
struct Text {
    shown: Characters,
    /// Those of them that no face was chosen for yet.
    new: Characters,
}

#[derive(Debug)]
pub(super) struct PlacedFace {
    pub(super) face: Face,
    pub(super) source: SourceId,
    rank: u32,
    sheet: u32,
}

/// All fonts and faces of a page.
#[derive(Debug)]
pub(super) struct Fonts {
    fonts: Vec<(Font, Text)>,
    numbers: HashMap<Font, FontId>,
    /// Of elements about which only the browser's own sheet says anything, by their parents' fonts.
    plain: Vec<[Option<FontId>; BrowserFont::COUNT]>,
    /// In the order of the cascade.
    faces: Vec<PlacedFace>,
    by_family: HashMap<Box<str>, Vec<usize>>,
    /// Some font has new characters.
    changed: bool,
}

impl Fonts {
    /// What a page without styles is set in.
    pub(super) const INITIAL: FontId = FontId(0);

    pub(super) fn new() -> Self {
        let mut fonts = Fonts {
            fonts: Vec::new(),
            numbers: HashMap::new(),
            plain: Vec::new(),
            faces: Vec::new(),
            by_family: HashMap::new(),
            changed: false,
        };
        fonts.number(Font { families: [].into(), weight: 400, italic: false });
        fonts
    }

    /// Takes the faces of a complete sheet. [`rank`](Fonts::rank) must follow.
    pub(super) fn add_sheet(&mut self, sheet: u32, faces: &mut Vec<Face>, source: SourceId) {
        self.faces.extend(faces.drain(..).map(|face| PlacedFace { face, source, rank: 0, sheet }));
    }

    /// Orders faces as their sheets are (`ranks` by number), and forgets which texts were set.
    pub(super) fn rank(&mut self, ranks: &[u32]) {
        for face in &mut self.faces {
            face.rank = ranks.get(face.sheet as usize).copied().unwrap_or_default();
        }
        self.faces.sort_by_key(|face| face.rank);
        self.by_family.clear();
        for (at, placed) in self.faces.iter().enumerate() {
            self.by_family.entry(placed.face.family.clone()).or_default().push(at);
        }
        self.fonts.iter_mut().for_each(|(_, text)| *text = Text::default());
    }

    /// Whether the page has fonts of its own.
    pub(super) fn has_faces(&self) -> bool {
        !self.faces.is_empty()
    }

    pub(super) fn number(&mut self, font: Font) -> FontId {
        // Most pages have a few fonts: comparing finds them sooner than hashing.
        if let Some(at) = self.fonts.iter().take(FEW).position(|(own, _)| *own == font) {
            return FontId(at as u32);
        }
        if let Some(&known) = self.numbers.get(&font) {
            return known;
        }
        if self.fonts.len() >= MAX_FONTS {
            return Self::INITIAL;
        }
        let number = FontId(self.fonts.len() as u32);
        self.numbers.insert(font.clone(), number);
        self.fonts.push((font, Text::default()));
        number
    }

    /// The font of an element in one that has `parent`, where only the browser's own sheet says anything of it.
    pub(super) fn plain(&mut self, parent: FontId, own: BrowserFont) -> FontId {
        if own == BrowserFont::Inherited {
            return parent;
        }
        let (row, column) = (parent.0 as usize, own as usize);
        if self.plain.len() <= row {
            self.plain.resize(row + 1, [None; BrowserFont::COUNT]);
        }
        if let Some(known) = self.plain[row][column] {
            return known;
        }
        let number = self.number(own.within(self.get(parent)));
        self.plain[row][column] = Some(number);
        number
    }

    pub(super) fn get(&self, number: FontId) -> &Font {
        &self.fonts[number.0 as usize].0
    }

    /// `characters` are shown in font `number`.
    pub(super) fn show(&mut self, number: FontId, characters: &Characters) {
        self.show_only(number, characters);
        self.line(number);
    }

    /// There is a line in font `number`, be it an empty one: browsers load the face that has its space (recorded from
    /// Chromium: the first family in whose `unicode-range` it is).
    pub(super) fn line(&mut self, number: FontId) {
        self.show_only(number, &Characters::space());
    }

    fn show_only(&mut self, number: FontId, characters: &Characters) {
        let (_, text) = &mut self.fonts[number.0 as usize];
        let new = text.shown.add(characters);
        if !new.is_empty() {
            text.new.add(&new);
            self.changed = true;
        }
    }

    /// Whether characters are shown that [`needed`](Fonts::needed) has not told of.
    pub(super) fn has_new_text(&self) -> bool {
        self.changed
    }

    /// The faces that texts shown since the last call need, some perhaps for the second time.
    pub(super) fn needed(&mut self) -> Vec<&PlacedFace> {
        let mut needed = Vec::new();
        if !std::mem::take(&mut self.changed) {
            return needed;
        }
        for (font, text) in self.fonts.iter_mut().filter(|(_, text)| !text.new.is_empty()) {
            let mut left = std::mem::take(&mut text.new);
            for family in &*font.families {
                let Some(members) = self.by_family.get(family) else {
                    if PRESENT.contains(&&**family) {
                        break;
                    }
                    continue;
                };
                let faces: Vec<&Face> = members.iter().map(|&at| &self.faces[at].face).collect();
                let chosen = choose(&faces, font.weight, font.italic, &mut left);
                let placed = members.iter().map(|&at| &self.faces[at]);
                needed.extend(
                    placed.filter(|placed| chosen.iter().any(|own| std::ptr::eq(*own, &placed.face))),
                );
                if left.is_empty() {
                    break;
                }
            }
        }
        needed
    }
}
