"""Rows that are no array in memory, and what may be asked of them: their shape and their folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

__all__ = ["RowSource"]


class RowSource:
    """Rows on disk or on a cluster, which stand for X in a task.

    Functions that take X check and cut what is in memory; of a source they ask the number of rows
    and nothing else. Engines that take it know how to read it.
    """

    where: ClassVar[str]
    """Where the rows are: ``"on disk"``."""
    ndim: ClassVar[int] = 2
    shape: tuple[int, int]
    """The numbers of rows and features."""
    engines: Sequence[Any] | None = None
    """The engines that take these rows, where they are not those for rows in memory."""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        raise TypeError(f"rows {self.where} cannot be indexed")

    def resolve_cv(self, cv: Any, y: Any, **split_params: Any) -> Any:
        """Read what ``cv`` may be for these rows only; the rest is read as for rows in memory."""
        return cv
