"""How many threads or processes to use."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

__all__ = ["blas_threads", "effective_n_jobs"]


def effective_n_jobs(n_jobs: int | None, n_tasks: int | None = None) -> int:
    """Return joblib's meaning of ``n_jobs``, at most one per core and one per task.

    Examples
    --------
    >>> from joblib import cpu_count
    >>> from onefold._utils.jobs import effective_n_jobs
    >>> effective_n_jobs(None), effective_n_jobs(10**30, n_tasks=1)
    (1, 1)
    >>> effective_n_jobs(10**6) == effective_n_jobs(-1) == cpu_count()
    True
    """
    # The workers of the active backend, which may be those of a cluster.
    jobs: int = min(joblib.effective_n_jobs(n_jobs), joblib.effective_n_jobs(-1))
    return jobs if n_tasks is None else max(1, min(jobs, n_tasks))


def blas_threads(n_jobs: int | None) -> AbstractContextManager[Any]:
    """Limit the threads of numpy's products to ``n_jobs``, as joblib reads it.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._utils.jobs import blas_threads
    >>> with blas_threads(1):
    ...     float(np.ones(3) @ np.ones(3))
    3.0
    """
    limited: AbstractContextManager[Any] = _controller().limit(
        limits=effective_n_jobs(n_jobs), user_api="blas"
    )
    return limited


@cache
def _controller() -> Any:
    return ThreadpoolController()
