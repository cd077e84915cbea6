"""The connection to a cluster: tasks with keys of their own, and nothing left behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from .._utils.progress import Report
from ._chunks import Chunk
from ._models import NativeModels

__all__ = ["Session", "import_dask", "merge_results", "register_sizes"]

MAX_MERGED = 8
"""Results that one task of a reduction merges."""

SECONDS_BETWEEN_REPORTS = 0.05


def import_dask(name: str = "distributed") -> Any:
    """Import a module of dask, or raise an error that names the extra."""
    try:
        module = import_module(name)
    except ImportError as error:
        raise ImportError(
            f"onefold.distributed needs dask ({error}): pip install onefold[dask]"
        ) from error
    return module


def register_sizes() -> None:
    """Tell dask how large chunks and native models are. Workers do so when they load a task."""
    sizeof = import_dask("dask.sizeof").sizeof
    for kind in (Chunk, NativeModels):
        sizeof.register(kind, lambda values: values.nbytes + 256)


class Session:
    """Submits tasks to a client, and releases all of them at the end.

    Parameters
    ----------
    client : distributed.Client or None
        None is the current client.
    """

    def __init__(self, client: Any = None) -> None:
        distributed = import_dask()
        register_sizes()
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                raise ValueError(
                    "client is None, and there is no current client: start one by "
                    "distributed.Client(), or pass client="
                ) from None
        if not isinstance(client, distributed.Client):
            raise TypeError(f"client must be a distributed.Client, got {client!r}")
        if client.asynchronous:
            raise ValueError("client must not be asynchronous")
        self.client: Any = client
        self._distributed = distributed
        self._tokenize: Callable[..., str] = import_dask("dask.base").tokenize
        self._kept: dict[str, Any] = {}
        self._submitted: WeakSet[Any] = WeakSet()
        self.n_tasks = 0
        self._report: Report | None = None
        self._awaited: WeakSet[Any] = WeakSet()
        self._n_awaited = 0

    def token(self, *parts: Any) -> str:
        """A name that is the same for the same parts."""
        return self._tokenize(*parts)

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        key: str,
        near: Sequence[str] = (),
        priority: int = 0,
    ) -> Any:
        """Submit one task, preferably to the workers ``near``; others may take it, too."""
        self.n_tasks += 1
        place: dict[str, Any] = {}
        if near:
            place = {"workers": list(near), "allow_other_workers": True}
        name = f"onefold_{function.__name__}-{key}"
        future = self.client.submit(function, *arguments, key=name, priority=priority, **place)
        self._submitted.add(future)
        return future

    def keep(self, futures: Sequence[Any]) -> None:
        """Hold results until the end of the session."""
        self._kept.update({future.key: future for future in futures})
        self._submitted.update(futures)
        self._awaited.update(futures)
        self._n_awaited += len(futures)

    def drop(self, futures: Sequence[Any]) -> None:
        """Let the cluster forget results that were held."""
        for future in futures:
            self._kept.pop(future.key, None)

    def wait(self, futures: Sequence[Any]) -> None:
        """Wait until tasks are finished, or have failed."""
        self._follow(futures)
        self._distributed.wait(list(futures))

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Fetch results from the workers; the error of a task is raised as it is."""
        self._follow(futures)
        results: list[Any] = self.client.gather(list(futures))
        return results

    @contextmanager
    def reporting(self, report: Report | None) -> Iterator[None]:
        """Report how many of the results to be held are there; what ``report`` raises ends it."""
        self._report, self._awaited, self._n_awaited = report, WeakSet(), 0
        try:
            yield
        except BaseException:
            self.drop(list(self._awaited))
            raise
        finally:
            self._report = None

    def _follow(self, futures: Sequence[Any]) -> None:
        """Report until some tasks are finished, or one has failed."""
        while self._report is not None:
            left = sum(not future.done() for future in self._awaited)
            self._report(self._n_awaited - left, self._n_awaited)
            if all(map(_is_done, futures)) or any(map(_has_failed, futures)):
                return
            time.sleep(SECONDS_BETWEEN_REPORTS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Tasks that nobody wants are dropped by the scheduler, whether or not the call has failed.
        # Errors keep frames alive, and these futures, so they are released one by one.
        self._kept.clear()
        for future in list(self._submitted):
            future.release()


def _is_done(future: Any) -> bool:
    return bool(future.done())


def _has_failed(future: Any) -> bool:
    return bool(future.status == "error")


def merge_results(
    session: Session,
    function: Callable[..., Any],
    *arguments: Any,
    futures: Sequence[Any],
    token: str,
) -> Any:
    """Merge results where they are, by a tree of tasks ``function(*arguments, list)``."""
    pending = list(futures)
    while len(pending) > 1:
        batches = [pending[at : at + MAX_MERGED] for at in range(0, len(pending), MAX_MERGED)]
        pending = [
            batch[0]
            if len(batch) == 1
            else session.submit(
                function,
                *arguments,
                batch,
                key=session.token(token, [future.key for future in batch]),
                priority=1,
            )
            for batch in batches
        ]
    return pending[0]
