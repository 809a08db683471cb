//! What is neither page nor tunnel: names, speech, films and pictures, which come as they are meant to and not always as they were sent.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use farhop_testkit::pattern::bytes_at;
use farhop_testkit::{File, Site};
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, Rgb, RgbImage};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Duration, Instant, sleep, timeout, timeout_at};

use super::load::Client;
use super::origin::wrong;
use super::pages::{ask, speak};
use super::place::HOST;

/// What settings let a rendition take, between the second and the third of the manifest.
pub(super) const MOST: &str = "2 Mbit/s";
const MASTER: &str = "/v/master.m3u8";
const REST: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360\nlow/list.m3u8\n\
                    #EXT-X-STREAM-INF:BANDWIDTH=1500000,RESOLUTION=1280x720\nmid/list.m3u8\n";
const BEST: &str = "#EXT-X-STREAM-INF:BANDWIDTH=16000000,RESOLUTION=3840x2160\nhi/list.m3u8\n";
/// The pieces of the smallest, of so many bytes.
const PIECES: u64 = 3;
const PIECE: usize = 200_000;
/// A photograph, and by how much a picture that is made small may differ on average, in levels of a colour.
const PICTURE: &str = "/picture.jpg";
const SIDES: (u32, u32) = (320, 240);
const DIFFERENCE: f64 = 6.0;
/// A name is asked for again after this, since a datagram may get lost, and again after an error, since ground may be away.
const AGAIN: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(500);
/// What of a call has to come back, and how often it speaks.
const ENOUGH: u64 = 50;
const GAP: Duration = Duration::from_millis(20);
/// An RTP header, and the sequence number of the first packet.
const HEADER: usize = 12;
const FIRST: u16 = 65_000;

/// Adds what is played and seen to the site of files.
pub(super) fn add_to(site: Site) -> io::Result<Site> {
    let hls =
        |text: String| File::new("application/vnd.apple.mpegurl", text).field("cache-control", "max-age=3");
    let names: String = (0..PIECES).map(|piece| format!("#EXTINF:4,\n{piece}.ts\n")).collect();
    let list = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{names}#EXT-X-ENDLIST\n");
    let site = site.file(MASTER, hls(format!("{REST}{BEST}"))).file("/v/low/list.m3u8", hls(list));
    let site =
        (0..PIECES).fold(site, |site, piece| site.file(&path(piece), File::new("video/mp2t", bytes(piece))));
    let picture = File::new("image/jpeg", photograph()?).field("cache-control", "max-age=3");
    Ok(site.file(PICTURE, picture))
}

fn path(piece: u64) -> String {
    format!("/v/low/{piece}.ts")
}

fn bytes(piece: u64) -> Vec<u8> {
    bytes_at(500 + piece, 0, PIECE).to_vec()
}

/// Soft light with some grain, as a camera gives it.
fn pixels() -> RgbImage {
    RgbImage::from_fn(SIDES.0, SIDES.1, |x, y| {
        let grain = (x * 7 + y * 13 + x * y) % 9;
        Rgb([(x / 2 + grain) as u8, (y + grain) as u8, ((x + y) / 4 + grain) as u8])
    })
}

fn photograph() -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    let made = JpegEncoder::new_with_quality(&mut file, 96).encode_image(&pixels());
    made.map(|()| file).map_err(io::Error::other)
}

/// A manifest, of which the largest rendition has to be gone, and the pieces of the smallest.
pub(super) async fn film(client: &mut Client<'_>) -> io::Result<u64> {
    let master = fetched(client, MASTER).await?.into_body();
    is_limited(&String::from_utf8_lossy(&master))?;
    let mut all = master.len() as u64;
    for piece in 0..PIECES {
        let came = fetched(client, &path(piece)).await?.into_body();
        if came != bytes(piece) {
            return Err(wrong(&format!("{} has {} other bytes", path(piece), came.len())));
        }
        all += came.len() as u64;
    }
    Ok(all)
}

/// It names the smallest rendition, not the largest, and nothing that the origin did not.
fn is_limited(manifest: &str) -> io::Result<()> {
    let original = format!("{REST}{BEST}");
    let is_known = manifest.lines().all(|line| original.lines().any(|known| known == line));
    let right = is_known && manifest.contains("low/list.m3u8") && !manifest.contains("hi/list.m3u8");
    if right { Ok(()) } else { Err(wrong(&format!("a manifest says {manifest:?}"))) }
}

/// A picture that may be made small: it has to be no larger than it was, and look like it.
pub(super) async fn picture(client: &mut Client<'_>) -> io::Result<u64> {
    let came = fetched(client, PICTURE).await?.into_body();
    looks_right(&came)?;
    Ok(came.len() as u64)
}

fn looks_right(file: &[u8]) -> io::Result<()> {
    let seen = image::load_from_memory_with_format(file, ImageFormat::Jpeg);
    let seen = seen.map_err(|error| wrong(&format!("a picture: {error}")))?.to_rgb8();
    let meant = pixels();
    if seen.dimensions() != SIDES || file.len() > photograph()?.len() {
        return Err(wrong(&format!("a picture of {:?} in {} bytes", seen.dimensions(), file.len())));
    }
    let levels = seen.as_raw().iter().zip(meant.as_raw()).map(|(one, other)| u64::from(one.abs_diff(*other)));
    let difference = levels.sum::<u64>() as f64 / meant.as_raw().len() as f64;
    if difference <= DIFFERENCE {
        Ok(())
    } else {
        Err(wrong(&format!("a picture that differs by {difference:.1}")))
    }
}

