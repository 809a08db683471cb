//! From settings to what the link manager is told.

use std::time::Duration;

use anyhow::Context;
use farhop_diffserv::calls::{Hop, Ip};
use farhop_diffserv::classify::{Condition, Ports, Rule, standard_beside};
use farhop_diffserv::{DropPrecedence, Share, Shares};
use farhop_link::{CallTerms, Config, FollowTerms, GrantTerms, SipTerms, Window};
use farhop_settings::link_manager::{CarrierSettings, GrantSettings, KindCeilingSettings, WindowSettings};
use farhop_settings::rule::RuleSettings;
use farhop_settings::{Cidr, LinkManagerSettings};

/// What `settings` say.
///
/// # Errors
/// No rate is known, or the shares contradict each other.
pub(crate) fn config(settings: &LinkManagerSettings) -> anyhow::Result<Config> {
    let mut shares = settings.shares.in_order().map(|share| Share { guaranteed: share.0, ceiling: 100 });
    for (share, ceiling) in shares[1..].iter_mut().zip(settings.ceilings.in_order()) {
        share.ceiling = ceiling.0;
    }
    let calls = &settings.calls;
    let hop = Hop {
        ip: if calls.ipv6 { Ip::V6 } else { Ip::V4 },
        compressed: calls.compressed_headers,
        overhead: calls.overhead,
    };
    Ok(Config {
        interface: settings.interface.clone(),
        rate: settings.known_rate().context("rate")?,
        profile: settings.profile.as_ref().filter(|_| settings.rate.is_none()).map(|it| it.name.clone()),
        margin: settings.margin.0,
        shares: Shares::new(shares).context("[shares]")?,
        round_trip: settings.round_trip,
        rules: rules(settings),
        calls: CallTerms { hop, plain: calls.rate, lease: calls.lease },
        state: settings.calls_file(),
        sip: settings.sip.observe.then(|| SipTerms {
            ports: settings.sip.ports.iter().map(|it| (it.first, it.last)).collect(),
            from: settings.sip.from.iter().map(Cidr::net).collect(),
        }),
        ceilings: settings.ceiling.iter().map(KindCeilingSettings::ceiling).collect(),
        windows: settings.window.iter().map(window).collect(),
        follow: settings.follow.echo.map(|echo| FollowTerms {
            echo,
            least: settings.follow.least.0,
            queue: settings.follow.queue,
        }),
        grants: grants(&settings.capacity),
    })
}

fn grants(settings: &GrantSettings) -> GrantTerms {
    GrantTerms {
        modem: settings.modem.as_ref().map(ToString::to_string),
        // The range of the setting is that of the number.
        terminal: settings.terminal.and_then(|terminal| u16::try_from(terminal).ok()),
        ahead: settings.ahead.0,
        least: settings.least.0,
    }
}

/// The operator's rules, that of the carrier, then those that Farhop comes with. One of the operator's that has the name of one of these
/// stands for it.
pub(crate) fn rules(settings: &LinkManagerSettings) -> Vec<Rule> {
    let mut rules: Vec<Rule> = settings.rule.iter().map(RuleSettings::rule).collect();
    let standard = if settings.standard_rules { standard_beside(&rules) } else { Vec::new() };
    // The name of the carrier's is none that a rule of the operator's can have.
    rules.extend(carrier(&settings.carrier).into_iter().chain(standard));
    rules
}

/// What Farhop itself carries stands in a class that has its share: no standard rule knows the port, and with what no rule knows
/// all pages would wait behind the least of other traffic.
fn carrier(settings: &CarrierSettings) -> Option<Rule> {
    let ports: Vec<Ports> =
        settings.ports.iter().map(|it| Ports { first: it.first, last: it.last }).collect();
    let conditions = vec![Condition::Ports(ports)];
    (!settings.ports.is_empty()).then(|| Rule {
        name: "Farhop's carrier".into(),
        service: settings.service,
        precedence: DropPrecedence::Low,
        kind: None,
        conditions,
    })
}

