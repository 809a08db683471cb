//! Phones: SIPp (apt's `sip-tester`), one process for each end of a call, so that each has ports of its own.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use farhop_netdev::Running;
use farhop_testbed::{Place, Testbed};

use crate::MeasureError;

/// Of all phones: SIP, then speech of callers and called.
pub(super) const SIP: u16 = 5060;
pub(crate) const SPEECH: (u16, u16) = (20_000, 21_999);
const CALLED: u16 = 20_000;
const CALLERS: u16 = 21_000;
/// SIPp takes four ports for media from the one it is given, two of them for pictures.
const PORTS: u16 = 4;

const OFFER: &str = "Content-Type: application/sdp
Content-Length: [len]

v=0
o=phone 1 1 IN IP[local_ip_type] [local_ip]
s=-
c=IN IP[media_ip_type] [media_ip]
t=0 0
m=audio [rtpstream_audio_port] RTP/AVP 18
a=rtpmap:18 G729/8000
a=ptime:20
";

/// Calls that talk, until they are dropped.
pub(crate) struct Phones {
    _running: Vec<Running>,
}

impl Phones {
    /// So many calls from the client to the origins, which speak for as long as they run.
    pub(crate) fn call(testbed: &Testbed, folder: &Path, calls: u16) -> Result<Phones, MeasureError> {
        let failed = MeasureError::system("scenarios of SIPp");
        // What is said is of no matter; its frames are 10 bytes each 10 ms.
        std::fs::write(folder.join("speech.g729"), [b'x'; 20_000]).map_err(&failed)?;
        let (caller, called) = (folder.join("caller.xml"), folder.join("called.xml"));
        std::fs::write(&caller, caller_scenario()).map_err(&failed)?;
        std::fs::write(&called, called_scenario()).map_err(&failed)?;
        let mut running = Vec::new();
        for number in 0..calls {
            let at = testbed.addresses.origin(number + 1);
            let mut command = phone(folder, &called, at, SIP, CALLED + PORTS * number);
            command.arg("-nostdin");
            running.push(testbed.spawn_in(Place::Origins, command)?);
        }
        for number in 0..calls {
            let from = testbed.addresses.client;
            let mut command = phone(folder, &caller, from, SIP + 1 + number, CALLERS + PORTS * number);
            command
                .args(["-nostdin", "-m", "1"])
                .arg(format!("{}:{SIP}", testbed.addresses.origin(number + 1)));
            running.push(testbed.spawn_in(Place::Client, command)?);
        }
        Ok(Phones { _running: running })
    }
}

/// Why there are none, if so.
pub(crate) fn lacking() -> Option<&'static str> {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).map(|it| it.join("sipp")).any(|it: PathBuf| it.is_file())
    });
    (!found).then_some("sip-tester")
}

fn phone(folder: &Path, scenario: &Path, at: Ipv4Addr, sip: u16, speech: u16) -> Command {
    let mut command = Command::new("sipp");
    command.current_dir(folder).arg("-sf").arg(scenario);
    command.args(["-i", &at.to_string(), "-mi", &at.to_string()]);
    command.args(["-p", &sip.to_string(), "-mp", &speech.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn request(method: &str, number: u32, tag: &str, rest: &str) -> String {
    format!(
        "{method} sip:called@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:caller@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:called@[remote_ip]:[remote_port]>{tag}
Call-ID: [call_id]
CSeq: {number} {method}
Contact: <sip:caller@[local_ip]:[local_port]>
Max-Forwards: 70
{rest}"
    )
}

const SPEAK: &str = "<nop><action><exec rtp_stream=\"speech.g729,-1,18,G729/8000\"/></action></nop>\n";
const NOTHING: &str = "Content-Length: 0\n\n";

fn caller_scenario() -> String {
    let (invite, ack) = (request("INVITE", 1, "", OFFER), request("ACK", 1, "[peer_tag_param]", NOTHING));
    format!(
        "<?xml version=\"1.0\" encoding=\"ISO-8859-1\" ?>
<scenario name=\"caller\">
<send retrans=\"1500\"><![CDATA[\n{invite}]]></send>
<recv response=\"100\" optional=\"true\"/>
<recv response=\"180\" optional=\"true\"/>
<recv response=\"200\"/>
<send><![CDATA[\n{ack}]]></send>
{SPEAK}<pause milliseconds=\"3600000\"/>
</scenario>
"
    )
}

fn called_scenario() -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"ISO-8859-1\" ?>
<scenario name=\"called\">
<recv request=\"INVITE\"/>
<send retrans=\"1500\"><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:];tag=[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:[local_ip]:[local_port]>
{OFFER}]]></send>
<recv request=\"ACK\"/>
{SPEAK}<recv request=\"BYE\"/>
</scenario>
"
    )
}
