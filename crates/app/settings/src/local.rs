//! Settings of `farhop local`: both ends in one process, each with its own table.

use std::path::Path;

use crate::end::End;
use crate::error::SettingsError;
use crate::ground::GroundSettings;
use crate::load::{Checked, conflict};
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

impl LocalSettings {
    /// What each end has for itself alone is not the other's, too.
    fn check_apart(&self, source: &Source) -> Result<(), SettingsError> {
        let folders = (&self.remote.store.directory, &self.ground.store.directory);
        if let (Some(remote), Some(ground)) = folders
            && is_same(remote, ground)
        {
            let reason = "'remote.store.directory' and 'ground.store.directory' are one folder, and each store needs one of its own; name another";
            return Err(conflict(source, "ground.store.directory", reason));
        }
        if is_same(&self.remote.control, &self.ground.control) {
            let reason = "'remote.control' and 'ground.control' are one socket; name another";
            return Err(conflict(source, "ground.control", reason));
        }
        Ok(())
    }
}

/// Whether both paths lead to one place, as far as they say so themselves.
fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
    whole(one) == whole(other)
}

impl Checked for LocalSettings {
    const END: End = End::Local;

    fn check(&self, source: &Source) -> Result<(), SettingsError> {
        self.remote.check_alone(source, "remote.")?;
        self.ground.check_alone(source, "ground.")?;
        self.check_apart(source)
    }
}
