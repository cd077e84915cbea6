//! Atomic creation of files and directories.
//!
//! They are written under a temporary name in the same directory, flushed to the disk when complete,
//! and renamed. A failure removes what was written. What a killed process has left is removed by the
//! next one that writes the same target: a temporary file or directory is locked as long as a process
//! writes to it. Where the file system has no locks, nothing is removed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that replaces its target when complete.
#[derive(Debug)]
pub(super) struct AtomicFile {
    /// The temporary path and a handle that holds its lock; `None` once renamed, or if the target is
    /// written directly.
    partial: Option<(PathBuf, File)>,
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
        let (partial, file) = create_locked(&target, |path| File::create_new(path))?;
        let handle = file.try_clone()?;
        let partial = Some((partial, handle));
        let created = Self { partial, target };
        if let Some(metadata) = existing {
            file.set_permissions(metadata.permissions())?;
        }
        Ok((created, file))
    }

    /// Flushes the complete file to the disk and renames it to its target.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Some((partial, file)) = &self.partial {
            file.sync_all()?;
            fs::rename(partial, &self.target)?;
            self.partial = None;
            sync_directory(directory_of(&self.target))?;
        }
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.partial {
            // Best effort: there is no caller to report an error to.
            let _ = fs::remove_file(partial);
        }
    }
}

/// A directory that replaces its target when complete.
#[derive(Debug)]
pub(super) struct AtomicDirectory {
    /// The temporary path and, where directories can be opened, a handle that holds its lock.
    partial: Option<(PathBuf, Option<File>)>,
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
        let (partial, lock) = create_locked(&target, |path| {
            fs::create_dir(path)?;
            Ok(File::open(path).ok())
        })?;
        let directory = Self {
            partial: Some((partial.clone(), lock)),
            target,
        };
        Ok((directory, partial))
    }

    /// Renames the complete directory, whose files are on the disk, to its target.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Some((partial, _)) = &self.partial {
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
        if let Some((partial, _)) = &self.partial {
            let _ = fs::remove_dir_all(partial);
        }
    }
}

/// A name in the directory of `target` that this process has not used before.
fn temporary_name(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (id, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    target.with_file_name(format!("{}{id}-{count}{SUFFIX}", prefix(target)))
}

/// What the temporary names of `target` begin and end with.
fn prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.")
}

const SUFFIX: &str = ".partial";

/// The directory that holds `path`.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    }
}

/// Creates something with a temporary name and locks it, after what killed processes have left of the
/// same target is removed.
fn create_locked<T: AsHandle>(
    target: &Path,
    create: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    remove_leftovers(target);
    loop {
        let partial = temporary_name(target);
        let created = match create(&partial) {
            // Of a process with the same number, on another machine or in another container.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        };
        let lock = created.handle().map_or(Ok(()), File::try_lock);
        // Another process may have taken it for a leftover before it was locked.
        let is_lost = matches!(lock, Err(TryLockError::WouldBlock)) || !partial.exists();
        if !is_lost {
            return Ok((partial, created));
        }
    }
}

/// The handle of a file, or of a directory that could be opened.
trait AsHandle {
    fn handle(&self) -> Option<&File>;
}

impl AsHandle for File {
    fn handle(&self) -> Option<&File> {
        Some(self)
    }
}

impl AsHandle for Option<File> {
    fn handle(&self) -> Option<&File> {
        self.as_ref()
    }
}

/// Removes temporary files and directories of `target` that no process writes to any more.
fn remove_leftovers(target: &Path) {
    let prefix = prefix(target);
    let entries = fs::read_dir(directory_of(target)).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        if id.is_some_and(is_temporary) {
            // Best effort: a leftover does no harm but to take space.
            let _ = remove_unlocked(&entry);
        }
    }
}

/// Whether a name without its prefix is one of [`temporary_name`].
fn is_temporary(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let id = name.strip_suffix(SUFFIX).and_then(|id| id.split_once('-'));
    id.is_some_and(|(process, count)| is_number(process) && is_number(count))
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

    /// An empty directory that is removed in the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("onefold-{name}-{}", std::process::id()));
            fs::create_dir(&path).expect("created");
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("a directory");
            let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
            let mut names: Vec<_> = entries
                .map(|entry| name(entry).to_string_lossy().into())
                .collect();
            names.sort_unstable();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn leftovers_of_the_same_target_are_removed_unless_they_are_locked() {
        let scratch = Scratch::new("leftovers");
        let path = |name: &str| scratch.0.join(name);
        let others = [
            ".data.1-0.partial.bak",
            ".data.1.partial",
            ".data.x-0.partial",
            ".more.1-0.partial",
        ];
        for name in others.into_iter().chain([".data.1-0.partial"]) {
            fs::write(path(name), "text").expect("written");
        }
        fs::create_dir(path(".data.1-1.partial")).expect("created");
        fs::write(path(".data.1-1.partial/values.npy"), "text").expect("written");
        let locked = File::create(path(".data.1-2.partial")).expect("created");
        locked.lock().expect("locked");

        let (first, _) = AtomicFile::create(&path("data")).expect("created");
        let (second, partial) = AtomicDirectory::create(&path("data")).expect("created");
        assert!(partial.exists());
        let (third, file) = AtomicFile::create(&path("data")).expect("created");
        drop((first, second, file));
        third.commit().expect("renamed");
        let mut expected = vec![".data.1-2.partial", "data"];
        expected.extend(others);
        expected.sort_unstable();
        assert_eq!(scratch.names(), expected);
    }

    #[test]
    fn a_name_in_use_is_passed_over() {
        let scratch = Scratch::new("names");
        let target = scratch.0.join("data");
        let next = temporary_name(&target);
        let count: u64 = next
            .to_string_lossy()
            .trim_end_matches(SUFFIX)
            .rsplit('-')
            .next()
            .and_then(|count| count.parse().ok())
            .expect("a number");
        let id = std::process::id();
        let taken: Vec<_> = (count + 1..count + 20)
            .map(|count| {
                let name = format!("{}{id}-{count}{SUFFIX}", prefix(&target));
                let file = File::create(target.with_file_name(name)).expect("created");
                file.lock().expect("locked");
                file
            })
            .collect();
        let (file, _) = AtomicFile::create(&target).expect("created");
        assert_eq!(scratch.names().len(), taken.len() + 1);
        drop(file);
        assert_eq!(scratch.names().len(), taken.len());
    }
}
