"""TreeCV against one pass over the data, scikit-learn and river: every figure in one run.

    ONEFOLD_DATA=… python benches/peers/treecv.py [--quick] [--write] [--without-peers]

needs a release build (``make .venv/bench``), covtype.libsvm.xz and news20.bz2. The full run takes
about ten minutes on two quiet cores, ``--quick`` a minute; ``--write`` puts the table into
benches/results/treecv.md. Each line shows the figure, the bound it is held to, what was measured
and whether it holds. Sides of a comparison take turns and the best of their times counts.

*One pass* is `Learner.update` of the same native learner over the same rows on one thread.
"""

import argparse
import sys
import warnings
from functools import partial
from itertools import islice
from math import inf, log2
from pathlib import Path

from joblib import parallel_config
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.model_selection import cross_val_score as sklearn_cross_val_score

import onefold
from onefold._inputs.folds import resolve_cv
from onefold.learners import Pegasos

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data, memory
from common.native import Native
from common.report import Figures, add_options, machine, write_figures
from common.timing import race, seconds

ALPHA = 1e-6


def leave_one_out(figures, X, y, rounds):
    """Leave-one-out on covtype: what a tree of 581 012 leaves costs, and what options cost.

    The bounds are those of leave-one-out; ten folds are shown beside it.
    """
    native = Native(Pegasos(ALPHA), X, y)
    n = len(y)
    loo, ten = native.folds(n), native.folds(10)
    default = {"placement": "random", "order": "random"}
    shuffled = {k: resolve_cv(KFold(k, shuffle=True, random_state=0), X) for k in (10, n)}
    fed = native.tree(loo)["rows_fed"] / n
    best = race(
        rounds,
        one=native.one_pass,
        loo=lambda: native.tree(loo),
        two=lambda: native.tree(loo, n_jobs=2),
        default=lambda: native.tree(loo, **default),
        random=lambda: native.tree(loo, order="random"),
        shuffled=lambda: native.tree(shuffled[n]),
        ten=lambda: native.tree(ten),
        ten_default=lambda: native.tree(ten, **default),
        ten_random=lambda: native.tree(ten, order="random"),
        ten_shuffled=lambda: native.tree(shuffled[10]),
    )

    def against(a, b):
        return best[a] / best[b], f"{best[a]:.3f} s / {best[b]:.3f} s"

    ratio, detail = against("loo", "one")
    theory = f"{detail}; feeds {fed:.2f} n rows, theorem {log2(2 * n):.2f} n"
    name = "covtype, leave-one-out against one pass"
    figures.at_most(name, ratio, 20, detail=theory, ours=best["loo"])

    def faster(name, a, b, bound):
        ratio, detail = against(a, b)
        figures.at_least(name, ratio, bound, detail=detail, ours=best[b])

    def slower(name, a, b, bound=None):
        ratio, detail = against(a, b)
        figures.at_most(name, ratio, bound, detail=detail, ours=best[a])

    faster("… two threads faster than one", "loo", "two", 1.7)
    slower("… random placement, the default, against given", "default", "loo", 1.5)
    slower("… random order against fixed", "random", "loo", 2)
    slower("… folds shuffled by row against contiguous", "shuffled", "loo", 1.5)
    slower("covtype, ten folds against one pass", "ten", "one")
    slower("… random placement and order, the default, against given", "ten_default", "ten")
    slower("… random order against fixed", "ten_random", "ten")
    slower("… folds shuffled by row against contiguous", "ten_shuffled", "ten")


def facade(figures, X, y, rounds):
    """What the user waits for: checks, conversion and scores of 581 012 folds included."""
    learner = Pegasos(ALPHA)
    best = race(
        rounds,
        fit=lambda: learner.fit(X, y),
        loo=lambda: onefold.cross_val_score(learner, X, y, cv="loo", engine="tree"),
    )
    detail = f"{best['loo']:.3f} s / {best['fit']:.3f} s"
    name = "covtype, cross_val_score(cv='loo') against fit"
    figures.at_most(name, best["loo"] / best["fit"], detail=detail, ours=best["loo"])


class ScikitLearn:
    """cross_val_score(SGDClassifier(max_iter=1)) with two jobs, threads or processes."""

    def __init__(self, X, y, n_folds_timed):
        self.X, self.y, self.n_folds_timed = X, y, n_folds_timed
        self.backend = "threading"

    def run(self, cv, *, shuffle=True):
        """Cross-validate with the first folds of `cv`, at most `n_folds_timed`."""
        if self.share(cv) < 1:
            cv = list(islice(cv.split(self.X, self.y), self.n_folds_timed))
        # The same λ, one pass; the constant feature is in the data on both sides.
        classifier = SGDClassifier(
            alpha=ALPHA, max_iter=1, tol=None, fit_intercept=False, shuffle=shuffle, random_state=0
        )
        with parallel_config(self.backend):
            sklearn_cross_val_score(classifier, self.X, self.y, cv=cv, n_jobs=2)

    def share(self, cv):
        """Return the share of the folds that are timed."""
        return min(1, self.n_folds_timed / cv.get_n_splits())

    def choose_backend(self):
        """Take threads or processes, whichever is faster for them."""
        taken = {"threading": inf, "loky": inf}
        for self.backend in (*taken, *taken):
            taken[self.backend] = min(taken[self.backend], seconds(lambda: self.run(KFold(10))))
        self.backend = min(taken, key=taken.get)


