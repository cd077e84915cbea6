"""Memory that a job takes above its data, measured in a process of its own (Linux only).

Run as a script by `above_data`: it loads X.npy and y.npy from a folder, warms up on a few rows, and
prints by how much the peak of resident memory exceeds what the process held before the job.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

__all__ = ["JOBS", "above_data", "can_measure", "kilobytes"]

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def can_measure():
    """Whether the system tells and resets the peak of a process's memory."""
    return STATUS.is_file() and RESET.is_file()


def above_data(X, y, job):
    """Return the megabytes that `job`, one of `JOBS`, takes above the arrays themselves."""
    with TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), X)
        np.save(Path(folder, "y.npy"), y)
        command = [sys.executable, __file__, folder, job]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def _loo(X, y):
    import onefold
    from onefold.learners import Pegasos

    onefold.cross_validate(Pegasos(1e-6), X, y, cv="loo", engine="tree")


def _loo_on_two_threads(X, y):
    import onefold
    from onefold.learners import Pegasos

    onefold.cross_validate(Pegasos(1e-6), X, y, cv="loo", engine="tree", n_jobs=2)


def _sklearn_ten_folds(X, y):
    from sklearn.linear_model import SGDClassifier
    from sklearn.model_selection import cross_val_score

    cross_val_score(SGDClassifier(max_iter=1, tol=None), X, y, cv=10)


JOBS = {
    "leave-one-out": _loo,
    "leave-one-out, two threads": _loo_on_two_threads,
    "scikit-learn, ten folds": _sklearn_ten_folds,
}


def kilobytes(field):
    """Return a field of this process's status, such as VmRSS or VmHWM, its peak."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def _measure(folder, job):
    X, y = np.load(Path(folder, "X.npy")), np.load(Path(folder, "y.npy"))
    # What is imported and allocated once is not the job's.
    JOBS[job](X[:1000], y[:1000])
    RESET.write_text("5")
    before = kilobytes("VmRSS")
    JOBS[job](X, y)
    print((kilobytes("VmHWM") - before) * 1024 / 1e6)


if __name__ == "__main__":
    _measure(*sys.argv[1:])
