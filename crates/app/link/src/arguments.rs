//! What callers of the control socket write, made into what `core/diffserv` takes.

use std::time::Duration;

use farhop_diffserv::calls::{CallId, Codec, Media, Offer, rate};
use farhop_units::{BitRate, parse_duration};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::CallTerms;

/// `NEW_VOICE_CALL`'s arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct NewCall {
    /// The call's name, which it is released by.
    pub call: String,
    /// Its codec: `G.729`, `PCMA`, `Opus/24000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codec: Option<String>,
    /// How long the speech of a packet is: `20 ms`; what is usual for the codec where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_time: Option<String>,
    /// What it takes in each direction, all headers counted, in place of what follows from the codec: `24 kbit/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Where its packets go: addresses with UDP ports, of either end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<String>,
}

/// `CAPACITY_GRANTED`'s arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Granted {
    /// What is granted, in IP packets: `300 kbit/s`.
    rate: String,
    /// How long that counts unless it is told again: `30 s`.
    #[serde(default)]
    lasts: Option<String>,
}

/// How long a grant counts where nobody says.
const LASTS: Duration = Duration::from_secs(30);

impl Granted {
    pub(crate) fn read(args: Value) -> Result<Granted, String> {
        serde_json::from_value(args).map_err(|error| {
            format!("what is granted is written like {{\"rate\":\"300 kbit/s\",\"lasts\":\"30 s\"}}: {error}")
        })
    }

    pub(crate) fn terms(&self) -> Result<(BitRate, Duration), String> {
        let rate = self.rate.parse::<BitRate>().map_err(|error| error.to_string())?;
        let lasts =
            self.lasts.as_deref().map(parse_duration).transpose().map_err(|error| error.to_string())?;
        let lasts = lasts.unwrap_or(LASTS);
        if lasts > LONGEST {
            return Err("a grant lasts a day at most unless it is told again".into());
        }
        Ok((rate, lasts))
    }
}

/// Nothing on demand is granted for longer.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    call: String,
}

impl NewCall {
    pub(crate) fn read(args: Value) -> Result<NewCall, String> {
        serde_json::from_value(args).map_err(|error| {
            format!("a call is written like {{\"call\":\"a1\",\"codec\":\"G.729\",\"packet_time\":\"20 ms\"}}: {error}")
        })
    }

    pub(crate) fn offer(&self, terms: &CallTerms) -> Result<Offer, String> {
        let codec =
            self.codec.as_deref().map(str::parse::<Codec>).transpose().map_err(|error| error.to_string())?;
        let time =
            self.packet_time.as_deref().map(parse_duration).transpose().map_err(|error| error.to_string())?;
        let said =
            self.rate.as_deref().map(str::parse::<BitRate>).transpose().map_err(|error| error.to_string())?;
        let codec = codec.map(|codec| (codec, time.unwrap_or_else(|| codec.usual_packet_time())));
        if codec.is_none() && time.is_some() {
            return Err("a packet time says nothing without a codec; name one".into());
        }
        let media: Vec<Media> = self.media.iter().map(|text| media(text)).collect::<Result<_, _>>()?;
        let hop = terms.hop.of_media(&media);
        let counted = match codec {
            // Also where another figure is said: what cannot be a packet is a slip.
            Some((codec, time)) => Some(rate(codec, time, &hop).map_err(|error| error.to_string())?),
            None => None,
        };
        let rate = said.or(terms.plain).or(counted);
        let rate = rate.ok_or("what the call takes is not known; name its codec or its rate")?;
        Ok(Offer { id: call_id(&self.call)?, rate, codec, media })
    }
}

/// Where packets of a call go, as callers write it.
///
/// # Errors
/// It is no address with a port, which may not be 0.
pub fn media(text: &str) -> Result<Media, String> {
    text.parse::<Media>().ok().filter(|it| it.port() > 0).ok_or_else(|| {
        format!("'{text}' is no address with a port, write it like '10.0.0.5:16384' or '[2001:db8::5]:16384'")
    })
}

/// The name in `{"call":NAME}`.
pub(crate) fn named(args: Value) -> Result<CallId, String> {
    let Named { call } = serde_json::from_value(args)
        .map_err(|error| format!("a call is named like {{\"call\":\"a1\"}}: {error}"))?;
    call_id(&call)
}

/// A call's name, as callers write it.
///
/// # Errors
/// It is none.
pub fn call_id(text: &str) -> Result<CallId, String> {
    text.parse()
        .map_err(|()| "a call's name has 1 to 255 letters, digits and signs of ASCII, and no blank".into())
}

/// For people: `20 ms`.
pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_diffserv::calls::Hop;
    use serde_json::json;

    fn offered(args: Value, plain: Option<BitRate>) -> Result<Offer, String> {
        let terms = CallTerms { hop: Hop::PLAIN, plain, lease: Duration::from_secs(60) };
        NewCall::read(args).and_then(|call| call.offer(&terms))
    }

    #[test]
    fn a_call_takes_what_is_said_else_the_plain_figure_else_what_its_codec_needs() {
        let rate = |args, plain| offered(args, plain).unwrap().rate;
        let g729 = || json!({"call": "a", "codec": "G.729"});
        assert_eq!(rate(g729(), None), BitRate::kbit(24));
        assert_eq!(rate(g729(), Some(BitRate::kbit(8))), BitRate::kbit(8));
        let said = json!({"call": "a", "codec": "G.729", "rate": "30 kbit/s"});
        assert_eq!(rate(said, Some(BitRate::kbit(8))), BitRate::kbit(30));
    }

    #[test]
    fn a_call_between_ipv6_addresses_takes_their_longer_headers() {
        let rate = |media: &[&str]| {
            let args = json!({"call": "a", "codec": "G.729", "media": media});
            offered(args, None).unwrap().rate
        };
        assert_eq!(rate(&["10.0.0.5:16384"]), BitRate::kbit(24));
        assert_eq!(rate(&["[2001:db8::5]:16384"]), BitRate::kbit(32));
        assert_eq!(rate(&["10.0.0.5:16384", "[2001:db8::5]:16384"]), BitRate::kbit(32));
    }

    #[test]
    fn what_is_no_call_is_refused_in_a_line() {
        for (args, word) in [
            (json!(null), "a call is written like"),
            (json!({"call": "a", "kodek": "G.729"}), "kodek"),
            (json!({"call": "a b", "codec": "G.729"}), "no blank"),
            (json!({"call": "a", "codec": "G.7"}), "no codec known here"),
            (json!({"call": "a"}), "name its codec or its rate"),
            (json!({"call": "a", "rate": "8"}), "not a bit rate"),
            (json!({"call": "a", "codec": "G.729", "packet_time": "15 ms"}), "whole frames"),
            (json!({"call": "a", "rate": "8 kbit/s", "packet_time": "15 ms"}), "without a codec"),
            (json!({"call": "a", "codec": "G.729", "media": ["10.0.0.1"]}), "no address with a port"),
        ] {
            let line = offered(args, None).unwrap_err();
            assert!(line.contains(word) && !line.contains('\n'), "{line}");
        }
    }
}