fn window(settings: &WindowSettings) -> Window {
    let after_midnight = |minutes: u16| Duration::from_secs(u64::from(minutes) * 60);
    Window {
        queue: settings.service.queue(),
        hours: (after_midnight(settings.hours.from), after_midnight(settings.hours.to)),
        outside: settings.outside.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_diffserv::classify::standard;
    use farhop_settings::parse;
    use farhop_units::BitRate;
    use std::path::Path;

    fn read(text: &str) -> anyhow::Result<Config> {
        config(&parse(text, Path::new("link.toml"), &[])?)
    }

    #[test]
    fn the_rate_is_the_one_that_is_given_else_that_of_the_profile_and_its_direction() {
        let of =
            |more: &str| read(&format!("interface = 'sat0'\nprofile = 'geo-hylas2'\n{more}")).unwrap().rate;
        assert_eq!(of(""), BitRate::kbit(512));
        assert_eq!(of("direction = 'forward'"), BitRate::mbit(8));
        assert_eq!(of("rate = '1 Mbit/s'"), BitRate::mbit(1));
        let plain = read("interface = 'sat0'\nrate = '1 Mbit/s'").unwrap();
        assert_eq!(
            (plain.rate, plain.source().to_string()),
            (BitRate::mbit(1), "settings".into()),
            "it suffices"
        );
        let line = read("interface = 'sat0'\nprofile = 'geo-9'").unwrap_err();
        assert!(format!("{line:#}").contains("no link profile is called 'geo-9'"), "{line:#}");
    }

    #[test]
    fn each_device_has_a_file_of_calls_of_its_own() {
        let of = |more: &str| {
            read(&format!("interface = 'br.lan'\nprofile = 'geo-hylas2'\n{more}")).unwrap().state
        };
        assert_eq!(of(""), Path::new("link.br.lan.calls"));
        assert_eq!(of("calls_file = 'link.calls'"), Path::new("link.calls"));
    }

    #[test]
    fn own_rules_come_before_the_standard_ones() {
        let text = "interface = 'sat0'\nprofile = 'geo-hylas2'\n[[rule]]\nname = 'pbx'\nservice = 'voice'\nprotocol = 'udp'\nports = ['16384-32767']\n";
        let rules = read(text).unwrap().rules;
        assert_eq!((rules[0].name.as_str(), rules[0].conditions.len()), ("pbx", 2));
        assert_eq!(rules.len(), standard().len() + 2, "and that of the carrier");
        assert_eq!(read(&format!("standard_rules = false\n{text}")).unwrap().rules.len(), 2);
    }

    #[test]
    fn a_rule_that_has_the_name_of_a_standard_one_stands_for_it() {
        let text = "interface = 'sat0'\nrate = '1 Mbit/s'\n[[rule]]\nname = 'telnet'\nservice = 'bulk'\nbegins = ['http']\n";
        let rules = read(text).unwrap().rules;
        assert_eq!((rules[0].name.as_str(), rules[0].service), ("telnet", farhop_diffserv::Service::Bulk));
        assert_eq!(rules.len(), standard().len() + 1, "the carrier's is one more, and telnet's one less");
        let mut names: Vec<_> = rules.iter().map(|rule| &rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rules.len(), "each has a name of its own");
    }

    #[test]
    fn a_rule_may_name_a_drop_precedence_where_its_class_has_them() {
        let of = |service: &str| {
            let rule = format!(
                "[[rule]]\nname = 'clips'\nservice = '{service}'\nprecedence = 'high'\nports = [4000]\n"
            );
            read(&format!("interface = 'sat0'\nprofile = 'geo-hylas2'\n{rule}"))
        };
        let shaping = farhop_link::plan(&of("streaming").unwrap(), Vec::new()).unwrap().shaping;
        assert_eq!((shaping.rules[0].minor, shaping.rules[0].precedence), (0x40, 2));
        let text = shaping.in_words(farhop_netdev::LeafKind::Fifo);
        assert!(text.contains("th dport { 4000 } goto higher_40_2"), "{text}");
        let line = format!("{:#}", of("voice").unwrap_err());
        assert!(line.contains("names a drop precedence, which 'voice' has none of"), "{line}");
    }

    #[test]
    fn the_rate_is_measured_or_granted_and_not_both() {
        let both = "[follow]\necho = '192.0.2.1'\n[capacity]\nmodem = '192.0.2.1:7310'\n";
        let line = read(&format!("interface = 'sat0'\nprofile = 'geo-hylas2'\n{both}")).unwrap_err();
        assert!(format!("{line:#}").contains("either measured"), "{line:#}");
    }

    #[test]
    fn a_carrier_has_the_share_of_pages_or_that_of_another_class() {
        use farhop_diffserv::classify::{Flow, Protocol, classify};
        let of = |more: &str| {
            let config = read(&format!("interface = 'sat0'\nprofile = 'geo-hylas2'\n{more}")).unwrap();
            let mut minors = Vec::new();
            for protocol in [Protocol::Udp, Protocol::Tcp] {
                let flow =
                    Flow::new(protocol, "10.0.0.2:40000".parse().unwrap(), "192.0.2.1:4433".parse().unwrap());
                minors.push(classify(&config.rules, &flow).service);
            }
            // And the kernel is given it.
            let shaping = farhop_link::plan(&config, Vec::new()).unwrap().shaping;
            let rule =
                shaping.rules.iter().find(|rule| rule.ports == [(4433, 4433)] && rule.protocol.is_none());
            (minors, rule.map(|rule| rule.minor))
        };
        use farhop_diffserv::Service::{Interactive, Other, Web};
        assert_eq!(of(""), (vec![Web, Web], Some(0x30)));
        assert_eq!(of("[carrier]\nservice = 'interactive'"), (vec![Interactive; 2], Some(0x20)));
        assert_eq!(of("[carrier]\nports = []"), (vec![Other; 2], None));
        let line =
            read("interface = 'sat0'\nprofile = 'geo-hylas2'\n[carrier]\nservice = 'voice'").unwrap_err();
        assert!(format!("{line:#}").contains("a carrier is no call"), "{line:#}");
    }

    #[test]
    fn ten_calls_of_g729_fit_into_what_is_set_aside_by_default() {
        use farhop_diffserv::calls::{Codec, rate};
        let config = read("interface = 'sat0'\nprofile = 'geo-hylas2'").unwrap();
        let share = farhop_link::plan(&config, Vec::new()).unwrap().plan.ef();
        let call = rate(Codec::G729, std::time::Duration::from_millis(20), &config.calls.hop).unwrap();
        assert_eq!(share.0 / call.0, 10, "the Ethernet header of each packet counted");
    }
}
