//! Where an experiment takes place: the testbed, the origins with their DNS and their CA, the identities of Farhop's ends. Knows
//! no browser and measures nothing; `bench` adds both.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use farhop_orbit::Profile;
use farhop_testbed::{Addresses, Place, Running, Testbed};
use farhop_workload::origins::{OriginsSpec, Ready};

use crate::ends::{Keys, Stage};
use crate::interception::Interception;
use crate::interrupt::Interrupt;
use crate::peers::caddy;
use crate::{CompareError, Plan, Variant, origins};

/// What a scene has besides the sites and servers of its plan.
#[derive(Debug, Default)]
pub struct Besides {
    /// Hosts whose servers the caller runs; the scene gives each an address ([`OriginsSpec::names`]).
    pub names: Vec<String>,
    /// CAs (PEM) that ground accepts beside that of the lab's origins.
    pub roots: Vec<PathBuf>,
    /// Lists of revoked certificates (PEM) that ground heeds.
    pub crls: Vec<PathBuf>,
    /// Terminals that share the link with the first one.
    pub terminals: u16,
    /// Whether something stands in for the sites at the gateway ([`Peer::Nginx`](crate::Peer)): it has their keys.
    pub gateway: bool,
}

/// A testbed with its origins up. Dropping it takes everything down, processes first.
pub struct Scene {
    /// Every server of every site.
    pub spec: OriginsSpec,
    /// What the origins said once they listened.
    pub ready: Ready,
    /// Whether sites are loaded over HTTPS.
    pub(crate) tls: bool,
    /// The CA that the remote intercepts with; none where nothing is intercepted.
    pub interception: Option<Interception>,
    /// Ends every wait when the user wants it.
    pub interrupt: Interrupt,
    /// The identities of Farhop's ends.
    keys: Keys,
    /// The HTTP/3 servers, where a variant wants them.
    caddy: Option<Running>,
    serving: Running,
    /// The namespaces and the link.
    pub testbed: Testbed,
    /// For whatever is written.
    pub folder: tempfile::TempDir,
}

impl Scene {
    /// Brings up the sites and servers that a plan wants, over `profile`; `seed` decides which packets a lossy link loses.
    ///
    /// # Errors
    /// No privileges, a host name used twice, a folder that cannot be read, a server that does not come up.
    pub fn up(
        profile: &Profile,
        seed: u64,
        plan: &Plan,
        besides: Besides,
        interrupt: Interrupt,
    ) -> Result<Scene, CompareError> {
        let folder = tempfile::Builder::new().prefix("farhop-lab-").tempdir();
        let folder = folder.map_err(CompareError::file(std::env::temp_dir()))?;
        interrupt.check()?;
        let testbed = Testbed::with_terminals(profile, seed, besides.terminals + 1)?;
        let mut spec = origins::spec(plan, &testbed, folder.path())?;
        // From the far end of the range: the plan's own count from its beginning.
        let last = (0..Addresses::ORIGINS).rev().map(|number| testbed.addresses.origin(number).into());
        spec.names.extend(besides.names.into_iter().zip(last));
        if besides.gateway {
            origins::at_gateway(&mut spec, testbed.addresses.ground_satellite.into(), folder.path())?;
        }
        let (serving, ready) = origins::start(&testbed, &spec, folder.path())?;
        let caddy = caddy::start(&testbed, &spec, folder.path(), &interrupt)?;
        let intercepts = plan.tls && plan.variants.iter().any(|variant| variant.intercepts());
        let roots = [vec![spec.ca.clone()], besides.roots].concat();
        let interception =
            if intercepts { Some(Interception::make(folder.path(), roots, besides.crls)?) } else { None };
        let keys = Keys::for_terminals(folder.path(), besides.terminals)?;
        interrupt.check()?;
        Ok(Scene {
            spec,
            ready,
            tls: plan.tls,
            interception,
            interrupt,
            keys,
            caddy,
            serving,
            testbed,
            folder,
        })
    }

    /// Where Farhop's ends run.
    pub fn stage(&self) -> Stage<'_> {
        Stage {
            testbed: &self.testbed,
            folder: self.folder.path(),
            keys: &self.keys,
            interception: self.interception.as_ref(),
            interrupt: &self.interrupt,
        }
    }

    /// The CA (PEM) that a browser has to trust for a variant, beside the origins' own.
    pub(crate) fn trusted_for(&self, variant: Variant) -> Option<PathBuf> {
        let intercepted = variant.intercepts() && variant.scheme(self.tls) == "https";
        let with = self.interception.as_ref().filter(|_| intercepted);
        with.map(|with| with.certificate.clone())
    }

    /// Whether the origins, and the HTTP/3 servers where there are any, still run.
    ///
    /// # Errors
    /// One of them has ended; with its last words.
    pub fn check_servers(&mut self) -> Result<(), CompareError> {
        for (name, process) in [("origins", Some(&mut self.serving)), ("caddy", self.caddy.as_mut())] {
            if let Some(Ok(Some(status))) = process.map(|process| process.try_wait()) {
                let said = last_words(&self.folder.path().join(format!("{name}.stderr")));
                return Err(CompareError::Peer { name, reason: format!("it ended ({status}): {said}") });
            }
        }
        Ok(())
    }

    /// What is looked up instead of each host, to reach the servers that a variant wants.
    pub fn looked_up_as(&self, variant: Variant) -> Vec<(String, String)> {
        origins::looked_up_as(&self.spec, variant)
    }

    /// What is looked up instead of each host, to reach what stands in for it at the gateway ([`Besides::gateway`]).
    pub fn looked_up_at_gateway(&self) -> Vec<(String, String)> {
        origins::looked_up_at_gateway(&self.spec)
    }

    /// What the origins saw.
    pub(crate) fn log(&self) -> &Path {
        self.spec.log.as_deref().unwrap_or(Path::new(""))
    }

    /// What a reader has to know of the servers of others, and of HTTPS.
    pub(crate) fn methods(&self) -> Vec<String> {
        let mut methods = Vec::new();
        if self.interception.is_some() {
            methods.push(
                "Farhop intercepts with a CA that the browser trusts; ground verifies the origins".into(),
            );
        }
        if self.caddy.is_some() {
            methods.push(
                "direct-h3: Caddy beside the origins, QUIC from the first byte on, its own congestion control".into(),
            );
        }
        methods
    }

    /// The origins as the report names them.
    pub(crate) fn origins_in_words(&self) -> Vec<String> {
        self.spec.origins.iter().map(origins::in_words).collect()
    }
}

/// The program that is running, to be run again as another part of the experiment.
pub(crate) fn this_program() -> Result<Command, CompareError> {
    Ok(Command::new(std::env::current_exe().map_err(CompareError::file("the running program"))?))
}

/// Starts a command at a place of the testbed with its standard error in a file.
///
/// # Errors
/// The file cannot be made, or the program not be started.
pub fn spawn(
    testbed: &Testbed,
    place: Place,
    command: Command,
    stderr: &Path,
) -> Result<Running, CompareError> {
    Ok(testbed.spawn_in(place, with_stderr(command, stderr)?)?)
}

/// A command that says what it has to say into a file.
pub(crate) fn with_stderr(mut command: Command, stderr: &Path) -> Result<Command, CompareError> {
    let file = std::fs::File::create(stderr).map_err(CompareError::file(stderr))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    Ok(command)
}

/// The last line that a process wrote to its standard error.
pub fn last_words(stderr: &Path) -> String {
    let text = std::fs::read_to_string(stderr).unwrap_or_default();
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}
