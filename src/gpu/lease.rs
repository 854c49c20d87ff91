//! Who has a card: a locked file for each, in one directory for all users and workspaces of the machine.
//!
//! The kernel gives the lock back when its holder dies, however it dies. The file's content only says who that is.

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::people;
use super::smi::Card;
use crate::error::{Error, Result};
use crate::rundir;

/// The directory of all users, in a place that no setting of one of them moves.
const SHARED: &str = "/tmp/scfoundry-gpus";
/// Anyone may add a file, only its owner may remove it.
const STICKY: u32 = 0o1777;
const EVERYBODY: u32 = 0o666;
const OTHER_PLACE: &str =
    "name another directory by $SCFOUNDRY_LEASE_DIR, the same for all who share the cards";
/// In a directory of all: no link is followed, and no pipe waited for.
const PLAIN: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits() as i32;
/// More is no name.
const LONGEST: u64 = 1 << 16;
/// Somebody who looks at a lock has it for a moment.
const TRIES: u32 = 50;
const MOMENT: Duration = Duration::from_millis(10);

/// A run that has a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    /// When the process started (clock ticks since boot), so that a recycled number is not taken for it.
    pub pid_started: Option<u64>,
    pub user: String,
    /// The run directory, at first only its name.
    pub run: PathBuf,
    /// Local time with its zone.
    pub since: String,
}

/// A card is held; by whom is not known where the content cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held(pub Option<Holder>);

impl Holder {
    /// This process, for a run of this name.
    pub fn this(run: impl Into<PathBuf>) -> Holder {
        let pid = std::process::id();
        Holder {
            pid,
            pid_started: rundir::process_started(pid),
            user: people::user_name(rustix::process::geteuid().as_raw()),
            run: run.into(),
            since: jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S %z").to_string(),
        }
    }

    fn is_alive(&self) -> bool {
        self.pid_started.is_some() && self.pid_started == rundir::process_started(self.pid)
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(holder) = &self.0 else { return f.write_str("another scfoundry") };
        let Holder { pid, user, run, since, .. } = holder;
        let run = run.file_name().unwrap_or_default().to_string_lossy();
        let minute = since.get(..16).unwrap_or(since);
        let text = format!("run {run} (pid {pid}, {user}, since {minute})");
        // Anyone may have written it.
        f.write_str(&text.replace(char::is_control, "?"))
    }
}

/// The directory of the locks.
#[derive(Debug, Clone)]
pub struct Leases {
    folder: PathBuf,
}

/// A held card; it is free again when this is dropped or the process ends.
#[derive(Debug)]
pub struct Lease {
    file: File,
    holder: Holder,
}

impl Leases {
    /// The directory of the machine, `chosen` if a site has chosen one; else, with the reason, one of the user's own below
    /// `own`.
    ///
    /// # Errors
    /// Environment: none of them can be used.
    pub fn open(chosen: Option<PathBuf>, own: Option<PathBuf>) -> Result<(Leases, Option<String>)> {
        let unusable = |folder: &Path, error: io::Error| {
            Error::environment(format_args!("GPUs cannot be reserved in {}", folder.display()))
                .cause(error)
                .hint(OTHER_PLACE)
        };
        let shared = chosen.clone().unwrap_or_else(|| SHARED.into());
        let refusal = match prepare(&shared) {
            Ok(()) => return Ok((Leases { folder: shared }, None)),
            Err(error) => error,
        };
        match own.filter(|_| chosen.is_none()) {
            Some(own) => {
                fs::create_dir_all(&own).map_err(|error| unusable(&own, error))?;
                Ok((Leases { folder: own }, Some(format!("{}: {refusal}", shared.display()))))
            }
            None => Err(unusable(&shared, refusal)),
        }
    }

