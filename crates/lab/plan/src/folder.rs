//! The folder for what is measured: one run has it at a time, and none begins it anew that was not asked to, since hours may be
//! in it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::PlanError;
use crate::journal::{Gallery, Journal};
use crate::lanes::Kept;
use crate::plan::Plan;
use crate::words::counted;

/// Loads as numbers, and loads to look at.
pub(crate) const RUNS: &str = "runs.jsonl";
const LOADS: &str = "loads.jsonl";
/// Where the former are committed.
const COMMITTED: &str = "docs/experiments/results";

/// A folder that no other run has.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    lock: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Not merely closed: a program that is just being started has all that is open here until it begins.
        let _ = self.lock.unlock();
    }
}

impl Folder {
    /// Takes the folder at `path` for this run, and makes it where there is none.
    ///
    /// # Errors
    /// Another run has it, or the disk refuses.
    pub(crate) fn take(path: &Path) -> Result<Folder, PlanError> {
        fs::create_dir_all(path).map_err(PlanError::file(path))?;
        let lock = File::open(path).map_err(PlanError::file(path))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => PlanError::InUse { path: path.into() },
            TryLockError::Error(error) => PlanError::file(path)(error),
        })?;
        Ok(Folder { path: path.into(), lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Begins anew; loads that are there stand aside where that is wanted (`fresh`).
    ///
    /// # Errors
    /// It has loads and nobody said what becomes of them, or the disk refuses.
    pub(crate) fn begin(&self, plan: &Plan, fresh: bool) -> Result<Kept, PlanError> {
        let runs = self.path.join(RUNS);
        match Journal::count(&runs)? {
            // A journal without a load says nothing that is not said again.
            0 if runs.exists() => fs::remove_file(&runs).map_err(PlanError::file(&runs))?,
            0 => {}
            _ if fresh => self.set_aside()?,
            loads => {
                return Err(PlanError::HasLoads { path: self.path.clone(), loads: counted(loads, "load") });
            }
        }
        let journal = Journal::begin(&runs, plan)?;
        Ok(Kept::new(Vec::new(), journal, Vec::new(), Gallery::begin(&self.path.join(LOADS))?))
    }

    fn set_aside(&self) -> Result<(), PlanError> {
        for name in [RUNS, LOADS] {
            let (path, aside) = (self.path.join(name), self.path.join(format!("before-{name}")));
            if path.exists() {
                fs::rename(&path, &aside).map_err(PlanError::file(path))?;
            }
        }
        Ok(())
    }

    /// Goes on from the loads that are there, else from those that are committed; these are numbers alone.
    ///
    /// # Errors
    /// They are of another plan, damaged, or the disk refuses.
    pub(crate) fn resume(&self, plan: &Plan) -> Result<Kept, PlanError> {
        let path = self.path.join(RUNS);
        let committed = Path::new(COMMITTED).join(format!("{}.jsonl", plan.name));
        if !path.exists() && committed.exists() {
            fs::copy(&committed, &path).map_err(PlanError::file(&committed))?;
        }
        let (journal, mut runs) = Journal::resume(&path, plan)?;
        // A quick run has a part of what is there of a whole one.
        runs.retain(|run| run.cell(plan).is_some() && !run.late);
        let (gallery, loads) = Gallery::resume(&self.path.join(LOADS))?;
        Ok(Kept::new(runs, journal, loads, gallery))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Run;

    #[test]
    fn loads_that_are_there_are_begun_anew_only_where_that_is_said() {
        let plan = crate::cli::read("httpep-7").unwrap();
        let place = tempfile::tempdir().unwrap();
        let (out, runs) = (place.path().join("out"), place.path().join("out/runs.jsonl"));
        let begin = |fresh| Folder::take(&out).unwrap().begin(&plan, fresh).map(|kept| kept.runs.len());
        assert_eq!(begin(false).unwrap(), 0);
        assert_eq!(begin(false).unwrap(), 0, "nothing was measured yet");
        let cell = plan.cells()[0];
        let run = Run {
            page: plan.pages[cell.page].name.clone(),
            link: plan.links[cell.link].name.clone(),
            variant: plan.variants[cell.variant].name.clone(),
            ..Run::default()
        };
        Folder::take(&out).unwrap().resume(&plan).unwrap().journal.keep(&run).unwrap();
        let before = fs::read(&runs).unwrap();
        let refused = begin(false).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!(
                "{} holds 1 load: --resume goes on from there, --fresh begins anew, --out names another folder",
                out.display()
            )
        );
        assert_eq!(fs::read(&runs).unwrap(), before, "and is as it was");
        assert_eq!(Folder::take(&out).unwrap().resume(&plan).unwrap().runs.len(), 1);
        assert_eq!(begin(true).unwrap(), 0);
        assert_eq!(fs::read(out.join("before-runs.jsonl")).unwrap(), before);
        assert_eq!(begin(true).unwrap(), 0);
        assert_eq!(
            fs::read(out.join("before-runs.jsonl")).unwrap(),
            before,
            "of nothing nothing stands aside"
        );
    }

    #[test]
    fn what_is_no_journal_is_not_overwritten_either() {
        let plan = crate::cli::read("httpep-7").unwrap();
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(RUNS), "notes of mine\n").unwrap();
        let folder = Folder::take(place.path()).unwrap();
        assert!(matches!(folder.begin(&plan, false), Err(PlanError::HasLoads { .. })));
    }

    #[test]
    fn a_folder_is_one_runs_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = Folder::take(place.path()).unwrap();
        assert!(matches!(Folder::take(place.path()), Err(PlanError::InUse { .. })));
        drop(first);
        Folder::take(place.path()).unwrap();
    }
}
