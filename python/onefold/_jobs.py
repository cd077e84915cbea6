"""How many threads or processes to use."""

import joblib


def effective_n_jobs(n_jobs: int | None, n_tasks: int | None = None) -> int:
    """Return joblib's meaning of ``n_jobs``, at most one per core and one per task.

    Examples
    --------
    >>> from joblib import cpu_count
    >>> from onefold._jobs import effective_n_jobs
    >>> effective_n_jobs(None), effective_n_jobs(10**30, n_tasks=1)
    (1, 1)
    >>> effective_n_jobs(10**6) == effective_n_jobs(-1) == cpu_count()
    True
    """
    # The workers of the active backend, which may be those of a cluster.
    jobs: int = min(joblib.effective_n_jobs(n_jobs), joblib.effective_n_jobs(-1))
    return jobs if n_tasks is None else max(1, min(jobs, n_tasks))
