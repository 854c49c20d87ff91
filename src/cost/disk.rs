//! What a run leaves on the disk, as it is now.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::CostSummary;
use crate::clean::Size;

/// What removing a run's leavings would free, in bytes of whole blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Of the results that are in place.
    pub results_bytes: u64,
    /// Of the directory that its tasks work in; of a resumed run it is that of the run from which it goes on.
    pub work_bytes: u64,
    /// Of both, with the files that have a name in each.
    pub left_bytes: u64,
}

impl CostSummary {
    /// Measures the results, the directory that the tasks worked in, and that of each task; what is gone takes nothing, and
    /// a task without a directory has no number.
    pub fn measure_disk<'a>(&mut self, results: impl Iterator<Item = &'a Path>, work: &Path) {
        let mut size = Size::default();
        results.for_each(|path| size.merge(&Size::of(path)));
        let results_bytes = size.bytes();
        let below = Below::of(work);
        size.merge(&below.all);
        self.disk = Some(Disk { results_bytes, work_bytes: below.all.bytes(), left_bytes: size.bytes() });
        self.tasks.par_iter_mut().for_each(|task| {
            task.disk_bytes = task.workdir.as_deref().and_then(|directory| below.bytes_of(directory));
        });
    }
}

/// What is below a work root.
struct Below {
    all: Size,
    /// The directories of tasks, by the last two parts of their paths: `7e/e97eb7…`.
    directories: HashMap<PathBuf, u64>,
}

impl Below {
    fn of(work: &Path) -> Below {
        let mut all = Size::of_itself(work);
        let mut inner: Vec<PathBuf> = Vec::new();
        for folder in entries(work) {
            all.merge(&Size::of_itself(&folder));
            inner.extend(entries(&folder));
        }
        let sizes: Vec<Size> = inner.par_iter().map(|path| Size::of(path)).collect();
        sizes.iter().for_each(|size| all.merge(size));
        let place = |(path, size): (&PathBuf, &Size)| Some((place(path)?, size.bytes()));
        Below { all, directories: inner.iter().zip(&sizes).filter_map(place).collect() }
    }

    /// Also of a directory elsewhere: a cached task may lie in the work of another run.
    fn bytes_of(&self, directory: &Path) -> Option<u64> {
        let known = place(directory).and_then(|place| self.directories.get(&place).copied());
        known.or_else(|| directory.is_dir().then(|| Size::of(directory).bytes()))
    }
}

fn place(directory: &Path) -> Option<PathBuf> {
    Some(Path::new(directory.parent()?.file_name()?).join(directory.file_name()?))
}

/// What is in a directory, links not followed; nothing where it is none.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let is_directory = directory.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let entries = is_directory.then(|| std::fs::read_dir(directory).ok()).flatten();
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cost::{SummaryOptions, summarise};
    use crate::trace;

    const FILE_BYTES: u64 = 1 << 20;

    fn file(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![7; FILE_BYTES as usize]).unwrap();
    }

    /// Whole files that a number of bytes holds; directories are small beside them.
    fn files(bytes: u64) -> u64 {
        bytes / FILE_BYTES
    }

    #[test]
    fn results_and_work_are_measured_as_they_are_now() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        file(&at("work/ab/123456aa/one"));
        file(&at("work/ab/123456aa/deep/two"));
        file(&at("work/tmp/x/of-nobody"));
        file(&at("elsewhere/cd/99/cached"));
        file(&at("result"));
        fs::hard_link(at("result"), at("work/ab/123456aa/linked")).unwrap();
        let rows = format!(
            "task_id\thash\tname\tstatus\tworkdir\n1\tab/123456\tA\tCOMPLETED\t-\n\
             2\tcd/99\tB\tCACHED\t{}\n3\tee/11\tC\tFAILED\t-\n",
            at("elsewhere/cd/99").display()
        );
        let trace = trace::parse(&at("trace.txt"), rows.as_bytes()).unwrap();
        let mut summary = summarise(&trace, &SummaryOptions::default());
        assert!(!serde_json::to_string(&summary).unwrap().contains("disk"), "nothing was measured");
        summary.measure_disk([at("result").as_path()].into_iter(), &at("work"));
        let disk = summary.disk.unwrap();
        let counted = [disk.results_bytes, disk.work_bytes, disk.left_bytes].map(files);
        assert_eq!(counted, [0, 3, 4], "the file of two names goes with both only");
        assert_eq!(disk.work_bytes, Size::of(&at("work")).bytes());
        let of_tasks: Vec<_> = summary.tasks.iter().map(|task| task.disk_bytes.map(files)).collect();
        assert_eq!(of_tasks, [Some(2), Some(1), None]);

        fs::remove_dir_all(at("work")).unwrap();
        summary.measure_disk([at("result").as_path(), &at("gone")].into_iter(), &at("work"));
        let disk = summary.disk.unwrap();
        assert_eq!((files(disk.results_bytes), disk.work_bytes), (1, 0));
        assert_eq!(summary.tasks[0].disk_bytes, None);
    }
}
