//! Remotes at the further terminals of a link: each with an identity, a folder and a control socket of its own, all of one ground.

use std::net::SocketAddr;
use std::path::PathBuf;

use farhop_testbed::{Running, Terminal};

use crate::end_settings::{EndSettings, Tuning, remote_settings};
use crate::ends::{Key, Stage};
use crate::scene::{last_words, this_program, with_stderr};
use crate::stand::PROXY_PORT;
use crate::{CompareError, Interception, Variant};

/// What all remotes of a ground are told.
pub(crate) struct Common<'a> {
    pub(crate) variant: Variant,
    pub(crate) tuning: &'a Tuning,
    pub(crate) profile: &'a str,
    pub(crate) ground: &'a Key,
    pub(crate) carrier: SocketAddr,
}

/// One of them, running.
pub(crate) struct Further {
    /// Where the users of its terminal find it.
    pub(crate) proxy: SocketAddr,
    pub(crate) control: PathBuf,
    pub(crate) process: Running,
    stderr: PathBuf,
}

impl Further {
    /// Starts it, without waiting for its carrier.
    ///
    /// # Errors
    /// Its folder cannot be written, or it cannot be started.
    pub(crate) fn start(
        stage: Stage<'_>,
        terminal: &Terminal,
        own: &Key,
        common: &Common<'_>,
    ) -> Result<Further, CompareError> {
        let folder = stage.folder.join(format!("remote-{}", terminal.number));
        std::fs::create_dir_all(&folder).map_err(CompareError::file(&folder))?;
        let (control, file, stderr) =
            (folder.join("remote.sock"), folder.join("remote.toml"), folder.join("stderr"));
        let proxy = SocketAddr::from((terminal.remote_address, PROXY_PORT));
        let with = stage.interception.filter(|_| common.variant.intercepts());
        let with = with.map(|with| Interception { state: folder.join("consent.json"), ..with.clone() });
        if let Some(with) = &with {
            let _ = std::fs::remove_file(&with.state); // of the start before, if there was one
        }
        let settings = EndSettings {
            listen: proxy,
            control: &control,
            profile: common.profile,
            own,
            others: vec![common.ground.public.as_str()],
            tuning: common.tuning,
        };
        let text = remote_settings(&settings, common.carrier, with.as_ref());
        std::fs::write(&file, text).map_err(CompareError::file(&file))?;
        let mut command = this_program()?;
        command.args(["remote", "--config"]).arg(file);
        let process = terminal.spawn_remote(with_stderr(command, &stderr)?)?;
        Ok(Further { proxy, control, process, stderr })
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// It does not; with its last words.
    pub(crate) fn check_alive(&mut self) -> Result<(), CompareError> {
        match self.process.try_wait() {
            Ok(Some(status)) => Err(CompareError::End {
                end: "remote of another terminal",
                reason: format!("it ended ({status}): {}", self.last_words()),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn last_words(&self) -> String {
        last_words(&self.stderr)
    }
}