async fn fetched(client: &Client<'_>, path: &str) -> io::Result<Response<Bytes>> {
    let mut sender = speak(TcpStream::connect(client.map.proxy).await?).await?;
    let asked = ask(&format!("http://{}{path}", client.map.files), Some(&client.credentials()))?;
    let answer = sender.send_request(asked).await.map_err(io::Error::other)?;
    if answer.status() != StatusCode::OK {
        return Err(io::Error::other(format!("{path} is answered {}", answer.status())));
    }
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    Ok(Response::from_parts(head, body))
}

/// The site's name, asked of the remote.
pub(super) async fn name(client: &mut Client<'_>) -> io::Result<u64> {
    let (names, site) = (client.map.names, client.map.site);
    let id = client.below(1 << 16) as u16;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(names).await?;
    let mut answer = [0; 1500];
    loop {
        socket.send(&question(id)).await?;
        let Ok(length) = timeout(AGAIN, socket.recv(&mut answer)).await else { continue };
        let length = length?;
        match says(&answer[..length], id, site)? {
            true => return Ok(length as u64),
            false => sleep(PAUSE).await,
        }
    }
}

/// RFC 1035 §4: the address of the site, please.
fn question(id: u16) -> Vec<u8> {
    let labels = HOST.split('.').flat_map(|label| {
        let length = label.len() as u8;
        std::iter::once(length).chain(label.bytes())
    });
    let head = [id.to_be_bytes(), [1, 0], [0, 1], [0, 0], [0, 0], [0, 0]].concat();
    head.into_iter().chain(labels).chain([0, 0, 1, 0, 1]).collect()
}

/// Whether an answer names the site's address; false where it names an error, or answers something else.
fn says(answer: &[u8], id: u16, site: SocketAddr) -> io::Result<bool> {
    let SocketAddr::V4(site) = site else { return Err(wrong("the site has an address of the other family")) };
    if answer.len() < HEADER || answer[..2] != id.to_be_bytes() || answer[3] & 0xf != 0 {
        return Ok(false);
    }
    match answer.windows(4).any(|part| part == site.ip().octets()) {
        true => Ok(true),
        false => Err(wrong("a name has another address")),
    }
}

/// A call that is caught: RTP that has to come back as it was sent. What is late is dropped, and all of it while the link is away, so
/// it speaks until enough has come.
pub(super) async fn speech(client: &mut Client<'_>) -> io::Result<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(client.map.voice).await?;
    let source = client.number as u32;
    let (mut came, mut number, mut next) = (0, 0_u16, Instant::now());
    let mut buffer = [0; 1500];
    while came < ENOUGH {
        // ICMP may say of one before that nobody is there, while ground is away.
        let _ = socket.send(&rtp(number, source)).await;
        number = number.wrapping_add(1);
        next = next.max(Instant::now()) + GAP;
        while let Ok(heard) = timeout_at(next, socket.recv(&mut buffer)).await {
            let Ok(length) = heard else { continue };
            is_said(&buffer[..length], source)?;
            came += 1;
        }
    }
    Ok(came * rtp(0, source).len() as u64)
}

/// One that was sent, and nothing else.
fn is_said(datagram: &[u8], source: u32) -> io::Result<()> {
    let sequence = datagram.get(2..4).map(|two| u16::from_be_bytes([two[0], two[1]])).unwrap_or_default();
    match datagram == rtp(sequence.wrapping_sub(FIRST), source) {
        true => Ok(()),
        false => Err(wrong("a datagram of speech came back as another")),
    }
}

/// RFC 3550 §5.1: G.729, two frames in a packet.
fn rtp(number: u16, source: u32) -> Vec<u8> {
    let mut datagram = vec![0x80, 18];
    datagram.extend(FIRST.wrapping_add(number).to_be_bytes());
    datagram.extend((u32::from(number) * 160).to_be_bytes());
    datagram.extend(source.to_be_bytes());
    datagram.extend_from_slice(&bytes_at(u64::from(number) + 1, 0, 20));
    datagram
}

/// Sends every datagram back, until this is dropped.
pub(super) async fn echo(socket: UdpSocket) {
    let mut buffer = [0; 1500];
    loop {
        // Who is not there any more is told by an error of the next.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        let _ = socket.send_to(&buffer[..length], from).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_without_the_largest_is_right_and_no_other() {
        assert!(is_limited(REST).is_ok());
        assert!(is_limited(&format!("{REST}{BEST}")).is_err(), "not limited");
        assert!(is_limited(&REST.replace("low/", "elsewhere/")).is_err());
    }

    #[test]
    fn a_picture_that_is_another_is_told() {
        assert!(looks_right(&photograph().unwrap()).is_ok());
        let black = RgbImage::new(SIDES.0, SIDES.1);
        let mut file = Vec::new();
        JpegEncoder::new_with_quality(&mut file, 90).encode_image(&black).unwrap();
        assert_eq!(looks_right(&file).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_name_is_right_with_its_address_asked_again_after_an_error_and_wrong_with_another() {
        let site: SocketAddr = "10.77.16.1:443".parse().unwrap();
        let mut answer = question(7);
        assert!(says(&answer, 7, site).is_err(), "no address in it");
        answer.extend([10, 77, 16, 1]);
        assert!(says(&answer, 7, site).unwrap());
        assert!(!says(&answer, 8, site).unwrap());
        answer[3] = 0x82;
        assert!(!says(&answer, 7, site).unwrap(), "ground is away");
    }

    #[test]
    fn speech_is_known_by_its_number_and_each_byte_counts() {
        let mut datagram = rtp(700, 3);
        assert!(is_said(&datagram, 3).is_ok());
        assert!(is_said(&datagram, 4).is_err());
        datagram[20] ^= 1;
        assert!(is_said(&datagram, 3).is_err());
    }
}
