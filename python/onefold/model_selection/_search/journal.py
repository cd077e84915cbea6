"""The journal of a search: what is finished, in a file that survives the process.

A file of JSON lines that is only ever appended to. A *header* line says what a search is of, by
hashes of its parts; a *record* line holds the outcome of a candidate, or of one fit of one fold.
Every line ends with a checksum. What a killed process left half written is dropped with a warning,
and evaluated again. Lines begin with a line feed of their own, so that one which was left half
written damages no other.

A record is found by a key, a hash of the candidate, of the folds and of the candidates that were
solved together with it: solvers that start from the solution of another candidate would otherwise
give other last digits.
"""

from __future__ import annotations

import json
import os
import platform
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn

from ..._core import __version__
from ..._engines import Outcome, Spec, Task
from ..._engines.certificates import Certificates
from ..._engines.spec import Solve
from ..._engines.status import Status
from ..._utils.digest import digest, digest_of_rows
from ..._utils.text import counted
from ..._utils.warnings import warn
from ...result import _json

__all__ = ["Journal", "SharedJournal", "journal_of", "key_of", "run_recorded"]

_START = '{"journal": "onefold search", '
"""The beginning of every header."""

_ROWS = "n_samples"
"""The resource of a halving search whose rounds draw rows."""

_NO_RECORD = ("estimators", "refitted")
"""What of an outcome has no form in the file: a candidate that has it is evaluated again."""


class Journal:
    """The records of one search in a file.

    Parameters
    ----------
    path : str or PathLike
        Made where there is none.
    parts : dict of str
        What the search is of: a hash of each part, by a name that an error can tell.
    is_shared : bool, default=False
        Whether the file is for several searches, such as the inner ones of nested
        cross-validation: one that is not in the file is then added to it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from onefold.model_selection._search.journal import Journal
    >>> path = Path(tempfile.mkdtemp()) / "search.jsonl"
    >>> Journal(path, {"y": "1f"}).add("key", {"score": 0.5})
    >>> Journal(path, {"y": "1f"}).get("key")
    {'score': 0.5}
    >>> Journal(path, {"y": "2e"})
    Traceback (most recent call last):
        ...
    ValueError: journal=...search.jsonl is of another search: y differs; pass another path, ...
    """

    def __init__(
        self, path: str | os.PathLike[str], parts: Mapping[str, str], *, is_shared: bool = False
    ) -> None:
        self.path = Path(path)
        if self.path.is_dir() or not self.path.absolute().parent.is_dir():
            what = "is a directory" if self.path.is_dir() else "is in no directory that exists"
            raise ValueError(f"journal={self.path} {what}: it must be the path of a file")
        self._search = digest(dict(parts))
        self._places: dict[str, tuple[int, int]] = {}
        """Where in the file the record of a key is: offset and length of its line."""
        headers = self._read()
        if self._search in headers:
            return
        if headers and not is_shared:
            differences = _differences(dict(parts), list(headers.values()))
            raise ValueError(
                f"journal={self.path} is of another search: {differences}; pass another path, or "
                "remove the file"
            )
        header = {"search": self._search, "parts": dict(parts)}
        self._append(_START + json.dumps(header)[1:-1])

    def get(self, key: str) -> dict[str, Any] | None:
        """What was recorded under a key, or None."""
        if key not in self._places:
            return None
        offset, length = self._places[key]
        with self.path.open("rb") as file:
            file.seek(offset)
            record = json.loads(file.read(length))["record"]
        return _json.load("Record", json.dumps(record))[0]

    def add(self, key: str, state: Mapping[str, Any]) -> None:
        """Append a record; what JSON cannot hold is not recorded."""
        text = str(_json.dump("Record", state, None))
        if json.loads(text)["left_out"]:
            return
        names = json.dumps({"search": self._search, "key": key})
        self._append(f'{names[:-1]}, "record": {text}')

    def _append(self, line: str) -> None:
        text = f'\n{line}, "checksum": "{_checksum(line)}"}}\n'
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            left = text.encode()
            while left:
                left = left[os.write(file, left) :]
        finally:
            os.close(file)

    def _read(self) -> dict[str, dict[str, str]]:
        """Read the records of this search, and the parts of all searches in the file."""
        headers: dict[str, dict[str, str]] = {}
        if not self.path.exists():
            return headers
        damaged: list[int] = []
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                content = _checked(line) if line.strip() else {}
                if content is None:
                    damaged.append(number)
                elif "parts" in content:
                    headers[content["search"]] = content["parts"]
                elif content.get("search") == self._search:
                    self._places[content["key"]] = offset, len(line)
                offset += len(line)
        if damaged and not headers and not _begins_as_journal(self.path):
            raise ValueError(f"journal={self.path} is not the journal of a search")
        if damaged:
            warn(
                f"journal={self.path}: {counted(len(damaged), 'damaged line')} dropped, the last "
                f"is line {damaged[-1]}; what it held is evaluated again"
            )
        return headers


