//! The disk space that removing directories frees.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The bytes of a block as `stat` counts them, whatever the file system's are.
const BLOCK_BYTES: u64 = 512;

/// What some directories take on disk. A file with several names is freed only when all of them go.
#[derive(Debug, Clone, Default)]
pub struct Size {
    alone: u64,
    /// Files of several names by device and inode.
    linked: HashMap<(u64, u64), Linked>,
}

#[derive(Debug, Clone, Copy)]
struct Linked {
    bytes: u64,
    names: u64,
    found: u64,
}

impl Size {
    /// The directory with all below it; symbolic links are not followed, what cannot be read counts nothing.
    pub fn of(path: &Path) -> Size {
        let mut size = Size::default();
        size.add(path);
        size
    }

    /// The directory without what is in it, or the file.
    pub fn of_itself(path: &Path) -> Size {
        let mut size = Size::default();
        fs::symlink_metadata(path).iter().for_each(|metadata| size.count(metadata));
        size
    }

    /// Counts another directory in.
    pub fn merge(&mut self, other: &Size) {
        self.alone += other.alone;
        for (file, theirs) in &other.linked {
            let ours = self.linked.entry(*file).or_insert(Linked { found: 0, ..*theirs });
            ours.found += theirs.found;
        }
    }

    /// The bytes that are free once all that was counted is gone.
    pub fn bytes(&self) -> u64 {
        let whole = self.linked.values().filter(|file| file.found >= file.names);
        self.alone + whole.map(|file| file.bytes).sum::<u64>()
    }

    fn add(&mut self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        self.count(&metadata);
        if metadata.is_dir() {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                self.add(&entry.path());
            }
        }
    }

    fn count(&mut self, metadata: &Metadata) {
        let bytes = metadata.blocks() * BLOCK_BYTES;
        // The further names of a directory are its own `.` and its children's `..`.
        if metadata.is_dir() || metadata.nlink() < 2 {
            self.alone += bytes;
            return;
        }
        let new = Linked { bytes, names: metadata.nlink(), found: 0 };
        self.linked.entry((metadata.dev(), metadata.ino())).or_insert(new).found += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const FILE_BYTES: usize = 1 << 20;

    fn file(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![7; FILE_BYTES]).unwrap();
        path
    }

    /// Whole files that a size counts; directories are small beside them.
    fn files(size: &Size) -> u64 {
        size.bytes() / FILE_BYTES as u64
    }

    #[test]
    fn counts_blocks_and_no_holes() {
        let folder = tempfile::tempdir().unwrap();
        file(folder.path().join("deep/er/one"));
        file(folder.path().join("two"));
        let sparse = fs::File::create(folder.path().join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert_eq!(files(&Size::of(folder.path())), 2);
    }

    #[test]
    fn a_file_of_two_names_counts_once_where_both_go() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::create_dir(&two).unwrap();
        let first = file(one.join("x"));
        fs::hard_link(&first, one.join("y")).unwrap();
        assert_eq!(files(&Size::of(&one)), 1);
        fs::hard_link(&first, two.join("z")).unwrap();
        assert_eq!((files(&Size::of(&one)), files(&Size::of(&two))), (0, 0), "it lives on elsewhere");
        let mut both = Size::of(&one);
        both.merge(&Size::of(&two));
        assert_eq!(files(&both), 1);
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let big = file(folder.path().join("elsewhere/big"));
        let work = folder.path().join("work");
        fs::create_dir(&work).unwrap();
        std::os::unix::fs::symlink(&big, work.join("file")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), work.join("folder")).unwrap();
        assert_eq!(files(&Size::of(&work)), 0);
    }
}
