//! Images: what each policy does with them, what is left alone, and that nothing wrong ever comes out.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_squeeze::*;
use proptest::prelude::*;
use support::*;

fn plan(media: &str, length: u64, webp: bool, policy: Policy, load: Load) -> Option<Recipe> {
    image_plan(&ImageOffer { media, length: Some(length), webp }, policy, load)
}

fn recipe(policy: Policy, webp: bool) -> Recipe {
    plan("image/jpeg", 5000, webp, policy, Load::Light).unwrap()
}

const GENTLE: (Policy, bool) = (Policy::Gentle, true);

fn gentle() -> Recipe {
    recipe(GENTLE.0, GENTLE.1)
}

#[test]
fn policies_choose_by_kind_length_accept_and_time() {
    use Load::{Heavy, Light, Spent};
    use Policy::{Gentle, Httpep, Identity, Strong};
    let (jpeg, png) = ("image/jpeg", "image/png");
    // Type, bytes, takes WebP, policy, load, whether it is tried.
    let rows = [
        (jpeg, 5000, true, Gentle, Light, true),
        (jpeg, 5000, false, Gentle, Light, true),
        (jpeg, 5000, true, Gentle, Heavy, true),
        (jpeg, 5000, true, Gentle, Spent, false),
        (jpeg, 5000, true, Identity, Light, false),
        (jpeg, 5000, true, Httpep, Light, true),
        (jpeg, 5000, true, Strong, Heavy, true),
        (jpeg, 2047, true, Strong, Light, false),
        (jpeg, 9 << 20, true, Strong, Light, false),
        (png, 5000, true, Gentle, Light, true),
        (png, 5000, false, Gentle, Light, false),
        (png, 5000, true, Gentle, Heavy, false),
        (png, 5000, true, Httpep, Light, false),
        (png, 5000, true, Strong, Light, true),
        ("image/gif", 5000, true, Strong, Light, false),
        ("image/webp", 5000, true, Strong, Light, false),
        ("image/svg+xml", 5000, true, Strong, Light, false),
        ("text/html", 5000, true, Strong, Light, false),
    ];
    for (media, length, webp, policy, load, expected) in rows {
        let tried = plan(media, length, webp, policy, load).is_some();
        assert_eq!(tried, expected, "{media} {length} webp={webp} {policy} {load:?}");
    }
    let unknown = ImageOffer { media: jpeg, length: None, webp: true };
    assert!(image_plan(&unknown, Gentle, Light).is_some());
}

#[test]
fn httpep_makes_jpegs_of_quality_50_and_leaves_the_rest() {
    let (file, recipe) = (jpeg(320, 240, 85), recipe(Policy::Httpep, true));
    let recoded = recode(&file, recipe).unwrap();
    assert_eq!(recoded.done.to_string(), format!("jpeg; q=50; from=jpeg; was={}", file.len()));
    let (before, after) = (shown_jpeg(&file), shown_jpeg(&recoded.bytes));
    assert_eq!((before.0, before.1), (after.0, after.1));
    assert!(difference(&before.2, &after.2) < 6.0);
    assert_eq!(recode(&recoded.bytes, recipe), Err(Kept::Quality), "once is enough");
}

#[test]
fn gentle_makes_webps_that_look_the_same_and_are_much_smaller() {
    let file = jpeg(160, 120, 90);
    let recoded = recode(&file, gentle()).unwrap();
    assert_eq!((recoded.done.to, recoded.done.from), (Format::Webp, Format::Jpeg));
    assert!(recoded.bytes.len() * 10 < file.len() * 7, "{} of {}", recoded.bytes.len(), file.len());
    let shown = webp::Decoder::new(&recoded.bytes).decode().unwrap();
    assert!(difference(&shown_jpeg(&file).2, &shown) < 4.0);
    assert_eq!(recode(&file, gentle()), Ok(recoded), "the same again");
}

#[test]
fn every_policy_and_size_gives_pictures_of_the_same_size() {
    for (width, height) in [(160, 120), (97, 131), (16, 500), (500, 9)] {
        let file = jpeg(width, height, 96);
        for (policy, webp) in [
            (Policy::Gentle, true),
            (Policy::Gentle, false),
            (Policy::Httpep, false),
            (Policy::Strong, true),
            (Policy::Strong, false),
        ] {
            let recoded = recode(&file, recipe(policy, webp)).unwrap();
            assert_eq!(pixel_count(&file), Some(u64::from(width * height)));
            let size = match recoded.done.to {
                Format::Webp => {
                    let shown = webp::Decoder::new(&recoded.bytes).decode().unwrap();
                    (shown.width() as usize, shown.height() as usize)
                }
                _ => {
                    let shown = shown_jpeg(&recoded.bytes);
                    assert!(difference(&shown_jpeg(&file).2, &shown.2) < 8.0, "{policy} {width}x{height}");
                    (shown.0, shown.1)
                }
            };
            assert_eq!(size, (width as usize, height as usize), "{policy}");
        }
    }
}

