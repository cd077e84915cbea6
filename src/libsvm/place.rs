//! Files and directories that appear whole or not at all.
//!
//! They are written under another name beside their place, and renamed when they are complete.
//! A failure removes what was written; after a crash a name remains that nobody reads.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A name beside `target` that nothing has yet.
fn name_beside(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let (id, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    target.with_file_name(format!(".{name}.{id}-{count}.partial"))
}

/// A file on its way to its place.
#[derive(Debug)]
pub(super) struct PlacedFile {
    /// Where it is until then; `None` when it is in its place, or cannot be put there at once.
    partial: Option<PathBuf>,
    target: PathBuf,
}

impl PlacedFile {
    /// Begins a file that will replace `target`.
    pub(super) fn create(target: &Path) -> io::Result<(Self, File)> {
        // A link stays a link: what it points to is replaced.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let existing = fs::metadata(&target).ok();
        if existing.as_ref().is_some_and(|about| !about.is_file()) {
            // A pipe or a device is written to, never replaced.
            let file = File::create(&target)?;
            let partial = None;
            return Ok((Self { partial, target }, file));
        }
        let partial = name_beside(&target);
        let file = File::create_new(&partial)?;
        if let Some(about) = existing {
            file.set_permissions(about.permissions())?;
        }
        let partial = Some(partial);
        Ok((Self { partial, target }, file))
    }

    /// Puts the file, complete and closed, in its place.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            fs::rename(partial, &self.target)?;
        }
        self.partial = None;
        Ok(())
    }
}

impl Drop for PlacedFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Nothing more can be done about a file that cannot even be removed.
            let _ = fs::remove_file(partial);
        }
    }
}

/// A directory on its way to its place.
#[derive(Debug)]
pub(super) struct PlacedDirectory {
    partial: Option<PathBuf>,
    target: PathBuf,
}

impl PlacedDirectory {
    /// Begins a directory that will be `target`, which must be empty or not exist.
    pub(super) fn create(target: &Path) -> io::Result<(Self, PathBuf)> {
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        match fs::read_dir(&target).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => return Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let partial = name_beside(&target);
        fs::create_dir(&partial)?;
        let placed = Self {
            partial: Some(partial.clone()),
            target,
        };
        Ok((placed, partial))
    }

    /// Puts the directory, complete, in its place.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            // An empty directory is replaced, one that has been filled meanwhile is not; some
            // systems want the empty one out of the way first.
            fs::rename(partial, &self.target).or_else(|_| {
                fs::remove_dir(&self.target)?;
                fs::rename(partial, &self.target)
            })?;
        }
        self.partial = None;
        Ok(())
    }
}

impl Drop for PlacedDirectory {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = fs::remove_dir_all(partial);
        }
    }
}
