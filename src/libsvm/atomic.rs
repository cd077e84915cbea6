//! Atomic creation of files and directories.
//!
//! They are written under a temporary name in the same directory and renamed when complete. A
//! failure removes what was written; after a crash the temporary file remains.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// An unused name in the directory of `target`.
fn temporary_name(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let (id, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    target.with_file_name(format!(".{name}.{id}-{count}.partial"))
}

/// A file that replaces its target when complete.
#[derive(Debug)]
pub(super) struct AtomicFile {
    /// The temporary path; `None` once renamed, or if the target is written directly.
    partial: Option<PathBuf>,
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
        let partial = temporary_name(&target);
        let file = File::create_new(&partial)?;
        if let Some(metadata) = existing {
            file.set_permissions(metadata.permissions())?;
        }
        let partial = Some(partial);
        Ok((Self { partial, target }, file))
    }

    /// Renames the complete, closed file to its target.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            fs::rename(partial, &self.target)?;
        }
        self.partial = None;
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Best effort: there is no caller to report an error to.
            let _ = fs::remove_file(partial);
        }
    }
}

/// A directory that replaces its target when complete.
#[derive(Debug)]
pub(super) struct AtomicDirectory {
    partial: Option<PathBuf>,
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
        let partial = temporary_name(&target);
        fs::create_dir(&partial)?;
        let directory = Self {
            partial: Some(partial.clone()),
            target,
        };
        Ok((directory, partial))
    }

    /// Renames the complete directory to its target.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            // Replaces an empty directory, not one that has been filled meanwhile. Some systems
            // require the empty one to be removed first.
            fs::rename(partial, &self.target).or_else(|_| {
                fs::remove_dir(&self.target)?;
                fs::rename(partial, &self.target)
            })?;
        }
        self.partial = None;
        Ok(())
    }
}

impl Drop for AtomicDirectory {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = fs::remove_dir_all(partial);
        }
    }
}