#[test]
fn drawings_lose_nothing_and_keep_their_transparency() {
    let rgba = drawing(200, 150);
    let file = png(200, 150, &rgba, |_| {});
    let recipe = plan("image/png", 5000, true, Policy::Gentle, Load::Light).unwrap();
    let recoded = recode(&file, recipe).unwrap();
    assert_eq!(recoded.done.quality, None);
    let shown = webp::Decoder::new(&recoded.bytes).decode().unwrap();
    assert!(shown.is_alpha() && shown[..] == rgba[..], "every pixel, under full transparency too");
}

#[test]
fn strong_makes_lossy_webps_of_photographic_pngs_only() {
    let recipe = plan("image/png", 5000, true, Policy::Strong, Load::Light).unwrap();
    let photo: Vec<u8> = photo(120, 90).chunks_exact(3).flat_map(|it| [it[0], it[1], it[2], 200]).collect();
    let recoded = recode(&png(120, 90, &photo, |_| {}), recipe).unwrap();
    assert!(recoded.done.quality.is_some());
    let shown = webp::Decoder::new(&recoded.bytes).decode().unwrap();
    assert!(shown.is_alpha() && difference(&photo, &shown) < 6.0);
    let drawing = recode(&png(200, 150, &drawing(200, 150), |_| {}), recipe).unwrap();
    assert_eq!(drawing.done.quality, None);
}

#[test]
fn grey_stays_grey() {
    let file = grey_jpeg(160, 120, 92);
    let recoded = recode(&file, recipe(Policy::Httpep, false)).unwrap();
    let frame = recoded.bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    assert_eq!(recoded.bytes[frame + 9], 1, "one component");
    let shown = webp::Decoder::new(&recode(&file, gentle()).unwrap().bytes).decode().unwrap();
    assert!(shown.chunks_exact(3).all(|pixel| pixel[0].abs_diff(pixel[2]) <= 2));
}

#[test]
fn colour_profiles_are_kept() {
    let file = with_profile(&jpeg(160, 120, 90), b"RGB ");
    let profile = profile(b"RGB ");
    let holds = |bytes: &[u8]| bytes.windows(profile.len()).any(|window| window == profile);
    let webp = recode(&file, gentle()).unwrap().bytes;
    assert!(holds(&webp));
    assert_eq!(u32::from_le_bytes(webp[4..8].try_into().unwrap()) as usize, webp.len() - 8);
    let plain = recode(&jpeg(160, 120, 90), gentle()).unwrap().bytes;
    let shown = |bytes: &[u8]| webp::Decoder::new(bytes).decode().unwrap().to_vec();
    assert_eq!(shown(&webp), shown(&plain), "the same pixels inside");
    assert!(holds(&recode(&file, recipe(Policy::Httpep, false)).unwrap().bytes));

    let drawing = png_with_profile(&png(200, 150, &drawing(200, 150), |_| {}), &profile);
    let recipe = plan("image/png", 5000, true, Policy::Gentle, Load::Light).unwrap();
    let webp = recode(&drawing, recipe).unwrap().bytes;
    assert!(holds(&webp) && webp::Decoder::new(&webp).decode().unwrap().is_alpha());
}

const ULTRA_HDR: &[u8] =
    b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:Description \
    xmlns:hdrgm=\"http://ns.adobe.com/hdr-gain-map/1.0/\" hdrgm:Version=\"1.0\"/></x:xmpmeta>";
const OTHER_XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"/>";

