//! How the CA's certificate is installed, and taken away again, on the major systems. Pure.

use super::html::{self, Text};
use super::{Interception, View};

pub(super) fn page(view: &View) -> String {
    let main = match &view.interception {
        None => "<section>\n<p>There is nothing to install: on this network secure pages are passed on unread.</p>\n</section>\n".to_owned(),
        Some(interception) => [certificate(interception), systems(interception, &view.proxy)].concat(),
    };
    html::page("The certificate", &main)
}

fn certificate(interception: &Interception) -> String {
    let certificate = &interception.certificate;
    let subject = Text(certificate.subject());
    // Lines break between bytes.
    let fingerprint = certificate.fingerprint().replace(':', ":<wbr>");
    let until = farhop_authority::day(certificate.valid_until());
    let limits = match certificate.permitted().subtrees() {
        [] => String::new(),
        _ => format!(
            "<p>It is good for these hosts only: {}.</p>\n",
            Text(&certificate.permitted().to_string())
        ),
    };
    let over = match interception.in_force {
        true => "",
        false => {
            "<p><strong>It is not valid today</strong>, and there is no use in installing it. Those who run this network can make a new one.</p>\n"
        }
    };
    let check = if interception.covers_portal {
        "<p>Whether it is installed is easily seen: then <a href=\"https://farhop.internal/\">https://farhop.internal/</a> opens without a warning.</p>\n"
    } else {
        ""
    };
    let older = interception.older.as_ref().map_or_else(String::new, |(older, until)| {
        format!(
            "<p><strong>It follows {}</strong>, which will do until {until}. If you have that one, install this one before then, and remove that one.</p>\n",
            Text(older)
        )
    });
    format!(
        "<section>\n<h2>{subject}</h2>\n{over}{older}\
         <p class=\"downloads\"><a href=\"/ca.pem\">PEM file</a> <a href=\"/ca.der\">Windows and Android (.crt)</a> <a href=\"/ca.mobileconfig\">iPhone, iPad and Mac (profile)</a></p>\n\
         <p>Valid until {until}. SHA-256 fingerprint:</p>\n<p class=\"print\">{fingerprint}</p>\n{limits}{check}\
         <p><strong>Whoever holds the key of a certificate that you install can pose as any site to you.</strong> Install it only if you trust those who run this network, compare the fingerprint with the one that they give you, and remove the certificate when you leave.</p>\n</section>\n"
    )
}

/// A system, what to do there, and how to undo it; `{name}` stands for the certificate's, `{proxy}` for the proxy's address.
const SYSTEMS: &[(&str, &[&str], &str)] = &[
    (
        "Windows (Edge, Chrome)",
        &[
            "Download the .crt file and open it.",
            "Choose <b>Install Certificate</b>, then <b>Current User</b>.",
            "Choose <b>Place all certificates in the following store</b>, <b>Browse</b>, <b>Trusted Root Certification Authorities</b>.",
            "Confirm, and start the browser again.",
        ],
        "Run <code>certmgr.msc</code>, open <b>Trusted Root Certification Authorities, Certificates</b>, and delete {name}.",
    ),
    (
        "macOS (Safari, Chrome)",
        &[
            "Download the profile and open it.",
            "In <b>System Settings</b>, <b>General</b>, <b>Device Management</b> (before macOS 15: <b>Privacy &amp; Security</b>, <b>Profiles</b>), open it and choose <b>Install</b>.",
            "In <b>Keychain Access</b>, find {name}, open <b>Trust</b> and choose <b>Always Trust</b> where it does not say so.",
        ],
        "Remove the profile where you installed it.",
    ),
    (
        "iPhone and iPad",
        &[
            "Open this page in <b>Safari</b>, download the profile and allow it.",
            "In <b>Settings</b>, <b>General</b>, <b>VPN &amp; Device Management</b>, open the profile and choose <b>Install</b>.",
            "In <b>Settings</b>, <b>General</b>, <b>About</b>, <b>Certificate Trust Settings</b>, switch {name} on.",
        ],
        "In <b>Settings</b>, <b>General</b>, <b>VPN &amp; Device Management</b>, remove the profile.",
    ),
    (
        "Android",
        &[
            "Download the .crt file.",
            "In <b>Settings</b>, search for <b>CA certificate</b> (under <b>Security</b>, <b>Encryption &amp; credentials</b>, <b>Install a certificate</b>).",
            "Choose <b>Install anyway</b> and the file. Chrome uses it; most apps do not, and are passed on unread.",
        ],
        "In the same place, <b>Trusted credentials</b>, <b>User</b>: remove {name}.",
    ),
    (
        "Firefox, on any system",
        &[
            "Windows, macOS and Android: Firefox uses the system's certificates. Install it there, and start Firefox again.",
            "Linux: download the PEM file. In <b>Settings</b>, <b>Privacy &amp; Security</b>, <b>Certificates</b>, choose <b>View Certificates</b>, <b>Authorities</b>, <b>Import</b>, and tick <b>Trust this CA to identify websites</b>.",
        ],
        "In the same list of authorities, <b>Delete or Distrust</b> {name}.",
    ),
    (
        "Debian and Ubuntu",
        &[
            "<code>sudo curl -x http://{proxy} -o /usr/local/share/ca-certificates/farhop-ca.crt http://farhop.internal/ca.pem</code>",
            "<code>sudo update-ca-certificates</code>",
        ],
        "<code>sudo rm /usr/local/share/ca-certificates/farhop-ca.crt &amp;&amp; sudo update-ca-certificates --fresh</code>",
    ),
    (
        "Fedora",
        &[
            "<code>sudo curl -x http://{proxy} -o /etc/pki/ca-trust/source/anchors/farhop-ca.pem http://farhop.internal/ca.pem</code>",
            "<code>sudo update-ca-trust</code>",
        ],
        "<code>sudo rm /etc/pki/ca-trust/source/anchors/farhop-ca.pem &amp;&amp; sudo update-ca-trust</code>",
    ),
    (
        "Chromium and Chrome on Linux",
        &[
            "Download the PEM file.",
            "Open <code>chrome://certificate-manager</code>, <b>Local certificates</b>, <b>Custom</b>, <b>Installed by you</b>, and import it under <b>Trusted Certificates</b>.",
            "Older versions: <code>certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n Farhop -i farhop-ca.pem</code> (package libnss3-tools).",
        ],
        "Delete it in the same place, or <code>certutil -d sql:$HOME/.pki/nssdb -D -n Farhop</code>.",
    ),
];

fn systems(interception: &Interception, proxy: &str) -> String {
    let name = format!("<b>{}</b>", Text(interception.certificate.subject()));
    let proxy = Text(proxy).to_string();
    let fill = |text: &str| text.replace("{proxy}", &proxy).replace("{name}", &name);
    let mut out = String::from("<section>\n<h2>Installing it</h2>\n");
    for (system, steps, undo) in SYSTEMS {
        let steps: String = steps.iter().map(|step| format!("<li>{}</li>\n", fill(step))).collect();
        let undo = fill(undo);
        out.push_str(&format!(
            "<details>\n<summary>{system}</summary>\n<ol>\n{steps}</ol>\n<p>To take it away: {undo}</p>\n</details>\n"
        ));
    }
    out.push_str("</section>\n");
    out
}
