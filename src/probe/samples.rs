//! The samples of a plan's inputs, as files of the same names.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{choice, stopped};
use crate::error::{Error, Kind, Result};
use crate::h5ad::{self, Extent, H5ad};
use crate::method::Task;
use crate::nextflow::StopRequests;
use crate::plan::{Input, Plan, Role};

/// The same request draws the same cells.
const SEED: u64 = 0;

/// Writes a sample of each input of a plan.
pub(super) struct Sampler<'a> {
    pub plan: &'a Plan,
    /// Column that cells are drawn by, where a file has it.
    pub label: Option<&'a str>,
    /// So many cells of so many.
    pub share: (usize, usize),
    pub folder: PathBuf,
}

impl Sampler<'_> {
    /// Writes the samples; gives them in the order of the inputs.
    ///
    /// # Errors
    /// Signal: it was stopped. Else a file cannot be read or written.
    pub(super) fn write(&self) -> Result<Vec<(Role, PathBuf)>> {
        let stop = StopRequests::watch()?;
        let proceed = || match stop.within(Duration::ZERO) {
            Some(signal) => Err(stopped(Kind::of_signal(signal))),
            None => Ok(()),
        };
        // The cells of an embedding are those of its data set, which thus comes first.
        let mut inputs: Vec<(usize, &Input)> = self.plan.inputs.iter().enumerate().collect();
        inputs.sort_by_key(|(_, input)| input.data.is_some());
        let mut cells_of: HashMap<&str, HashSet<String>> = HashMap::new();
        let mut written: Vec<(usize, Role, PathBuf)> = Vec::new();
        for (position, input) in inputs {
            proceed()?;
            let file = H5ad::open(&input.path)?;
            let names = file.obs().index();
            let rows = match input.data.as_deref().and_then(|data| cells_of.get(data)) {
                Some(cells) => (0..names.len()).filter(|&row| cells.contains(&names[row])).collect(),
                None => self.choose(&file)?,
            };
            if input.role == Role::Data && self.plan.inputs.iter().any(|other| other.data.is_some()) {
                cells_of.insert(&input.id, rows.iter().map(|&row| names[row].clone()).collect());
            }
            let path = self.place(position, &input.path)?;
            h5ad::write_cells(&path, &file, &rows, self.extent(), &proceed)?;
            written.push((position, input.role, path));
        }
        written.sort_by_key(|(position, ..)| *position);
        Ok(written.into_iter().map(|(_, role, path)| (role, path)).collect())
    }

    /// What the task may read: `check` looks for counts in all matrices, and a script of the user's own may look anywhere. All
    /// others read X and the coordinates.
    fn extent(&self) -> Extent {
        let own = self.plan.runner.as_ref().is_some_and(|runner| runner.own);
        if own || self.plan.task == Task::Check { Extent::Whole } else { Extent::Usual }
    }

    fn choose(&self, file: &H5ad) -> Result<Vec<usize>> {
        let column = self.label.and_then(|label| file.obs().find(label));
        let labels = column.map(|column| file.obs().column(column)).transpose()?;
        let labels = labels.map(|column| column.labels());
        let (some, all) = self.share;
        let count = (file.n_obs() as f64 * some as f64 / all as f64).round().max(1.0) as usize;
        Ok(choice::rows(labels.as_ref(), file.n_obs(), count, SEED))
    }

    /// Where the sample of an input goes: its own name and that of its folder, by which tasks name results, stay.
    fn place(&self, position: usize, input: &Path) -> Result<PathBuf> {
        let mut folder = self.folder.join(position.to_string());
        folder.extend(input.parent().and_then(Path::file_name));
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        Ok(folder.join(input.file_name().unwrap_or_default()))
    }
}
