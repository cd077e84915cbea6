"""What a native call finds, as soon as it is known, while the call goes on in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from .._utils.progress import Report

__all__ = ["streamed"]

T = TypeVar("T")

POLL_SECONDS = 0.1
"""How often the calling thread looks for Ctrl-C."""


class _Stopped(Exception):  # noqa: N818 (not an error: it ends the native call)
    """Raised by the report of a call that no one waits for."""


def streamed(
    call: Callable[[Callable[[T], object], Report], object], report: Report | None
) -> Iterator[T]:
    """Yield what a call sends.

    Parameters
    ----------
    call : callable (send, report)
        Called in a thread. It calls ``report(done, total)`` often; an exception of that ends it.
    report : callable (done, total), optional
        What else is called then, in the same thread.

    Yields
    ------
    result
        What ``call`` has passed to ``send``. When the call ends by an exception, or when the caller
        is interrupted, everything that was sent is yielded before the exception is raised.

    Examples
    --------
    >>> from onefold._engines.streamed import streamed
    >>> list(streamed(lambda send, report: [send(number) for number in range(3)], None))
    [0, 1, 2]
    """
    results: SimpleQueue[tuple[T] | None] = SimpleQueue()
    is_stopped = Event()
    raised: list[BaseException] = []

    def report_unless_stopped(done: int, total: int) -> None:
        if is_stopped.is_set():
            raise _Stopped
        if report is not None:
            report(done, total)

    def work() -> None:
        try:
            call(lambda result: results.put((result,)), report_unless_stopped)
        except BaseException as error:
            raised.append(error)
        results.put(None)

    thread = Thread(target=work, name="onefold-call", daemon=True)
    thread.start()
    try:
        while True:
            try:
                result = _next(results)
            except KeyboardInterrupt as error:  # Ctrl-C
                raised.insert(0, error)
                is_stopped.set()
                continue
            if result is None:
                break
            yield result[0]
    finally:
        is_stopped.set()
        thread.join()
    if raised:
        raise raised[0]


def _next(results: SimpleQueue[Any]) -> Any:
    """The next entry of a queue, for which Ctrl-C does not have to wait."""
    while True:
        try:
            return results.get(timeout=POLL_SECONDS)
        except Empty:
            continue
