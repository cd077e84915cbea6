"""Progress bars, shown on request; the only module that uses tqdm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Report", "part", "reporter"]

Report = Callable[[int, int], None]
"""Called with the units of work done and the units expected in all."""


@contextmanager
def reporter(
    progress: bool | Report, *, unit: str, description: str | None = None
) -> Iterator[Report | None]:
    """Open a progress bar with rate and time left, and close it whatever happens.

    Parameters
    ----------
    progress : bool or callable (done, total)
        Whether to show one, or a callback instead.
    unit : str
        What is counted: ``"rows"``, ``"folds"``; ``"B"`` counts bytes.
    description : str, optional
        The text before the bar.

    Yields
    ------
    report : callable (done, total) or None
        None without progress.

    Examples
    --------
    >>> from onefold._utils.progress import reporter
    >>> with reporter(False, unit="folds") as report:
    ...     print(report)
    None
    """
    if callable(progress) or not progress:
        yield progress if callable(progress) else None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install 'onefold[progress]'") from error
    is_bytes = unit == "B"
    with tqdm(
        desc=description,
        unit=unit if is_bytes else f" {unit}",
        unit_scale=True,
        unit_divisor=1024 if is_bytes else 1000,
    ) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total or None
            bar.update(done - bar.n)

        yield report


_UNITS_PER_PART = 1000
"""Units in which a part of the work is reported, whatever its own units are."""


def part(progress: bool | Report, number: int, n_parts: int) -> bool | Report:
    """The progress of one of several parts of the work, given the progress of all.

    Examples
    --------
    >>> from onefold._utils.progress import part
    >>> half = part(print, 1, 2)
    >>> half(5, 10)
    1500 2000
    """
    if not callable(progress):
        return progress

    def report(done: int, total: int) -> None:
        progress(
            number * _UNITS_PER_PART + _UNITS_PER_PART * done // max(total, 1),
            n_parts * _UNITS_PER_PART,
        )

    return report
