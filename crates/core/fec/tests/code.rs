//! The code alone: what it must bring back, that it brings back nothing else, and that it stays within bounds.

mod support;

use std::time::Duration;

use farhop_fec::decoder::Decoder;
use farhop_fec::encoder::{Encoder, WINDOW};
use farhop_fec::wire::{Datagram, Repair};
use proptest::prelude::*;
use support::packet;

/// Owned, so that several may be held.
struct Sum {
    first: u32,
    count: u8,
    number: u8,
    sum: Vec<u8>,
}

impl Sum {
    fn next(encoder: &mut Encoder) -> Sum {
        let repair = encoder.repair(false).expect("a window with packets");
        Sum { first: repair.first, count: repair.count, number: repair.number, sum: repair.sum.to_vec() }
    }

    fn repair(&self) -> Repair<'_> {
        Repair { first: self.first, count: self.count, number: self.number, loud: false, sum: &self.sum }
    }
}

proptest! {
    /// Over one window, as many repairs as losses bring all of them back, whichever they are and in whatever order the
    /// repairs and what was late arrive.
    #[test]
    fn any_losses_of_a_window_are_made_good_by_as_many_repairs(
        lengths in prop::collection::vec(5usize..1453, 1..=WINDOW),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 1..=20),
        first in any::<u32>(),
        used in 0usize..200,
        backwards in any::<bool>(),
    ) {
        let mut encoder = Encoder::new(first);
        let packets: Vec<Vec<u8>> = (0..).zip(&lengths).map(|(number, len)| packet(number, *len)).collect();
        let numbers: Vec<u32> = (0..packets.len() as u32).map(|index| first.wrapping_add(index)).collect();
        for (number, packet) in numbers.iter().zip(&packets) {
            encoder.push(Duration::ZERO, *number, packet);
        }
        for _ in 0..used {
            Sum::next(&mut encoder);
        }
        let mut lost: Vec<usize> = lost.iter().map(|index| index.index(packets.len())).collect();
        lost.sort_unstable();
        lost.dedup();

        let last = numbers[numbers.len() - 1];
        let mut decoder = Decoder::new(first.wrapping_sub(1));
        decoder.advance(last);
        let mut repairs: Vec<Sum> = lost.iter().map(|_| Sum::next(&mut encoder)).collect();
        if backwards {
            repairs.reverse();
        }
        // Half of the repairs come before what was not lost does.
        let half = repairs.split_off(repairs.len() / 2);
        repairs.iter().for_each(|sum| decoder.repair(&sum.repair()));
        for (index, packet) in packets.iter().enumerate().filter(|(index, _)| !lost.contains(index)) {
            decoder.insert(numbers[index], packet);
        }
        half.iter().for_each(|sum| decoder.repair(&sum.repair()));

        let mut back = Vec::new();
        while let Some((number, packet)) = decoder.poll_recovered() {
            back.push((number.wrapping_sub(first) as usize, packet));
        }
        back.sort();
        let expected: Vec<_> = lost.iter().map(|index| (*index, packets[*index].clone())).collect();
        prop_assert_eq!(back, expected);
    }

    /// Whatever comes in whatever order: no panic, and nothing grows beyond its bound.
    #[test]
    fn hostile_repairs_and_packets_are_survived(
        steps in prop::collection::vec(
            (any::<u8>(), 0u32..600, 1u8..=128, 0u8..128, prop::collection::vec(any::<u8>(), 1..200)),
            0..300,
        ),
    ) {
        let mut decoder = Decoder::new(0);
        let mut newest = 0;
        for (kind, first, count, number, sum) in steps {
            let last = first + u32::from(count) - 1;
            if last > newest {
                newest = last;
                decoder.advance(newest);
            }
            match kind % 2 {
                0 => decoder.insert(first, &sum),
                _ => decoder.repair(&Repair { first, count, number, loud: false, sum: &sum }),
            }
            while let Some((number, packet)) = decoder.poll_recovered() {
                prop_assert!(number <= newest && packet.len() <= 256);
            }
        }
    }

    #[test]
    fn any_datagram_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), kind in 0u8..20) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        if let Some(datagram) = Datagram::decode(&bytes) {
            let mut written = Vec::new();
            datagram.encode(&mut written);
            prop_assert_eq!(Datagram::decode(&written), Some(datagram));
        }
    }

    #[test]
    fn any_input_of_the_fuzz_target_passes(data in prop::collection::vec(any::<u8>(), 0..2000)) {
        farhop_fec::fuzz(&data);
    }
}

#[test]
fn one_loss_waits_for_one_repair_and_a_burst_for_as_many_as_it_is_long() {
    let mut encoder = Encoder::new(0);
    let mut decoder = Decoder::new(u32::MAX);
    let mut back = Vec::new();
    // One repair after each ten packets; 33 is lost, and so are 60 to 63.
    for number in 0..120 {
        let packet = packet(number, 1000);
        encoder.push(Duration::ZERO, number, &packet);
        decoder.advance(number);
        if number != 33 && !(60..64).contains(&number) {
            decoder.insert(number, &packet);
        }
        if number % 10 == 9 {
            decoder.repair(&Sum::next(&mut encoder).repair());
        }
        while let Some((lost, packet)) = decoder.poll_recovered() {
            assert_eq!(packet, support::packet(lost, 1000));
            back.push((lost, number));
        }
    }
    back.sort_unstable();
    assert_eq!(back, [(33, 39), (60, 99), (61, 99), (62, 99), (63, 99)]);
}

#[test]
fn what_was_not_kept_is_not_covered() {
    let mut encoder = Encoder::new(0);
    encoder.push(Duration::ZERO, 0, &packet(0, 100));
    encoder.push(Duration::ZERO, 1, &packet(1, 100));
    encoder.push(Duration::ZERO, 7, &packet(7, 100));
    let repair = encoder.repair(false).unwrap();
    assert_eq!((repair.first, repair.count), (7, 1));
}

#[test]
fn an_idle_window_is_let_go() {
    let mut encoder = Encoder::new(0);
    for number in 0..300 {
        encoder.push(Duration::from_millis(number.into()), number, &packet(number, 100));
    }
    assert_eq!(encoder.len(), WINDOW);
    encoder.forget(Duration::from_millis(290));
    assert_eq!((encoder.len(), encoder.repair(false).unwrap().first), (10, 290));
    encoder.forget(Duration::MAX);
    assert!(encoder.is_empty() && encoder.repair(false).is_none());
}
