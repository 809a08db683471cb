//! Settings of datagrams that are caught on their way through the remote.

use std::path::PathBuf;
use std::time::Duration;

use crate::kinds::PortRange;
use crate::section::settings;

settings! {
    /// Which datagrams are caught beside connections, and how they are carried.
    pub struct UdpSettings {
        values {
            /// Whether datagrams (UDP) that pass this machine are caught where connections are (`[transparent]`: `enabled`, `interfaces`, `except`), and carried
            /// over the long hop beside the streams. Not with the application role alone.
            enabled: bool, default "true";
            /// Ports to which they are caught. What is sent to others goes its own way: at 443 browsers speak HTTP/3, which nobody can look
            /// into; where that is dropped they fall back to what can be made quick.
            ports: Vec<PortRange>, default "1-442, 444-65535", live true;
            /// Ports of calls' media: ahead of all else, and dropped when late. Others have the class that `[transparent]` gives their port, or else the classifier.
            voice_ports: Vec<PortRange>, default "", live true;
            /// Ports of SIP, over UDP and TCP: the media that calls announce there (SDP) are carried as voice, too. Empty: nobody listens.
            sip_ports: Vec<PortRange>, default "5060", live true;
            /// Control socket of a link manager (`farhop link run`) that admits these calls: what one takes inside the carrier is held in EF's share there,
            /// and a call for which there is no room goes as pages do. auto: nobody is asked.
            link: Option<PathBuf>, default "auto";
            /// Most flows at a time; of others the datagrams are dropped. Each takes a descriptor at either end.
            flows: u32, default "4096", range "1" to "16000";
            /// Most of them of one client.
            flows_per_client: u32, default "512", range "1" to "16000", live true;
            /// How long a flow may carry nothing (RFC 4787 REQ-5: no less than two minutes, five as a rule).
            idle: Duration, default "5 min", range "10 s" to "10 min", live true;
        }
    }
}
