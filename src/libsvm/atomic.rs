//! Atomic creation of files and directories.
//!
//! They are written under a temporary name in the same directory, flushed to the disk when complete,
//! and renamed. A failure removes what was written. What a killed process has left is removed by the
//! next one that writes the same target: a temporary file or directory is locked as long as a process
//! writes to it. Where the file system has no locks, nothing is removed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A file that replaces its target when complete.
#[derive(Debug)]
pub(super) struct AtomicFile {
    /// The temporary file, which is locked; `None` if the target is written directly.
    partial: Option<NamedTempFile>,
    target: PathBuf,
}

impl AtomicFile {
    /// Creates a file that will replace `target`.
    pub(super) fn create(target: &Path) -> io::Result<(Self, File)> {
        // Of a link, the target is replaced.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let existing = fs::metadata(&target).ok();
        if existing
            .as_ref()
            .is_some_and(|metadata| !metadata.is_file())
        {
            // Pipes and devices are written directly.
            let file = File::create(&target)?;
            let partial = None;
            return Ok((Self { partial, target }, file));
        }
        let partial = create_locked(&target, |path| File::create_new(path), |file| Some(file))?;
        let file = partial.as_file().try_clone()?;
        if let Some(metadata) = existing {
            file.set_permissions(metadata.permissions())?;
        }
        let partial = Some(partial);
        Ok((Self { partial, target }, file))
    }

    /// Flushes the complete file to the disk and renames it to its target.
    pub(super) fn commit(self) -> io::Result<()> {
        let Some(mut partial) = self.partial else {
            return Ok(());
        };
        partial.as_file().sync_all()?;
        fs::rename(partial.path(), &self.target)?;
        partial.disable_cleanup(true);
        sync_directory(directory_of(&self.target))
    }
}

/// A directory that replaces its target when complete.
#[derive(Debug)]
pub(super) struct AtomicDirectory {
    /// The temporary path, until it is renamed.
    partial: Option<PathBuf>,
    /// Where directories can be opened, a handle that holds the lock.
    _lock: Option<File>,
    target: PathBuf,
}

impl AtomicDirectory {
    /// Creates a directory that will replace `target`, which must be empty or not exist.
    pub(super) fn create(target: &Path) -> io::Result<(Self, PathBuf)> {
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        match fs::read_dir(&target).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => return Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let create = |path: &Path| fs::create_dir(path).map(|()| File::open(path).ok());
        let (lock, path) = create_locked(&target, create, Option::as_ref)?.into_parts();
        let path = path.keep().map_err(|error| error.error)?;
        let created = Self {
            partial: Some(path.clone()),
            _lock: lock,
            target,
        };
        Ok((created, path))
    }

    /// Renames the complete directory, whose files are on the disk, to its target.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            sync_directory(partial)?;
            // Replaces an empty directory, not one that has been filled meanwhile. Some systems
            // require the empty one to be removed first.
            fs::rename(partial, &self.target).or_else(|_| {
                fs::remove_dir(&self.target)?;
                fs::rename(partial, &self.target)
            })?;
            self.partial = None;
            sync_directory(directory_of(&self.target))?;
        }
        Ok(())
    }
}

impl Drop for AtomicDirectory {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Best effort: there is no caller to report an error to.
            let _ = fs::remove_dir_all(partial);
        }
    }
}

/// What the temporary names of `target` begin and end with.
fn prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.")
}

const SUFFIX: &str = ".partial";

/// Letters and digits between them.
const N_RANDOM: usize = 12;

/// The directory that holds `path`.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    }
}

/// Creates something with a temporary name and locks it, after what killed processes have left of the
/// same target is removed. `handle` gives what is locked, if it could be opened.
fn create_locked<T>(
    target: &Path,
    create: impl Fn(&Path) -> io::Result<T>,
    handle: impl Fn(&T) -> Option<&File>,
) -> io::Result<NamedTempFile<T>> {
    remove_leftovers(target);
    let prefix = prefix(target);
    let mut names = Builder::new();
    names.prefix(&prefix).suffix(SUFFIX).rand_bytes(N_RANDOM);
    loop {
        let created = names.make_in(directory_of(target), &create)?;
        let lock = handle(created.as_file()).map_or(Ok(()), File::try_lock);
        // Another process may have taken it for a leftover before it was locked.
        let is_lost = matches!(lock, Err(TryLockError::WouldBlock)) || !created.path().exists();
        if !is_lost {
            return Ok(created);
        }
    }
}

/// Removes temporary files and directories of `target` that no process writes to any more.
fn remove_leftovers(target: &Path) {
    let prefix = prefix(target);
    let entries = fs::read_dir(directory_of(target)).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        if rest.is_some_and(is_temporary) {
            // Best effort: a leftover does no harm but to take space.
            let _ = remove_unlocked(&entry);
        }
    }
}

/// Whether a name without its prefix is a temporary one.
fn is_temporary(name: &str) -> bool {
    let random = name.strip_suffix(SUFFIX).unwrap_or_default();
    random.len() == N_RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn remove_unlocked(entry: &fs::DirEntry) -> io::Result<()> {
    let (kind, path) = (entry.file_type()?, entry.path());
    if !kind.is_file() && !kind.is_dir() {
        return Ok(());
    }
    let handle = File::open(&path)?;
    match handle.try_lock() {
        Err(_) => Ok(()),
        Ok(()) if kind.is_dir() => fs::remove_dir_all(&path),
        Ok(()) => fs::remove_file(&path),
    }
}

/// Flushes the entries of a directory to the disk, where directories can be opened.
fn sync_directory(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(path)?.sync_all() {
        // Some file systems cannot.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = entries
            .map(|entry| name(entry).to_string_lossy().into())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn errors_of_the_system_keep_their_code() {
        let missing = std::env::temp_dir().join("onefold-missing/data");
        let code = |error: io::Error| error.raw_os_error();
        let file = AtomicFile::create(&missing)
            .map_err(code)
            .expect_err("missing");
        let directory = AtomicDirectory::create(&missing).map_err(code);
        let expected = fs::read_dir(&missing).map_err(code).expect_err("missing");
        assert_eq!(
            (file, directory.expect_err("missing")),
            (expected, expected)
        );
    }

    #[test]
    fn leftovers_of_the_same_target_are_removed_unless_they_are_locked() {
        let scratch = tempfile::tempdir().expect("created");
        let path = |name: &str| scratch.path().join(name);
        let others = [
            ".data.0123456789ab.partial.bak",
            ".data.0123456789abc.partial",
            ".data.0123456789_b.partial",
            ".more.0123456789ab.partial",
        ];
        for name in others.into_iter().chain([".data.0123456789ab.partial"]) {
            fs::write(path(name), "text").expect("written");
        }
        fs::create_dir(path(".data.0123456789cd.partial")).expect("created");
        fs::write(path(".data.0123456789cd.partial/values.npy"), "text").expect("written");
        let locked = File::create(path(".data.0123456789ef.partial")).expect("created");
        locked.lock().expect("locked");

        let (first, _) = AtomicFile::create(&path("data")).expect("created");
        let (second, partial) = AtomicDirectory::create(&path("data")).expect("created");
        assert!(partial.exists());
        let (third, file) = AtomicFile::create(&path("data")).expect("created");
        drop((first, second, file));
        third.commit().expect("renamed");
        let mut expected = vec![".data.0123456789ef.partial", "data"];
        expected.extend(others);
        expected.sort_unstable();
        assert_eq!(names(scratch.path()), expected);
    }
}