#[test]
fn what_is_not_understood_to_the_last_detail_stays() {
    let plain = jpeg(160, 120, 90);
    let mut cmyk = plain.clone();
    let frame = cmyk.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    cmyk[frame + 9] = 4;
    let upright = png(200, 150, &drawing(200, 150), |_| {});
    let rows = [
        ("turned", with_orientation(&plain, 6)),
        ("shown at half its size", with_width_in_exif(&plain, 80)),
        ("a gain map, told in XMP", with_segment(&plain, 0xe1, ULTRA_HDR)),
        (
            "a gain map, told as ISO has it",
            with_segment(&plain, 0xe2, b"urn:iso:std:iso:ts:21496:-1\0\0\0\0\0"),
        ),
        ("a second picture", with_more_pictures(&plain, 2)),
        ("an index of pictures that is cut", with_segment(&plain, 0xe2, b"MPF\0MM\0\x2a")),
        ("a PNG turned", png_with_orientation(&upright, 6, false)),
        ("a PNG turned, told late", png_with_orientation(&upright, 8, true)),
        ("a profile for grey", with_profile(&plain, b"GRAY")),
        ("a profile that is broken", with_segment(&plain, 0xe2, b"ICC_PROFILE\0\x02\x03rest")),
        ("RGB without transform", with_segment(&plain, 0xee, b"Adobe\0\x64\0\0\0\0\0")),
        ("CMYK", cmyk),
        ("cut", plain[..plain.len() / 2].to_vec()),
        ("a profile on grey", with_profile(&grey_jpeg(160, 120, 92), b"GRAY")),
        ("a small one", jpeg(8, 8, 50)),
        ("GIF", [b"GIF89a".as_slice(), &[0; 4000]].concat()),
        ("16 bits", png(64, 64, &[77; 64 * 64 * 8], |encoder| encoder.set_depth(png::BitDepth::Sixteen))),
        (
            "told gamma",
            png(200, 150, &drawing(200, 150), |encoder| encoder.set_source_gamma(png::ScaledFloat::new(0.8))),
        ),
    ];
    for (what, file) in rows {
        for policy in [Policy::Gentle, Policy::Strong] {
            assert!(recode(&file, recipe(policy, true)).is_err(), "{what} under {policy}");
        }
    }
    assert!(recode(&with_orientation(&plain, 1), gentle()).is_ok(), "upright by its own word");
    assert!(recode(&with_width_in_exif(&plain, 160), gentle()).is_ok(), "of its own size");
    assert!(recode(&with_more_pictures(&plain, 1), gentle()).is_ok(), "the only picture");
    assert!(recode(&with_segment(&plain, 0xe1, OTHER_XMP), gentle()).is_ok(), "XMP of something else");
    for late in [false, true] {
        let file = png_with_orientation(&upright, 1, late);
        assert!(recode(&file, recipe(Policy::Gentle, true)).is_ok(), "an upright PNG, told late: {late}");
    }
    assert_eq!(recode(&jpeg(320, 240, 40), gentle()), Err(Kept::Quality));
}

#[test]
fn an_animated_png_stays() {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 64, 64);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    for frame in [photo(64, 86), photo(70, 80)] {
        writer
            .write_image_data(&frame[..64 * 64 * 4 - 1].iter().copied().chain([0]).collect::<Vec<_>>())
            .unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(recode(&file, gentle()), Err(Kept::Kind("an animation")));
}

#[test]
fn headers_that_promise_gigapixels_are_refused_before_anything_is_decoded() {
    let bomb = with_size(&jpeg(160, 120, 90), 30_000, 30_000);
    assert_eq!(recode(&bomb, gentle()), Err(Kept::Size { width: 30_000, height: 30_000 }));
    assert_eq!(pixel_count(&bomb), None);
    let mut bomb = png(200, 150, &drawing(200, 150), |_| {});
    bomb[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    let checksum = checksum(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(recode(&bomb, gentle()), Err(Kept::Size { width: 30_000, height: 30_000 }));
    assert_eq!(
        recode(&with_size(&jpeg(160, 120, 90), 0, 120), gentle()),
        Err(Kept::Size { width: 0, height: 120 })
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_gives_a_whole_picture_or_none(at in any::<prop::sample::Index>(), bit in 0u8..8, kind in 0usize..2, cut in any::<prop::sample::Index>()) {
        let mut file = if kind == 0 { jpeg(96, 64, 92) } else { png(96, 64, &drawing(96, 64), |_| {}) };
        let at = at.index(file.len());
        file[at] ^= 1 << bit;
        file.truncate(cut.index(file.len()).max(file.len() / 2));
        for policy in [Policy::Gentle, Policy::Httpep, Policy::Strong] {
            if let Ok(recoded) = recode(&file, recipe(policy, true)) {
                prop_assert!(recoded.bytes.len() < file.len());
                prop_assert_eq!(recoded.done.was, file.len());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 2100..4000), kind in 0usize..3) {
        let start: [&[u8]; 3] = [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"];
        let _ = recode(&[start[kind], &body[..]].concat(), gentle());
    }
}
