//! What the origin of a history allows caches, what requests themselves say of what is held, and how long an answer may be
//! given by both (RFC 9111). Pure.

use std::time::Duration;

use super::random::Random;

/// What the origin allows caches. Lifetimes are longer than any history, nothing, or over before a history that waits for it
/// ([`SHORT`]) has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    /// Anyone's cache.
    Shared,
    /// Anyone's, credentials or not.
    Public,
    /// The same, said of shared caches alone.
    SharedMaxAge,
    /// Anyone's, stale at once, and given all the same while it is asked about.
    Renewed,
    /// Anyone's, but for the cookie that comes with it (RFC 9111 §5.2.2.4).
    WithoutCookie,
    /// Anyone's, but for a field that is the user's own (RFC 9111 §5.2.2.7).
    WithoutField,
    /// The user's own.
    Private,
    /// Nobody without asking, and there is something to ask with.
    Checked,
    /// Nobody without asking: stale at once.
    Expired,
    /// The user's own, and even that asks.
    PrivateChecked,
    /// Nobody, ever.
    Never,
    /// Nothing is said.
    Silent,
    /// Nothing is said but when it last changed, long ago, which lets caches guess that it lasts (RFC 9111 §4.2.2).
    Dated,
    /// Anyone's, old when it comes.
    Aged,
    /// Anyone's, until a date.
    Until,
    /// Of shared caches alone, for a moment.
    SharedAWhile,
    /// Anyone's for a moment in which nobody asks about it (RFC 8246).
    Immutable,
    /// Of caches that know what its status means (RFC 9111 §5.2.2.3), for a moment.
    Understood,
    /// Anyone's for a moment, and not a moment longer.
    Strict,
    /// Anyone's for a moment, and for another while it is asked about.
    RenewedAWhile,
    /// Anyone's for a moment, and as long as the origin fails.
    Excused,
    /// The user's own, for a moment.
    PrivateAWhile,
}

/// What lasts for longer than any history, or not at all.
pub(super) const REUSES: [Reuse; 13] = [
    Reuse::Shared,
    Reuse::Public,
    Reuse::SharedMaxAge,
    Reuse::Renewed,
    Reuse::WithoutCookie,
    Reuse::WithoutField,
    Reuse::Private,
    Reuse::Checked,
    Reuse::Expired,
    Reuse::PrivateChecked,
    Reuse::Never,
    Reuse::Silent,
    Reuse::Dated,
];

/// What ends within seconds.
pub(super) const SHORT: [Reuse; 9] = [
    Reuse::Aged,
    Reuse::Until,
    Reuse::SharedAWhile,
    Reuse::Immutable,
    Reuse::Understood,
    Reuse::Strict,
    Reuse::RenewedAWhile,
    Reuse::Excused,
    Reuse::PrivateAWhile,
];

/// `Age` of what is [`Reuse::Aged`], in seconds.
pub(super) const AGE_S: u64 = 98;
/// What is short is over so long after the origin said it.
pub(super) const MOMENT: Duration = Duration::from_secs(2);
/// What lasts does so for longer than any history.
const LONG: Duration = Duration::from_secs(3600);