def _checksum(line: str) -> str:
    return f"{zlib.crc32(line.encode()):08x}"


def _checked(line: bytes) -> dict[str, Any] | None:
    """The content of a line; None if it is damaged."""
    text, comma, tail = line.rstrip().rpartition(b', "checksum": "')
    if not comma or tail != f'{zlib.crc32(text):08x}"}}'.encode():
        return None
    content: dict[str, Any] = json.loads(line)
    return content


def _begins_as_journal(path: Path) -> bool:
    start = path.read_bytes()[: len(_START) + 1].lstrip()
    return _START.encode().startswith(start[: len(_START)])


def _differences(parts: dict[str, str], others: list[dict[str, str]]) -> str:
    """The names of the parts by which a search differs from the most similar one in the file."""

    def names(other: dict[str, str]) -> list[str]:
        both = dict.fromkeys([*parts, *other])
        return [name for name in both if parts.get(name) != other.get(name)]

    different = min(map(names, others), key=len)
    listed = ", ".join(different[:-1]) + " and " if len(different) > 1 else ""
    verb = "differ" if len(different) > 1 else "differs"
    return f"{listed}{different[-1]} {verb}"


def _parts_of(search: Any, task: Task) -> dict[str, str]:
    """Hashes of whatever the outcomes of all candidates of a search depend on."""
    data = task.data
    settings = {
        name: getattr(search, name)
        for name in ("engine", "error_score", "return_train_score", "keep")
    }
    parts = {
        "X": digest_of_rows(data.X),
        "y": digest(None) if data.y is None else digest_of_rows(data.y),
        "sample_weight": digest(data.weights),
        "the params of fit": digest(task.fit_params),
        "cv": digest(_pairs(task)),
        "estimator": digest(search.estimator),
        "scoring": digest((search.scoring, task.score_params)),
        "random_state": digest(task.random_state),
        "the options of engines": digest(task.options),
    }
    parts |= {name: digest(value) for name, value in settings.items()}
    modules = {"onefold": __version__, "Python": platform.python_version()}
    modules |= {module.__name__: module.__version__ for module in (sklearn, np, scipy, joblib)}
    return parts | {f"the version of {name}": version for name, version in modules.items()}


def _pairs(task: Task) -> Any:
    """Arrays that say which rows train and test every fold."""
    folds = task.folds
    if hasattr(folds, "labels"):
        return len(folds), folds.labels
    return [(folds.train(fold), folds.test(fold)) for fold in range(len(folds))]


@dataclass(frozen=True)
class SharedJournal:
    """The path of a journal of several searches, for the argument ``journal``."""

    path: str | os.PathLike[str]

    def __fspath__(self) -> str:
        return os.fspath(self.path)


def journal_of(search: Any, task: Task) -> Journal:
    """Open the journal of a search, whose argument ``journal`` names it."""
    is_random = hasattr(search, "param_distributions") or getattr(search, "resource", "") == _ROWS
    if is_random and search.random_state is None:
        raise ValueError(
            "journal: candidates or rows are drawn at random, so random_state must be an integer "
            "for the next fit to draw the same"
        )
    is_shared = isinstance(search.journal, SharedJournal)
    return Journal(search.journal, _parts_of(search, task), is_shared=is_shared)


def key_of(estimators: Sequence[Any], task: Task) -> str:
    """The key of estimators that are solved together on the folds of a task."""
    folds: str = task.problem.once("digest of the folds", lambda: digest(_pairs(task)))
    return digest((list(estimators), folds))


def run_recorded(
    solve: Solve, journal: Journal, specs: Sequence[Spec], task: Task
) -> Iterator[tuple[int, Outcome]]:
    """Cross-validate candidates and record the outcomes, or read them where all are there."""
    together = key_of([spec.estimator for spec in specs], task)
    keys = [f"{together}, candidate {number}" for number in range(len(specs))]
    states = [journal.get(key) for key in keys]
    known = [_as_outcome(state) for state in states if state is not None]
    if len(known) == len(keys):
        yield from enumerate(known)
        return
    for number, outcome in solve(specs, task):
        is_new = states[number] is None
        if is_new and not any(getattr(outcome, name) for name in _NO_RECORD):
            journal.add(keys[number], _state_of(outcome))
        yield number, outcome


def _state_of(outcome: Outcome) -> dict[str, Any]:
    state = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
    for name in ("status", "certificates"):
        state[name] = None if state[name] is None else dict(vars(state[name]))
    return {name: value for name, value in state.items() if name not in _NO_RECORD}


def _as_outcome(state: dict[str, Any]) -> Outcome:
    outcome = Outcome(**state)
    if outcome.status is not None:
        outcome = replace(outcome, status=Status(**state["status"]))
    if outcome.certificates is not None:
        outcome = replace(outcome, certificates=Certificates(**state["certificates"]))
    return replace(outcome, is_observed=False)
