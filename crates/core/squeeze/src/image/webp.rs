//! WebP: libwebp does the coding, the container around a colour profile is written here.

use super::pixels::{Layout, Pixels};
use webp::{Encoder, PixelLayout, WebPConfig};

/// Effort of the lossy coder, libwebp's `method`: 4 gains 3 % over 2 and takes twice as long, 1 loses 9 % and takes two
/// thirds of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    Full,
    Quick,
}

/// Codes with loss at `quality` (0 to 100). `fine_chroma`: colours keep their edges although WebP halves chroma, for
/// three times the time. `None`: libwebp has given up.
pub(super) fn lossy(pixels: &Pixels, quality: u8, effort: Effort, fine_chroma: bool) -> Option<Vec<u8>> {
    let mut config = WebPConfig::new().ok()?;
    config.quality = quality.into();
    config.method = if effort == Effort::Full { 2 } else { 1 };
    config.use_sharp_yuv = fine_chroma.into();
    config.alpha_quality = 90;
    encode(pixels, &config)
}

/// Codes without loss, colours under full transparency included.
pub(super) fn lossless(pixels: &Pixels) -> Option<Vec<u8>> {
    let mut config = WebPConfig::new().ok()?;
    config.lossless = 1;
    config.exact = 1;
    // What stands for "effort" here; the time grows faster than the gain.
    config.quality = 50.0;
    config.method = match pixels.count() {
        0..100_000 => 4,
        100_000..1_000_000 => 2,
        _ => 0,
    };
    encode(pixels, &config)
}

fn encode(pixels: &Pixels, config: &WebPConfig) -> Option<Vec<u8>> {
    let layout = match pixels.layout {
        Layout::Rgb => PixelLayout::Rgb,
        Layout::Rgba => PixelLayout::Rgba,
        Layout::Grey => return None,
    };
    // `Encoder::new` panics on a buffer that is too small.
    if pixels.bytes.len() as u64 != pixels.count() * pixels.layout.channels() as u64 {
        return None;
    }
    let encoder = Encoder::new(&pixels.bytes, layout, pixels.width, pixels.height);
    encoder.encode_advanced(config).ok().map(|file| file.to_vec())
}

/// What a browser will show of a file that was coded here.
pub(super) fn decode(file: &[u8]) -> Option<Pixels> {
    let image = webp::Decoder::new(file).decode()?;
    let layout = if image.is_alpha() { Layout::Rgba } else { Layout::Rgb };
    Some(Pixels { width: image.width(), height: image.height(), layout, bytes: image.to_vec() })
}

const HAS_PROFILE: u8 = 0x20;
const HAS_ALPHA: u8 = 0x10;

/// Puts an ICC profile into a file of [`lossy`] or [`lossless`] (RFC 9649 §2.7).
pub(super) fn with_profile(file: &[u8], pixels: &Pixels, profile: &[u8]) -> Option<Vec<u8>> {
    let mut chunks = file.get(12..)?;
    if chunks.starts_with(b"VP8X") {
        // With lossy alpha libwebp writes this chunk itself; ours says the same and more.
        chunks = chunks.get(18..)?;
    }
    let alpha = if pixels.layout == Layout::Rgba { HAS_ALPHA } else { 0 };
    let mut extended = vec![HAS_PROFILE | alpha, 0, 0, 0];
    extended.extend(&(pixels.width - 1).to_le_bytes()[..3]);
    extended.extend(&(pixels.height - 1).to_le_bytes()[..3]);
    let mut content = b"WEBP".to_vec();
    for (name, bytes) in [(b"VP8X", &extended[..]), (b"ICCP", profile)] {
        content.extend(name);
        content.extend((bytes.len() as u32).to_le_bytes());
        content.extend(bytes);
        // §2.3: chunks are padded to even sizes.
        content.extend(vec![0; bytes.len() % 2]);
    }
    content.extend(chunks);
    Some([b"RIFF", &(content.len() as u32).to_le_bytes()[..], &content].concat())
}
