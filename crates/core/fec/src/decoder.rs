//! The receiving half of the code: solves for what is missing, as soon as it can be solved.
//!
//! Each repair is a linear equation over GF(2⁸). What has arrived is put into it at once; what stays is a row over the
//! missing packets. Rows are kept in reduced echelon form, so that a row with a single unknown is its packet. Memory
//! and work are bounded whatever comes: 256 packets, 64 rows.

use std::collections::VecDeque;

use crate::field::{inverse, product};
use crate::symbol::{Symbol, coefficient};
use crate::wire::Repair;

/// Sequence numbers that are looked back upon: a window and as many more for packets that come out of order.
pub const REACH: u32 = 256;
/// Equations held at a time. At a quarter of repairs more cannot be waiting.
const MOST_ROWS: usize = 64;

/// A packet's place among slots and coefficients.
fn place(sequence: u32) -> usize {
    (sequence % REACH) as usize
}

struct Row {
    coefficients: Box<[u8; REACH as usize]>,
    /// A column that no other row has.
    pivot: usize,
    sum: Symbol,
}

impl Row {
    fn unknowns(&self) -> usize {
        self.coefficients.iter().filter(|factor| **factor != 0).count()
    }

    /// Adds `factor` times the other.
    fn add(&mut self, factor: u8, other: &Row) {
        for (own, theirs) in self.coefficients.iter_mut().zip(other.coefficients.iter()) {
            *own ^= product(factor, *theirs);
        }
        self.sum.add(&[(factor, &other.sum)]);
    }

    fn scale(&mut self, factor: u8) {
        self.coefficients.iter_mut().for_each(|own| *own = product(factor, *own));
        self.sum.scale(factor);
    }
}

/// See the module.
pub struct Decoder {
    newest: u32,
    /// By [`place`]: packets that are here.
    slots: Vec<Option<Symbol>>,
    rows: Vec<Row>,
    /// Brought back, not yet taken.
    recovered: VecDeque<(u32, Vec<u8>)>,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("newest", &self.newest).field("rows", &self.rows.len()).finish()
    }
}

impl Decoder {
    /// Nothing received yet; `newest` is the number before the first packet's.
    pub fn new(newest: u32) -> Self {
        Decoder { newest, slots: Vec::new(), rows: Vec::new(), recovered: VecDeque::new() }
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.rows.is_empty() && self.recovered.is_empty()
    }

    /// Goes on to a newer number; what is left behind by [`REACH`] is forgotten, and so is what cannot be solved without it.
    pub fn advance(&mut self, newest: u32) {
        let step = newest.wrapping_sub(self.newest);
        self.newest = newest;
        if self.slots.is_empty() && self.rows.is_empty() {
            return;
        }
        if step >= REACH {
            return self.clear();
        }
        for back in 0..step {
            let place = place(newest.wrapping_sub(back));
            if let Some(slot) = self.slots.get_mut(place) {
                *slot = None;
            }
            self.rows.retain(|row| row.coefficients[place] == 0);
        }
    }

    /// Forgets all packets and equations, and gives their memory back.
    pub fn clear(&mut self) {
        self.slots = Vec::new();
        self.rows = Vec::new();
    }

    fn is_within_reach(&self, sequence: u32) -> bool {
        self.newest.wrapping_sub(sequence) < REACH
    }

    /// A packet that may be covered has arrived. Call [`Decoder::advance`] first if it is the newest.
    pub fn insert(&mut self, sequence: u32, packet: &[u8]) {
        if !self.is_within_reach(sequence) {
            return;
        }
        let place = place(sequence);
        if self.slot(place).is_some() {
            return;
        }
        let symbol = Symbol::of(packet);
        self.put_in(place, &symbol);
        self.keep(place, symbol);
        self.take_solved();
    }

    fn slot(&self, place: usize) -> Option<&Symbol> {
        self.slots.get(place)?.as_ref()
    }

    fn keep(&mut self, place: usize, symbol: Symbol) {
        if self.slots.is_empty() {
            self.slots.resize_with(REACH as usize, || None);
        }
        self.slots[place] = Some(symbol);
    }

    /// Puts a packet into the equations that miss it.
    fn put_in(&mut self, place: usize, symbol: &Symbol) {
        let mut without_pivot = None;
        for index in 0..self.rows.len() {
            let row = &mut self.rows[index];
            let factor = std::mem::take(&mut row.coefficients[place]);
            if factor != 0 {
                row.sum.add(&[(factor, symbol)]);
                if row.pivot == place {
                    without_pivot = Some(index);
                }
            }
        }
        if let Some(index) = without_pivot {
            let row = self.rows.swap_remove(index);
            self.add_row(row);
        }
    }

    /// A repair has arrived. Call [`Decoder::advance`] first if it covers newer numbers.
    pub fn repair(&mut self, repair: &Repair<'_>) {
        if !self.is_within_reach(repair.first) || self.rows.len() >= MOST_ROWS {
            return;
        }
        let mut coefficients = Box::new([0; REACH as usize]);
        let mut known = Vec::new();
        for index in 0..u32::from(repair.count) {
            let sequence = repair.first.wrapping_add(index);
            if !self.is_within_reach(sequence) {
                return;
            }
            let (place, factor) = (place(sequence), coefficient(repair.number, sequence));
            match self.slot(place) {
                Some(symbol) => known.push((factor, symbol)),
                None => coefficients[place] = factor,
            }
        }
        if known.len() == usize::from(repair.count) {
            return; // nothing is missing, the usual case
        }
        let mut sum = Symbol::from_wire(repair.sum);
        sum.add(&known);
        self.add_row(Row { coefficients, pivot: 0, sum });
        self.take_solved();
    }

    /// Gauss and Jordan's step: the row without the others' pivots, the others without its own.
    fn add_row(&mut self, mut row: Row) {
        for other in &self.rows {
            let factor = row.coefficients[other.pivot];
            if factor != 0 {
                row.add(factor, other);
            }
        }
        let Some(pivot) = row.coefficients.iter().position(|factor| *factor != 0) else {
            return; // says nothing new
        };
        row.pivot = pivot;
        row.scale(inverse(row.coefficients[pivot]));
        for other in &mut self.rows {
            let factor = other.coefficients[pivot];
            if factor != 0 {
                other.add(factor, &row);
            }
        }
        self.rows.push(row);
    }

    /// Takes out the packets that stand alone in their rows.
    fn take_solved(&mut self) {
        while let Some(index) = self.rows.iter().position(|row| row.unknowns() == 1) {
            let row = self.rows.swap_remove(index);
            // No other row has this column. A sum that is no packet was not made by this code: it is dropped.
            if let Some(packet) = row.sum.packet() {
                let back = (place(self.newest) + REACH as usize - row.pivot) % REACH as usize;
                self.recovered.push_back((self.newest.wrapping_sub(back as u32), packet.to_vec()));
                self.keep(row.pivot, row.sum);
            }
        }
    }

    /// The next packet brought back, with its number.
    pub fn poll_recovered(&mut self) -> Option<(u32, Vec<u8>)> {
        self.recovered.pop_front()
    }
}
