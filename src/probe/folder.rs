//! The directory of a probe: beside the runs, where the machines of a cluster see it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::clean::PROBING;
use crate::error::{Error, Result};
use crate::launch;
use crate::method::Task;
use crate::ui::Ui;
use crate::workspace::Workspace;

/// Removed when it goes out of scope. What a killed probe leaves is removed by `clean`, which takes none that is claimed.
pub(super) struct Folder {
    directory: TempDir,
    _claim: File,
    above: Above,
}

impl Folder {
    pub(super) fn create(workspace: &Workspace, task: Task) -> Result<Folder> {
        let parent = workspace.runs().join(task.name());
        let above = Above { workspace: workspace.clone(), task };
        fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
        let directory = tempfile::Builder::new()
            .prefix(PROBING)
            // A container may run its tasks as somebody else.
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(&parent)
            .map_err(Error::io("write to", &parent))?;
        let claim = launch::claim(directory.path())?;
        Ok(Folder { directory, _claim: claim, above })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Removes it, with a warning where that fails.
    pub(super) fn remove(self, ui: &Ui) {
        let Folder { directory, _claim, above: _above } = self;
        let path = directory.path().to_owned();
        if let Err(error) = directory.close() {
            ui.warn(format_args!("the samples of the probe are still in {}: {error}", path.display()));
        }
    }
}

/// The folders above it, which go with it where they are empty; that of all runs only where no workspace was made.
struct Above {
    workspace: Workspace,
    task: Task,
}

impl Drop for Above {
    fn drop(&mut self) {
        let runs = self.workspace.runs();
        // One that is not empty stays, by the meaning of the call.
        let _ = fs::remove_dir(runs.join(self.task.name()));
        if !self.workspace.exists() {
            let _ = fs::remove_dir(runs);
        }
    }
}
