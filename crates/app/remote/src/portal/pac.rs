//! The proxy auto-configuration file: which requests browsers bring to the proxy. Pure.
//!
//! It asks no name server (`isInNet` and its like would, and a lookup over a satellite is the wait that the proxy is
//! there to spare), and it is written for the oldest script engines that still read such files.

use std::net::IpAddr;

use farhop_consent::{Form, Host, HostPattern};
use farhop_settings::Cidr;

use super::HOST;

/// Where the file is, at this proxy's own address.
pub(super) const PATHS: [&str; 2] = ["/proxy.pac", "/wpad.dat"];
pub(super) const CONTENT_TYPE: &str = "application/x-ns-proxy-autoconfig";

/// Addresses that mean something only near the user: ground would refuse them.
const NEAR: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::/127",
    "fc00::/7",
    "fe80::/10",
];
/// Domains that do (RFC 6761, 6762, 8375, and `internal` as ICANN reserved it).
const NEARBY: &[&str] = &["localhost", "local", "home.arpa", "internal"];

/// What goes past the proxy besides what is near, and whether anything else may.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ways {
    /// Hosts; its exceptions stand over everything but the portal itself.
    pub(crate) bypass: Vec<HostPattern>,
    /// Addresses.
    pub(crate) ranges: Vec<Cidr>,
    /// Whether browsers may go without the proxy while it does not answer.
    pub(crate) direct: bool,
}

/// The file for a client that reaches the proxy at `proxy` (`host:port`).
pub(super) fn file(proxy: &str, ways: &Ways) -> String {
    let (mut past, mut through) = (Vec::new(), vec![HOST.to_owned()]);
    past.extend(NEARBY.iter().map(|domain| format!(".{domain}")));
    // Asked for by itself, the proxy is no web site.
    let own = proxy.rsplit_once(':').map_or(proxy, |(host, _)| host);
    past.extend(own.parse().map(|host| key(&host)));
    for pattern in &ways.bypass {
        let keys = if pattern.is_exception { &mut through } else { &mut past };
        match &pattern.form {
            Form::All => keys.push("*".into()),
            Form::Exactly(host) => keys.push(key(host)),
            Form::Below(host) => keys.push(format!(".{host}")),
            Form::AndBelow(host) => keys.extend([key(host), format!(".{host}")]),
        }
    }
    let near = NEAR.iter().filter_map(|range| range.parse().ok());
    let ranges: Vec<_> =
        near.chain(ways.ranges.iter().copied()).map(|range| bits(range.network, range.prefix)).collect();
    let way = if ways.direct { format!("PROXY {proxy}; DIRECT") } else { format!("PROXY {proxy}") };
    SCRIPT
        .replace("$way", &literal(&way))
        .replace("$through", &list(&through))
        .replace("$past", &list(&past))
        .replace("$ranges", &list(&ranges))
}

/// How the script compares a host: a name as it is, an address as its family and bits.
fn key(host: &Host) -> String {
    match host {
        Host::Name(name) => name.to_string(),
        Host::Address(address) => bits(*address, if address.is_ipv4() { 32 } else { 128 }),
    }
}

const SCRIPT: &str = r#"// Farhop: which requests go through the proxy. What is near goes past it.
var way = $way;
// Hosts: a name, ".name" for all below it, "*" for all, or an address as 4 or 6 and its bits.
var through = $through;
var past = $past;
// Address ranges: 4 or 6, then the leading bits.
var ranges = $ranges;

function FindProxyForURL(url, host) {
  var i, address;
  host = host.toLowerCase().replace(/\.$/, "");
  address = bits(host);
  if (!/^(https?|wss?):/i.test(url)) return "DIRECT";
  if (isListed(through, address || host)) return way;
  if (isListed(past, address || host)) return "DIRECT";
  for (i = 0; address && i < ranges.length; i++)
    if (address.indexOf(ranges[i]) == 0) return "DIRECT";
  return address || host.indexOf(".") >= 0 ? way : "DIRECT";
}

function isListed(list, host) {
  var i, entry;
  for (i = 0; i < list.length; i++) {
    entry = list[i];
    if (entry == "*" || entry == host) return true;
    if (entry.charAt(0) == "." && host.slice(-entry.length) == entry) return true;
  }
  return false;
}

// An address as its family and bits; "" for a name.
function bits(host) {
  var i, parts, rest, out = "";
  if (/^\d+\.\d+\.\d+\.\d+$/.test(host)) {
    parts = host.split(".");
    for (i = 0; i < 4; i++) out += binary(parseInt(parts[i], 10), 8);
    return "4" + out;
  }
  if (host.indexOf(":") < 0) return "";
  parts = host.replace(/[\[\]]/g, "").split("::");
  rest = parts.length > 1 && parts[1] ? parts[1].split(":") : [];
  parts = parts[0] ? parts[0].split(":") : [];
  while (parts.length + rest.length < 8) parts.push("0");
  parts = parts.concat(rest);
  for (i = 0; i < 8; i++) out += binary(parseInt(parts[i], 16), 16);
  // An address of version 4 in the clothes of version 6 (RFC 4291, 2.5.5.2).
  if (/^0{80}1{16}/.test(out)) return "4" + out.slice(96);
  return "6" + out;
}

function binary(number, width) {
  var out = number.toString(2);
  while (out.length < width) out = "0" + out;
  return out;
}
"#;

/// The leading bits of a range, as the script writes addresses.
fn bits(network: IpAddr, prefix: u8) -> String {
    let all = match network {
        IpAddr::V4(address) => format!("4{:032b}", address.to_bits()),
        IpAddr::V6(address) => format!("6{:0128b}", address.to_bits()),
    };
    all[..1 + usize::from(prefix)].to_owned()
}

fn list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| literal(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A text as a script's literal. Hosts have no other characters than these; what else came would not be one.
fn literal(text: &str) -> String {
    let plain: String = text.chars().filter(|c| matches!(c, ' '..='~')).collect();
    serde_json::Value::String(plain).to_string()
}
