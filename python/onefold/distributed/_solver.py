"""What the engines of a cluster share: one object for the candidates that share their work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from .._engines.base import Outcome
from .._engines.spec import Spec
from .._engines.task import Task
from .._utils.progress import reporter
from ._source import ChunkedData

__all__ = ["ClusterSolver"]


class ClusterSolver(ABC):
    """Cross-validates candidates that share their work over the chunks of a cluster.

    Parameters
    ----------
    task : Task
        Its ``n_jobs`` is the number of threads of each task of the cluster.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._data: ChunkedData = task.data.X
        self._n_jobs = task.n_jobs or 1

    @classmethod
    def solve(cls, specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Solve the candidates of one family: see `onefold._engines.spec.Solve`."""
        with (
            reporter(task.progress, unit="tasks") as report,
            task.data.X.session.reporting(report),
        ):
            yield from cls(task).run([spec.estimator for spec in specs])

    @classmethod
    def fit_spec(cls, spec: Spec, task: Task) -> Any:
        """Fit the estimator of a spec to all rows."""
        return cls(task).fit(spec.estimator)

    @abstractmethod
    def run(self, estimators: list[Any]) -> Iterator[tuple[int, Outcome]]:
        """Cross-validate all candidates; yield the position and the outcome of each."""

    @abstractmethod
    def fit(self, estimator: Any) -> Any:
        """Fit a candidate to all rows."""