def against_sklearn(figures, X, y, rounds, theirs):
    """The same number of folds by scikit-learn, unless `theirs` is None; two threads for both."""

    def ours(cv, options):
        onefold.cross_val_score(
            Pegasos(ALPHA), X, y, cv=cv, engine="tree", n_jobs=2, engine_options=options
        )

    given = {"placement": "given", "order": "fixed"}
    for k, bound in ((10, 30), (100, 150)):
        cases = (
            (f"cv={k} (stratified), defaults", k, StratifiedKFold(k), {}, True, bound),
            (f"KFold({k}), defaults", KFold(k), KFold(k), {}, True, bound),
            (f"KFold({k}), given order in both", KFold(k), KFold(k), given, False, None),
        )
        for name, our_cv, their_cv, options, shuffle, limit in cases:
            best = race(
                rounds,
                theirs=theirs and partial(theirs.run, their_cv, shuffle=shuffle),
                ours=partial(ours, our_cv, options),
            )
            taken, detail = best["theirs"], ""
            if theirs:
                share = theirs.share(their_cv)
                taken /= share
                timed = "" if share == 1 else f", {theirs.n_folds_timed} of {k} folds timed"
                detail = f"{taken:.1f} s ({theirs.backend}{timed}) / {best['ours']:.3f} s"
            figures.at_least(
                f"faster than scikit-learn, {name}",
                taken / best["ours"],
                limit,
                detail=detail,
                ours=best["ours"],
            )


def river_pass(X, y):
    """Return a function that makes one pass of river's linear model, or None without river."""
    try:
        from river import linear_model, optim
    except ImportError:
        print("river is not installed (pip install --group bench): left out")
        return None
    rows, labels = [dict(enumerate(row)) for row in X.tolist()], y.tolist()

    def one_pass():
        model = linear_model.LogisticRegression(
            optimizer=optim.SGD(0.01), loss=optim.losses.Hinge(), l2=ALPHA, intercept_lr=0.0
        )
        for row, label in zip(rows, labels, strict=True):
            model.learn_one(row, label)

    return one_pass


def against_river(figures, X, y, rounds, with_river):
    """One pass of river's linear model in Python against our whole leave-one-out."""
    n_rows = len(y)
    native = Native(Pegasos(ALPHA), X, y)
    loo = native.folds(n_rows)
    river = river_pass(X, y) if with_river else None
    best = race(rounds, river=river, ours=lambda: native.tree(loo))
    figures.at_least(
        f"leave-one-out of {n_rows:,} rows faster than one pass of river",
        best["river"] / best["ours"],
        detail=f"{best['river']:.2f} s / {best['ours']:.4f} s, one thread",
        ours=best["ours"],
    )


def sparse(figures, rounds):
    """Leave-one-out of long sparse rows: the number of features must not matter."""
    X, y = data.news20()
    n = len(y)
    native, wide = (Native(Pegasos(1e-4), rows, y) for rows in (X, data.spread(X, 10)))
    loo = native.folds(n)
    cost = native.tree(loo)
    best = race(
        rounds,
        one=native.one_pass,
        loo=lambda: native.tree(loo),
        wide=lambda: wide.tree(loo),
    )
    counts = f"{cost['copies']:,} copies, {cost['undo_entries']:,} undo entries"
    figures.at_most(
        f"news20 (sparse), leave-one-out against one pass, log2(2n) = {log2(2 * n):.1f}",
        best["loo"] / best["one"],
        1.5 * log2(2 * n),
        detail=f"{best['loo']:.4f} s / {best['one']:.4f} s; {counts}",
        ours=best["loo"],
    )
    figures.at_most(
        "… ids spread over ten times as many features",
        best["wide"] / best["loo"],
        1.2,
        detail=f"{best['wide']:.4f} s / {best['loo']:.4f} s",
        ours=best["wide"],
    )


def memory_above_data(figures, X, y, with_sklearn):
    """Peak memory of a process that cross-validates, less what it held with the data loaded."""
    if not memory.can_measure():
        figures.skip("memory above the data", "needs Linux")
        return
    detail = f"the data: {X.nbytes / 1e6:.0f} MB; through cross_validate"
    for job in ("leave-one-out", "leave-one-out, two threads"):
        figures.at_most(
            f"covtype, memory above the data, {job}",
            memory.above_data(X, y, job),
            50,
            unit=" MB",
            detail=detail,
        )
    job = "scikit-learn, ten folds"
    name = f"covtype, memory above the data, {job}"
    if with_sklearn:
        figures.at_most(name, memory.above_data(X, y, job), unit=" MB", detail="one job")
    else:
        figures.skip(name, "peer left out")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, fewer of their folds")
    parser.add_argument("--write", action="store_true", help="write benches/results/treecv.md")
    add_options(parser)
    arguments = parser.parse_args()
    quick, with_peers = arguments.quick, not arguments.without_peers
    # The peers' deprecations are not what is measured here.
    warnings.simplefilter("ignore")
    described = machine()
    print(described)
    X, y = data.covtype()
    figures = Figures()
    leave_one_out(figures, X, y, rounds=3 if quick else 10)
    facade(figures, X, y, rounds=1 if quick else 5)
    sparse(figures, rounds=10 if quick else 50)
    memory_above_data(figures, X, y, with_sklearn=with_peers and not quick)
    some = slice(5_000 if quick else 50_000)
    against_river(figures, X[some], y[some], rounds=1 if quick else 3, with_river=with_peers)
    theirs = ScikitLearn(X, y, n_folds_timed=4 if quick else 20) if with_peers else None
    if theirs and not quick:
        theirs.choose_backend()
    against_sklearn(figures, X, y, rounds=1 if quick else 3, theirs=theirs)
    print(figures.summary())
    figures.save(arguments.json)
    if arguments.write:
        write_figures("treecv.md", "TreeCV: ours and theirs in one run", described, figures)


if __name__ == "__main__":
    main()
