"""Temporary directories that do not outlive their process, whatever ends it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["temporary_directory"]

PREFIX, SUFFIX = "onefold-", ".tmp"

NAME = re.compile(rf"{PREFIX}\d+-\w{{8}}\{SUFFIX}")
"""Of our directories; others are left alone, whatever they are."""


@contextmanager
def temporary_directory(parent: str) -> Iterator[Path]:
    """A new directory, removed at the end; those that killed processes have left are removed first.

    A directory is locked as long as its process lives. Where the system has no locks nothing is
    removed except the new directory.

    Examples
    --------
    >>> import tempfile
    >>> from onefold._inputs.temporary import temporary_directory
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with temporary_directory(parent) as folder:
    ...         existed = folder.is_dir()
    ...     existed, folder.exists()
    (True, False)
    """
    _remove_leftovers(parent)
    while True:
        prefix = f"{PREFIX}{os.getpid()}-"
        folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=SUFFIX, dir=parent))
        lock = _locked(folder)
        if folder.exists():
            break
        # Another process took it for a leftover before it was locked.
        _close(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _close(lock)


def _remove_leftovers(parent: str) -> None:
    if fcntl is None:
        return
    with suppress(OSError):
        for entry in os.scandir(parent):
            is_ours = NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            if is_ours and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                lock = _locked(Path(entry.path))
                if lock is not None:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    _close(lock)


def _locked(folder: Path) -> int | None:
    """A handle that holds the lock of a directory; None if another process holds it."""
    if fcntl is None:
        return None
    handle = None
    try:
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        _close(handle)
        return None
    return handle


def _close(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)
