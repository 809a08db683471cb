//! Which images are recoded, and into what: the policies as numbers. Pure decisions; what they rest on was measured, see
//! record 0014.

use super::jpeg::Chroma;
use super::pixels::Origin;
use super::webp::Effort;
use super::{Format, Kept, LARGEST_IMAGE, LEAST_IMAGE};
use crate::{Load, Policy};

/// What is known of an image before its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageOffer<'a> {
    /// Type and subtype, in lower case.
    pub media: &'a str,
    /// Length in bytes, where it is told.
    pub length: Option<u64>,
    /// Whether whoever asked takes `image/webp`.
    pub webp: bool,
}

/// How an image is to be recoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Recipe {
    policy: Policy,
    from: Format,
    webp: bool,
    quick: bool,
}

/// What to do with an image, or `None`: leave it alone.
pub fn image_plan(offer: &ImageOffer<'_>, policy: Policy, load: Load) -> Option<Recipe> {
    let length = offer.length.unwrap_or(LEAST_IMAGE);
    if policy == Policy::Identity || load == Load::Spent || !(LEAST_IMAGE..=LARGEST_IMAGE).contains(&length) {
        return None;
    }
    let from = match offer.media {
        "image/jpeg" | "image/jpg" | "image/pjpeg" => Format::Jpeg,
        // Without loss it is dear, and nothing but WebP is smaller.
        "image/png" if policy != Policy::Httpep && offer.webp && load == Load::Light => Format::Png,
        _ => return None,
    };
    Some(Recipe { policy, from, webp: offer.webp && policy != Policy::Httpep, quick: load == Load::Heavy })
}

impl Recipe {
    /// The policy that it serves.
    pub fn policy(self) -> Policy {
        self.policy
    }

    /// What the image is said to be.
    pub fn from(self) -> Format {
        self.from
    }

    /// The same when there is less or more time for it.
    pub fn with_load(self, load: Load) -> Recipe {
        Recipe { quick: load != Load::Light, ..self }
    }

    /// What a picture of this origin becomes; `photographic` tells of a PNG that it has more colours than graphics do.
    pub(super) fn target(self, origin: Origin, photographic: bool) -> Result<Target, Kept> {
        let lossy = |quality, chroma, alike| {
            let to = if self.webp { Format::Webp } else { Format::Jpeg };
            let effort = if self.quick { Effort::Quick } else { Effort::Full };
            Target { to, quality: Some(quality), chroma, effort, alike }
        };
        match (self.policy, origin) {
            (Policy::Identity, _) => Err(Kept::Quality),
            (Policy::Httpep | Policy::Strong, Origin::Jpeg { quality, .. }) => {
                let wanted = if self.policy == Policy::Httpep { HTTPEP } else { STRONG };
                if quality <= wanted { Err(Kept::Quality) } else { Ok(lossy(wanted, Chroma::Halved, None)) }
            }
            (Policy::Gentle, Origin::Jpeg { quality, halved }) => {
                let scale = if self.webp { &GENTLE_WEBP[..] } else { &GENTLE_JPEG[..] };
                let (_, wanted) = scale.iter().find(|(least, _)| quality >= *least).ok_or(Kept::Quality)?;
                let chroma = if halved { Chroma::Halved } else { Chroma::Full };
                // There is no time to look at the result: a little better instead.
                let alike = (!self.quick).then_some(ALIKE);
                let wanted = if self.quick { wanted + STEP / 2 } else { *wanted };
                Ok(lossy(wanted, chroma, alike))
            }
            (Policy::Strong, Origin::Png) if photographic => Ok(lossy(STRONG_PNG, Chroma::Halved, None)),
            (Policy::Gentle | Policy::Strong, Origin::Png) if self.webp => {
                let effort = Effort::Full;
                Ok(Target { to: Format::Webp, quality: None, chroma: Chroma::Full, effort, alike: None })
            }
            (_, Origin::Png) => Err(Kept::Kind("a PNG, for a client that does not take WebP")),
        }
    }
}

/// HTTPEP's JPEG quality.
const HTTPEP: u8 = 50;
/// `strong`: blocks and smears are there for who looks for them.
const STRONG: u8 = 40;
const STRONG_PNG: u8 = 60;

/// `gentle`: quality by the quality of the source, from the best down. A source below all is left alone: what it has
/// lost leaves too little to lose.
const GENTLE_WEBP: [(u8, u8); 4] = [(93, 82), (85, 78), (75, 74), (60, 66)];
const GENTLE_JPEG: [(u8, u8); 2] = [(93, 82), (85, 76)];

/// `gentle`: least likeness (SSIM) to the source.
const ALIKE: f64 = 0.95;
/// How much better a picture is made that was not alike enough.
pub(super) const STEP: u8 = 8;

/// How a picture is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Target {
    pub(super) to: Format,
    /// On the format's own scale; `None` without loss.
    pub(super) quality: Option<u8>,
    pub(super) chroma: Chroma,
    pub(super) effort: Effort,
    /// The result must be so much like the source.
    pub(super) alike: Option<f64>,
}