impl Reuse {
    pub(super) fn cache_control(self) -> Option<&'static str> {
        Some(match self {
            Reuse::Shared => "max-age=3600",
            Reuse::Public => "public, max-age=3600",
            Reuse::SharedMaxAge => "max-age=0, s-maxage=3600",
            Reuse::Renewed => "max-age=0, stale-while-revalidate=3600",
            Reuse::WithoutCookie => "max-age=3600, no-cache=\"set-cookie\"",
            Reuse::WithoutField => "max-age=3600, private=\"x-own\"",
            Reuse::Private => "private, max-age=3600",
            Reuse::Checked => "no-cache",
            Reuse::Expired => "max-age=0, must-revalidate",
            Reuse::PrivateChecked => "private, no-cache",
            Reuse::Never => "no-store",
            Reuse::Aged => "max-age=100",
            Reuse::SharedAWhile => "max-age=0, s-maxage=2",
            Reuse::Immutable => "max-age=2, immutable",
            Reuse::Understood => "must-understand, no-store, max-age=2",
            Reuse::Strict => "max-age=2, must-revalidate",
            Reuse::RenewedAWhile => "max-age=1, stale-while-revalidate=1",
            Reuse::Excused => "max-age=2, stale-if-error=3600",
            Reuse::PrivateAWhile => "private, max-age=2",
            Reuse::Silent | Reuse::Dated | Reuse::Until => return None,
        })
    }

    /// How long after the origin said it an answer may be given again without asking; nothing where it may not.
    pub(super) fn lasts_for(self) -> Option<Duration> {
        match self {
            _ if SHORT.contains(&self) => Some(MOMENT),
            _ if self.is_anyones() || matches!(self, Reuse::Private | Reuse::Dated) => Some(LONG),
            _ => None,
        }
    }

    /// The same for a request that wants something of its own.
    pub(super) fn answers_for(self, wish: Wish) -> Option<Duration> {
        // RFC 9111 §4.2.4: what nothing is said of is stale at once, and may be given to who takes what is stale.
        let silent = matches!(wish, Wish::MaxStale(_)) && self == Reuse::Silent;
        let lasts = if silent { Duration::ZERO } else { self.lasts_for()? };
        let seconds = |count: u8| Duration::from_secs(count.into());
        Some(match wish {
            Wish::Nothing | Wish::NotKept | Wish::OnlyCached => lasts,
            // RFC 8246 §2: what is immutable is not asked about while it lasts.
            Wish::MaxAge(_) if self == Reuse::Immutable => lasts,
            Wish::MaxAge(limit) => {
                let age = if self == Reuse::Aged { Duration::from_secs(AGE_S) } else { Duration::ZERO };
                lasts.min(seconds(limit).saturating_sub(age))
            }
            Wish::MinFresh(least) => lasts.saturating_sub(seconds(least)),
            // RFC 9111 §4.2.4.
            Wish::MaxStale(_) if matches!(self, Reuse::Strict) => lasts,
            Wish::MaxStale(limit) => lasts + seconds(limit),
        })
    }

    /// Whether an answer may be given again without asking.
    pub(super) fn lasts(self) -> bool {
        self.lasts_for().is_some()
    }

    /// Whether an answer may be given though it is stale, since the origin fails.
    pub(super) fn is_excused(self) -> bool {
        self == Reuse::Excused
    }

    pub(super) fn is_anyones(self) -> bool {
        let of_a_user = [
            Reuse::Private,
            Reuse::Checked,
            Reuse::Expired,
            Reuse::PrivateChecked,
            Reuse::Never,
            Reuse::Silent,
            Reuse::Dated,
            Reuse::PrivateAWhile,
        ];
        !of_a_user.contains(&self)
    }

    /// Whether what came for credentials answers requests without (RFC 9111 §3.5).
    pub(super) fn shares_with_credentials(self) -> bool {
        matches!(self, Reuse::Public | Reuse::SharedMaxAge | Reuse::SharedAWhile | Reuse::Strict)
    }

    /// Whether what is the user's own may stand in the answer.
    pub(super) fn may_be_personal(self) -> bool {
        !self.is_anyones()
    }
}

/// What a request itself says of answers that are held (RFC 9111 §5.2.1), in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    MaxAge(u8),
    MinFresh(u8),
    MaxStale(u8),
    NotKept,
    OnlyCached,
}

impl Wish {
    pub(super) fn random(random: &mut Random) -> Wish {
        random.one_of(&[
            Wish::MaxAge(1),
            Wish::MaxAge(60),
            Wish::MinFresh(1),
            Wish::MinFresh(60),
            Wish::MaxStale(1),
            Wish::NotKept,
            Wish::OnlyCached,
        ])
    }

    /// `Cache-Control`, where there is one.
    pub(super) fn cache_control(self) -> Option<String> {
        Some(match self {
            Wish::Nothing => return None,
            Wish::MaxAge(limit) => format!("max-age={limit}"),
            Wish::MinFresh(least) => format!("min-fresh={least}"),
            Wish::MaxStale(limit) => format!("max-stale={limit}"),
            Wish::NotKept => "no-store".into(),
            Wish::OnlyCached => "only-if-cached".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_shortens_or_lengthens_what_its_answer_allows() {
        let seconds = |reuse: Reuse, wish| reuse.answers_for(wish).map(|time| time.as_secs());
        assert_eq!(seconds(Reuse::Never, Wish::MaxStale(1)), None);
        assert_eq!(seconds(Reuse::Silent, Wish::MaxStale(1)), Some(1));
        assert_eq!(seconds(Reuse::Silent, Wish::MaxAge(1)), None);
        assert_eq!(seconds(Reuse::Expired, Wish::MaxStale(1)), None);
        assert_eq!(seconds(Reuse::Shared, Wish::MaxAge(1)), Some(1));
        assert_eq!(seconds(Reuse::Aged, Wish::MaxAge(60)), Some(0));
        assert_eq!(seconds(Reuse::Immutable, Wish::MaxAge(1)), Some(2));
        assert_eq!(seconds(Reuse::Until, Wish::MinFresh(1)), Some(1));
        assert_eq!(seconds(Reuse::Until, Wish::MaxStale(1)), Some(3));
        assert_eq!(seconds(Reuse::Strict, Wish::MaxStale(1)), Some(2));
    }
}
