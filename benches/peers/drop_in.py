"""The scripts at the top of the README: ours and theirs in one run, one thread on both sides.

    python benches/peers/drop_in.py [--only search loo pegasos] [--quick] [--write]
                                    [--without-peers]

The search is the first block of Python in the README itself. Its peer is the same text with
scikit-learn's import in place of ours. Seconds are CPU time. ONEFOLD_DATA names the folder with
covtype, for the two parts with leave-one-out. Both sides have `n_jobs=None` and one BLAS thread.
"""

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.data import covtype
from common.script import run
from common.timing import cpu_seconds

import onefold
from onefold.learners import Pegasos

README = Path(__file__).parents[2] / "README.md"
OURS = "from onefold import GridSearchCV"
THEIRS = "from sklearn.model_selection import GridSearchCV"


def scripts():
    """Return the script of the README, and the one that it says it was before."""
    script = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)[1]
    line = next(line for line in script.splitlines() if line.startswith(OURS))
    return script, script.replace(line, THEIRS)


def execute(script):
    """Run a script; return what it defines and prints."""
    namespace, printed = {}, io.StringIO()
    with redirect_stdout(printed):
        exec(script, namespace)
    return namespace["search"], printed.getvalue()


def best_of(rounds, *sides):
    """Run the sides in turn; return the best CPU seconds and the last result of each."""
    best, results = [np.inf] * len(sides), [None] * len(sides)
    for _ in range(rounds):
        for side, work in enumerate(sides):
            taken, results[side] = cpu_seconds(work)
            best[side] = min(best[side], taken)
    return list(zip(best, results, strict=True))


def search(figures, quick, peers):
    """The grid search, by both imports."""
    sides = [lambda script=script: execute(script) for script in scripts()[: 2 if peers else 1]]
    (ours, (fitted, printed)), *others = best_of(1 if quick else 3, *sides)
    theirs, detail = np.nan, ""
    for seconds, (reference, reference_printed) in others:
        apart = fitted.cv_results_["mean_test_score"] - reference.cv_results_["mean_test_score"]
        same = "both print" if printed == reference_printed else "they print differently:"
        theirs = seconds
        detail = (
            f"{theirs:.1f} s / {ours:.2f} s; {same} {printed.strip()}; "
            f"scores differ by {np.abs(apart).max():.0e} at most"
        )
    name = "GridSearchCV of StandardScaler and SVC, 25 candidates, 10 folds, digits, one thread"
    figures.at_least(name, theirs / ours, detail=detail, ours=ours)


def rows(quick):
    """Covtype, scaled, class 1 or not."""
    X, y = covtype(constant=False)
    return (X[:20_000], y[:20_000]) if quick else (X, y)


def loo(figures, quick, peers):
    """Leave-one-out of logistic regression against one fit of scikit-learn."""
    X, y = rows(quick)
    ours, result = cpu_seconds(lambda: onefold.cross_validate(LogisticRegression(), X, y, cv="loo"))
    fit = cpu_seconds(lambda: LogisticRegression().fit(X, y))[0] if peers else np.nan
    name = f"leave-one-out of LogisticRegression, covtype ({len(y):,} × {X.shape[1]}), one thread"
    detail = f"{ours:.1f} s / {fit:.2f} s; accuracy {result.pooled:.4f}"
    figures.at_most(f"{name}, in fits of scikit-learn", ours / fit, detail=detail, ours=ours)


def pegasos(figures, quick, peers):
    """Leave-one-out of Pegasos by TreeCV."""
    X, y = rows(quick)
    (ours, result), *_ = best_of(3, lambda: onefold.cross_validate(Pegasos(1e-6), X, y, cv="loo"))
    name = f"leave-one-out of Pegasos, covtype ({len(y):,} × {X.shape[1]}), one thread"
    fed = result.cost["rows_fed"] / len(y)
    detail = f"{fed:.1f} n rows fed instead of {len(y) - 1:,} n; accuracy {result.pooled:.4f}"
    figures.at_most(name, ours, unit=" s", detail=detail, ours=ours)


PARTS = {"search": search, "loo": loo, "pegasos": pegasos}


if __name__ == "__main__":
    run(PARTS, __doc__, title="The first page of the README", result="drop_in.md")
