//! What the link reads off an IP packet and may write into it: explicit congestion notification. Believes nothing: what is no
//! whole header allows no marks and gets none.

use farhop_orbit::{Class, Label};

/// RFC 3168 §5: the two bits of the field; 00 says that the sender knows no marks, 11 is the mark.
const MARK: u8 = 0b11;

/// RFC 2474 §4.2.2: class selector 5 and above are for what is more urgent than data; RFC 3246 §2.7, the code point of EF, is among them.
const CS5: u8 = 40;
/// RFC 2597 §6: AF11 to AF43.
const ASSURED: std::ops::RangeInclusive<u8> = 10..=38;

/// What a packet says of itself.
pub(crate) fn label(packet: &[u8]) -> Label {
    let field = match packet {
        [first, class, ..] if packet.len() >= 20 && first >> 4 == 4 => *class,
        // RFC 8200 §3: the traffic class is across the first two bytes.
        [first, second, ..] if packet.len() >= 40 && first >> 4 == 6 => first << 4 | second >> 4,
        _ => 0,
    };
    // RFC 2474 §3: the upper six bits.
    let class = match field >> 2 {
        CS5.. => Class::Expedited,
        point if ASSURED.contains(&point) => Class::Assured,
        _ => Class::BestEffort,
    };
    Label { class, ecn_capable: field & MARK != 0, ..Label::default() }
}

/// Marks a packet that may be marked.
pub(crate) fn mark(packet: &mut [u8]) {
    if !label(packet).ecn_capable {
        return;
    }
    let [first, second, ..] = packet else { return };
    if *first >> 4 == 6 {
        *second |= MARK << 4;
        return;
    }
    let old = u16::from_be_bytes([*first, *second]);
    *second |= MARK;
    let new = u16::from_be_bytes([*first, *second]);
    // RFC 1624 §3, equation 3: HC' = ~(~HC + ~m + m').
    if let Some(sum) = packet.get_mut(10..12) {
        let was = u16::from_be_bytes([sum[0], sum[1]]);
        let total = u32::from(!was) + u32::from(!old) + u32::from(new);
        let folded = (total & 0xffff) + (total >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        sum.copy_from_slice(&(!(folded as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header with this field and a right checksum.
    fn header(field: u8) -> Vec<u8> {
        let mut header =
            vec![0x45, 0xb8 | field, 0, 40, 1, 2, 0x40, 0, 64, 6, 0, 0, 10, 77, 1, 2, 10, 77, 3, 2];
        let sum = !sum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    /// RFC 1071: the ones' complement sum; 0xffff over a header whose checksum is right.
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum = words.sum::<u32>();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_mark_leaves_a_right_checksum_and_all_other_bits() {
        for field in [0b01, 0b10, 0b11] {
            let mut packet = header(field);
            assert!(label(&packet).ecn_capable);
            mark(&mut packet);
            assert_eq!((packet[1], sum(&packet)), (0xb8 | 0b11, 0xffff), "{field:02b}");
            assert_eq!(packet[12..], header(field)[12..]);
        }
    }

    #[test]
    fn what_knows_no_marks_or_is_no_packet_is_left_alone() {
        for packet in [header(0), vec![], vec![0x45, 0x03], vec![0x60, 0x30, 0, 0]] {
            let mut marked = packet.clone();
            mark(&mut marked);
            assert_eq!((label(&packet).ecn_capable, &marked), (false, &packet));
        }
    }

    #[test]
    fn the_class_is_that_of_the_code_point() {
        let class = |point: u8| {
            let mut packet = header(0);
            packet[1] = point << 2;
            label(&packet).class
        };
        assert_eq!([46, 48, 40].map(class), [Class::Expedited; 3]);
        assert_eq!([10, 26, 38].map(class), [Class::Assured; 3]);
        assert_eq!([0, 8, 1].map(class), [Class::BestEffort; 3]);
    }

    #[test]
    fn ipv6_has_the_field_across_its_first_bytes() {
        let mut packet = vec![0; 40];
        packet[..2].copy_from_slice(&[0x6b, 0x21]);
        assert!(label(&packet).ecn_capable);
        mark(&mut packet);
        assert_eq!(packet[..3], [0x6b, 0x31, 0]);
    }
}
