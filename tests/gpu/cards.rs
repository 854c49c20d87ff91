//! Cards of a test, by a stand-in for nvidia-smi.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub struct Cards {
    folder: PathBuf,
}

#[allow(dead_code, reason = "each of the test programs uses a part")]
impl Cards {
    /// Puts the stand-in into `bin`, with so many idle cards that are described in `folder`.
    pub fn install(bin: &Path, folder: PathBuf, count: usize) -> Cards {
        for card in 0..count {
            std::fs::create_dir_all(folder.join(card.to_string()).join("pids")).unwrap();
        }
        let text = include_str!("nvidia-smi").replace("@CARDS@", folder.to_str().unwrap());
        let program = bin.join("nvidia-smi");
        std::fs::create_dir_all(bin).unwrap();
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Cards { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets a file of the description, such as `mode` or `0/used`.
    pub fn set(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), format!("{text}\n")).unwrap();
    }

    /// How often the stand-in was asked.
    pub fn calls(&self) -> usize {
        std::fs::read_to_string(self.folder.join("calls")).unwrap_or_default().lines().count()
    }
}
