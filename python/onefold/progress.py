"""Progress bars: silent unless asked for, and the only place that knows tqdm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Report", "reporter"]

Report = Callable[[int, int], None]
"""Called with the units of work done and the units expected in all."""


@contextmanager
def reporter(
    progress: bool, *, unit: str, description: str | None = None
) -> Iterator[Report | None]:
    """Open a progress bar with rate and time left, and close it whatever happens.

    Parameters
    ----------
    progress : bool
        Whether to show one.
    unit : str
        What is counted: ``"rows"``, ``"folds"``; ``"B"`` counts bytes.
    description : str, optional
        What stands before the bar.

    Yields
    ------
    report : callable (done, total) or None
        None without progress, so that nobody counts in vain.

    Examples
    --------
    >>> from onefold.progress import reporter
    >>> with reporter(False, unit="folds") as report:
    ...     print(report)
    None
    """
    if not progress:
        yield None
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
