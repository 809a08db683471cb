//! The macros behind [`crate::event`] and [`crate::counters`]: one declaration, everything else derived.

/// Declares the events. Each has documentation, a log level, fields, and what it counts.
macro_rules! events {
    ($(
        $(#[doc = $doc:literal])*
        $level:ident $name:ident $text:literal {$(
            $(#[doc = $field_doc:literal])*
            $field:ident: $type:ty,
        )*} counts |$counters:ident| $count:block
    )*) => {
        /// One thing that happened. Durations are in milliseconds, sizes in bytes as they stood in the body.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "event")]
        pub enum Event {$(
            $(#[doc = $doc])*
            #[serde(rename = $text)]
            $name {$(
                $(#[doc = $field_doc])*
                $field: $type,
            )*},
        )*}

        impl Event {
            /// Every event's name in JSON and its documentation.
            pub const DECLARED: &'static [(&'static str, &'static str)] =
                &[$(($text, concat!($($doc),*))),*];

            /// The event's name in JSON.
            pub fn name(&self) -> &'static str {
                match self { $(Event::$name { .. } => $text),* }
            }

            /// How loud the event is in the log.
            pub fn level(&self) -> Level {
                match self { $(Event::$name { .. } => Level::$level),* }
            }

            /// Adds what the event counts.
            #[allow(unused_variables)] // not every event counts by each of its fields
            pub(crate) fn count(&self, counters: &Counters) {
                match self {$(
                    Event::$name { $($field),* } => {
                        let $counters = counters;
                        $count
                    }
                )*}
            }
        }
    };
}
pub(crate) use events;

/// Declares the counters: `totals` are single numbers, `tallies` one number for each word of a list.
macro_rules! counters {
    (
        totals {$( $(#[doc = $total_doc:literal])* $total:ident, )*}
        tallies {$( $(#[doc = $tally_doc:literal])* $tally:ident: $word:ty, )*}
    ) => {
        /// Numbers that only grow, from the start of the process. Reading them while they grow is fine:
        /// each is right, though two may be a moment apart.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[doc = $total_doc])* pub(crate) $total: Total,)*
            $($(#[doc = $tally_doc])* pub(crate) $tally: Tally<$word>,)*
        }

        impl Counters {
            /// Every counter's name in JSON and its documentation.
            pub const DECLARED: &'static [(&'static str, &'static str)] = &[
                $((stringify!($total), concat!($($total_doc),*)),)*
                $((stringify!($tally), concat!($($tally_doc),*)),)*
            ];

            /// The numbers of this moment as a JSON object; tallies are objects with a number for each word.
            pub fn snapshot(&self) -> serde_json::Value {
                let mut snapshot = serde_json::Map::new();
                $(snapshot.insert(stringify!($total).into(), self.$total.value().into());)*
                $(snapshot.insert(stringify!($tally).into(), self.$tally.snapshot());)*
                snapshot.into()
            }

            $($(#[doc = $total_doc])*
            pub fn $total(&self) -> u64 {
                self.$total.value()
            })*
            $($(#[doc = $tally_doc])*
            pub fn $tally(&self, word: $word) -> u64 {
                self.$tally.value(word)
            })*
        }
    };
}
pub(crate) use counters;
