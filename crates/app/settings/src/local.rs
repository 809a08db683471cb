//! Settings of `farhop local`: both ends in one process, each with its own table.

use crate::end::End;
use crate::error::SettingsError;
use crate::ground::GroundSettings;
use crate::load::Checked;
use crate::remote::RemoteSettings;
use crate::section::settings;
use crate::source::Source;

settings! {
    /// Settings of `farhop local`. Identities are made on the spot and peers need not be named: each end knows the other.
    pub struct LocalSettings {
        values {}
        tables {
            /// The end beside the users.
            remote: RemoteSettings;
            /// The end near the internet.
            ground: GroundSettings;
        }
    }
}

impl Checked for LocalSettings {
    const END: End = End::Local;

    fn check(&self, source: &Source) -> Result<(), SettingsError> {
        self.remote.check_alone(source, "remote.")?;
        self.ground.check_alone(source, "ground.")
    }
}
