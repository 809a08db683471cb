//! The certificate as an Apple configuration profile: iOS, iPadOS and macOS install it with a name and a way to
//! remove it again. Pure.

use crate::certificate::CaCertificate;

/// The profile, XML. The same certificate always gives the same profile, so that installing it again replaces it.
pub(crate) fn profile(certificate: &CaCertificate) -> String {
    let digest = certificate.digest();
    let pem = certificate.pem();
    let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let name = escape(certificate.subject());
    // Each half of the digest is one: of the profile, and of its payload.
    let (outer, inner) = (uuid(&digest[..16]), uuid(&digest[16..]));
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>PayloadContent</key>
	<array>
		<dict>
			<key>PayloadCertificateFileName</key>
			<string>farhop-ca.cer</string>
			<key>PayloadContent</key>
			<data>{base64}</data>
			<key>PayloadDescription</key>
			<string>Lets Farhop answer HTTPS for this device.</string>
			<key>PayloadDisplayName</key>
			<string>{name}</string>
			<key>PayloadIdentifier</key>
			<string>farhop.authority.{inner}</string>
			<key>PayloadType</key>
			<string>com.apple.security.root</string>
			<key>PayloadUUID</key>
			<string>{inner}</string>
			<key>PayloadVersion</key>
			<integer>1</integer>
		</dict>
	</array>
	<key>PayloadDescription</key>
	<string>Installs the certificate of the Farhop proxy, so that secure pages come quickly over the satellite link. Remove this profile to take it away.</string>
	<key>PayloadDisplayName</key>
	<string>{name}</string>
	<key>PayloadIdentifier</key>
	<string>farhop.authority.{outer}</string>
	<key>PayloadRemovalDisallowed</key>
	<false/>
	<key>PayloadType</key>
	<string>Configuration</string>
	<key>PayloadUUID</key>
	<string>{outer}</string>
	<key>PayloadVersion</key>
	<integer>1</integer>
</dict>
</plist>
"#
    )
}

/// Sixteen bytes as a UUID of version 8: values of one's own (RFC 9562 §5.8).
fn uuid(bytes: &[u8]) -> String {
    let mut hex: Vec<u8> = bytes.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()).collect();
    hex[12] = b'8';
    hex[16] = b'8' + (bytes[8] & 1);
    let text: String = hex.into_iter().map(char::from).collect();
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_its_version_and_variant() {
        let text = uuid(&[0xff; 16]);
        assert_eq!(text, "FFFFFFFF-FFFF-8FFF-9FFF-FFFFFFFFFFFF");
    }

    #[test]
    fn a_name_cannot_break_out_of_the_profile() {
        assert_eq!(escape("a<b>&c"), "a&lt;b&gt;&amp;c");
    }
}
