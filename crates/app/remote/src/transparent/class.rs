//! The class of a connection that was caught, by its port. No I/O.

use farhop_htotp::frame::Class;
use farhop_settings::RemoteSettings;
use farhop_settings::transparent::TransparentSettings;

/// What is in no list counts as a page.
pub(super) fn of(port: u16, settings: &TransparentSettings) -> Class {
    let lists = [
        (Class::Interactive, &settings.interactive_ports),
        (Class::Streaming, &settings.streaming_ports),
        (Class::Bulk, &settings.bulk_ports),
        (Class::Background, &settings.background_ports),
    ];
    let listed = lists.into_iter().find(|(_, ports)| ports.iter().any(|range| range.contains(port)));
    listed.map_or(Class::Web, |(class, _)| class)
}

/// The class of a flow of datagrams: calls' media have ports of their own.
pub(crate) fn of_datagrams(port: u16, settings: &RemoteSettings) -> Class {
    let is_voice = settings.udp.voice_ports.iter().any(|range| range.contains(port));
    if is_voice { Class::Expedited } else { of(port, &settings.transparent) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_settings::{LocalSettings, parse};

    #[test]
    fn ports_have_the_class_of_their_list_and_others_that_of_pages() {
        let sets = ["remote.transparent.interactive_ports=22,6000-6009".to_owned()];
        let settings: LocalSettings = parse("", "".as_ref(), &sets).unwrap();
        for (port, class) in [
            (22, Class::Interactive),
            (6005, Class::Interactive),
            (23, Class::Web),
            (443, Class::Web),
            (1935, Class::Streaming),
            (25, Class::Bulk),
            (6881, Class::Background),
        ] {
            assert_eq!(of(port, &settings.remote.transparent), class, "{port}");
        }
    }
}
