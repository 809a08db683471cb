//! Sets of hosts against a reference that compares label by label.

use farhop_consent::{Form, Host, HostPattern, HostSet};
use proptest::prelude::*;

/// Few labels, some of which look alike, so that random names meet.
fn label() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "ab", "ba", "a-b", "xn--bcher-kva", "bücher", "A", "1"])
}

fn name() -> impl Strategy<Value = String> {
    // The last is no number, or the name would be read as an address.
    (
        prop::collection::vec(label(), 0..4),
        prop::sample::select(vec!["a", "test"]),
        prop::sample::select(vec!["", "."]),
    )
        .prop_map(|(mut labels, last, dot)| {
            labels.push(last);
            labels.join(".") + dot
        })
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![8 => name(), 1 => prop::sample::select(vec!["10.0.0.1", "[2001:db8::1]"]).prop_map(str::to_owned)]
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => host(),
        3 => name().prop_map(|name| format!(".{name}")),
        3 => name().prop_map(|name| format!("*.{name}")),
        1 => Just("*".to_owned()),
    ]
}

/// Whether the last labels of `host` are those of `above`, and how many more it has.
fn labels_below(host: &Host, above: &Host) -> Option<usize> {
    let (Host::Name(host), Host::Name(above)) = (host, above) else { return None };
    let (mut host, mut above) = (host.rsplit('.'), above.rsplit('.'));
    loop {
        match (above.next(), host.next()) {
            (None, rest) => return Some(usize::from(rest.is_some()) + host.count()),
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => return None,
        }
    }
}

fn naive(forms: &[Form], host: &Host) -> bool {
    forms.iter().any(|form| match form {
        Form::All => true,
        Form::Exactly(it) => it == host,
        Form::AndBelow(it) => labels_below(host, it).is_some(),
        Form::Below(it) => labels_below(host, it).is_some_and(|below| below > 0),
    })
}

proptest! {
    #[test]
    fn a_set_holds_what_its_patterns_name(patterns in prop::collection::vec(pattern(), 0..6), host in host()) {
        let forms: Vec<Form> =
            patterns.iter().map(|text| text.parse::<HostPattern>().unwrap().form).collect();
        let set: HostSet = forms.iter().collect();
        let host: Host = host.parse().unwrap();
        prop_assert_eq!(set.contains(&host), naive(&forms, &host));
    }

    #[test]
    fn hosts_and_patterns_read_back_as_they_are_shown(host in host(), pattern in pattern()) {
        let host: Host = host.parse().unwrap();
        prop_assert_eq!(host.to_string().parse::<Host>().unwrap(), host);
        let pattern: HostPattern = pattern.parse().unwrap();
        prop_assert_eq!(pattern.to_string().parse::<HostPattern>().unwrap(), pattern);
    }

    /// Names come from clients.
    #[test]
    fn whatever_is_no_host_is_refused_and_not_more(text in "\\PC{0,40}") {
        if let Ok(host) = text.parse::<Host>() {
            prop_assert_eq!(host.to_string().parse::<Host>(), Ok(host.clone()));
            prop_assert!(host.suffixes().all(|suffix| !suffix.is_empty()));
        }
    }
}