    /// The same directory, to look into: nothing is made.
    pub fn existing(chosen: Option<PathBuf>, own: Option<PathBuf>) -> Leases {
        let shared = chosen.clone().unwrap_or_else(|| SHARED.into());
        let own = own.filter(|_| chosen.is_none() && shared.exists() && check(&shared).is_err());
        Leases { folder: own.unwrap_or(shared) }
    }

    /// Takes a card, if nobody has it.
    ///
    /// # Errors
    /// Environment: its file cannot be made or locked.
    pub fn take(&self, card: &str, holder: &Holder) -> Result<Option<Lease>> {
        let path = self.path(card);
        let failed = |error: io::Error| {
            Error::environment(format_args!("cannot lock {}", path.display())).cause(error).hint(OTHER_PLACE)
        };
        for _ in 0..TRIES {
            let mut file = open_or_make(&path).map_err(failed)?;
            match file.try_lock() {
                // Removed by a cleaner between the two: a lock of it would bind nobody.
                Ok(()) if !is_there(&file, &path) => {}
                Ok(()) => {
                    let mut lease = Lease { file, holder: holder.clone() };
                    lease.write();
                    return Ok(Some(lease));
                }
                Err(TryLockError::WouldBlock) if read(&mut file).is_some() => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(MOMENT),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Ok(None)
    }

    /// Who has a card; `None`: nobody.
    pub fn holder(&self, card: &str) -> Option<Held> {
        let mut file = OpenOptions::new().read(true).custom_flags(PLAIN).open(self.path(card)).ok()?;
        // The holder may be about to write its name.
        for _ in 0..TRIES {
            match file.try_lock_shared() {
                Err(TryLockError::WouldBlock) => {}
                _ => return None,
            }
            if let Some(holder) = read(&mut file) {
                return Some(Held(Some(holder)));
            }
            std::thread::sleep(MOMENT);
        }
        Some(Held(None))
    }

    fn path(&self, card: &str) -> PathBuf {
        self.folder.join(card)
    }
}

impl Lease {
    /// Says which run directory it is for, now that there is one.
    pub fn belongs_to(&mut self, run: &Path) {
        self.holder.run = run.to_owned();
        self.write();
    }

    /// Only for messages of others: the lock holds without it.
    fn write(&mut self) {
        let text = serde_json::to_vec(&self.holder).unwrap_or_default();
        let _ =
            self.file.set_len(0).and_then(|()| self.file.rewind()).and_then(|()| self.file.write_all(&text));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A name that stays does no harm: it is believed of a living process only.
        let _ = self.file.set_len(0);
    }
}

/// What a card is called here: by its UUID, which is the same in every container of the machine.
pub fn key(card: &Card) -> String {
    card.uuid.clone().unwrap_or_else(|| key_of_number(card.index))
}

/// Where no UUID is known.
pub fn key_of_number(index: u32) -> String {
    format!("index-{index}")
}

/// Makes the directory for everybody, or makes sure that it is one.
fn prepare(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        // Less what the umask took away.
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(STICKY))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    // Its maker, another user, may be about to open it to all.
    let mut found = check(folder);
    for _ in 1..TRIES {
        if found.is_err() {
            std::thread::sleep(MOMENT);
            found = check(folder);
        }
    }
    found
}

fn check(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    match found.is_dir() {
        true if own || found.mode() & STICKY == STICKY => Ok(()),
        true => Err(io::Error::other("it belongs to another user and is not open to all")),
        false => Err(io::Error::other("it is not a directory")),
    }
}

/// The lock file of a card, which may be another user's: then it can be opened, but in a directory open to all the kernel
/// forbids to open it "or make it".
fn open_or_make(path: &Path) -> io::Result<File> {
    let mut refusal = io::Error::from(io::ErrorKind::PermissionDenied);
    for _ in 0..TRIES {
        match OpenOptions::new().read(true).write(true).custom_flags(PLAIN).open(path) {
            Ok(file) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                // Its maker is about to open it to all.
                refusal = error;
                std::thread::sleep(MOMENT);
                continue;
            }
        }
        match OpenOptions::new().read(true).write(true).create_new(true).mode(EVERYBODY).open(path) {
            Ok(file) => {
                file.set_permissions(Permissions::from_mode(EVERYBODY))?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

fn is_there(file: &File, path: &Path) -> bool {
    let same =
        |one: &fs::Metadata, other: &fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    file.metadata().is_ok_and(|open| fs::metadata(path).is_ok_and(|named| same(&open, &named)))
}

/// Who stands in a lock file, if that process lives.
fn read(file: &mut File) -> Option<Holder> {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.take(LONGEST).read_to_end(&mut text)).ok()?;
    serde_json::from_slice::<Holder>(&text).ok().filter(Holder::is_alive)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leases(folder: &Path) -> Leases {
        Leases::open(Some(folder.join("leases")), None).unwrap().0
    }

    #[test]
    fn one_holder_at_a_time_and_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let leases = leases(folder.path());
        let holder = Holder::this("first");
        assert_eq!(leases.holder("a"), None);
        let mut lease = leases.take("a", &holder).unwrap().unwrap();
        assert!(leases.take("a", &Holder::this("second")).unwrap().is_none());
        assert!(leases.take("b", &holder).unwrap().is_some());
        lease.belongs_to(Path::new("/w/runs/embed/first-2"));
        let held = leases.holder("a").unwrap();
        let (pid, user) = (std::process::id(), &holder.user);
        assert!(held.to_string().starts_with(&format!("run first-2 (pid {pid}, {user}, since 2")), "{held}");
        drop(lease);
        assert_eq!(leases.holder("a"), None);
        assert!(leases.take("a", &Holder::this("second")).unwrap().is_some());
    }

    #[test]
    fn the_name_of_a_dead_process_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let leases = leases(folder.path());
        let dead = Holder { pid_started: Some(1), ..Holder::this("dead") };
        let lease = leases.take("a", &dead).unwrap().unwrap();
        assert_eq!(leases.holder("a"), Some(Held(None)));
        assert_eq!(Held(None).to_string(), "another scfoundry");
        let hostile =
            Held(Some(Holder { user: "a\u{1b}[2J\n".into(), since: "γδ".into(), ..Holder::this("x") }));
        assert!(hostile.to_string().ends_with(", a?[2J?, since γδ)"), "{hostile}");
        assert!(leases.take("a", &dead).unwrap().is_none());
        drop(lease);
    }

    #[test]
    fn a_look_hinders_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let leases = leases(folder.path());
        drop(leases.take("a", &Holder::this("x")).unwrap());
        std::thread::scope(|scope| {
            let looks =
                scope.spawn(|| (0..2000).all(|_| leases.holder("a").is_none_or(|held| held.0.is_some())));
            for _ in 0..300 {
                assert!(leases.take("a", &Holder::this("x")).unwrap().is_some());
            }
            assert!(looks.join().unwrap());
        });
    }

    #[test]
    fn everybody_may_lock_and_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let leases = leases(folder.path());
        drop(leases.take("a", &Holder::this("x")).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!((mode(&leases.folder), mode(&leases.path("a"))), (STICKY, EVERYBODY));
        std::os::unix::fs::symlink(folder.path().join("victim"), leases.path("b")).unwrap();
        assert!(leases.take("b", &Holder::this("x")).is_err());
        assert!(!folder.path().join("victim").exists());
    }

    #[test]
    fn where_the_shared_directory_cannot_be_used_the_users_own_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Leases::open(Some(file.clone()), Some(folder.path().join("own"))).unwrap_err();
        assert!(error.hints[0].contains("SCFOUNDRY_LEASE_DIR"), "{error}");
        assert_eq!(prepare(&file).unwrap_err().to_string(), "it is not a directory");
        std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
        assert!(prepare(&folder.path().join("link")).is_err());
    }
}
