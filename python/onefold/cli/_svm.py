"""``onefold svm``: cross-validation with the options and the words of ``svm-train -v``."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ..calibration import CalibratedClassifierCV
from ..model_selection._cross_validate import cross_val_predict, cross_validate
from ..result._work import duration
from ._console import Console, UsageError
from ._svm_options import SvmProblem, add_svm_options, load_problem

__all__ = ["add_parser"]

_EXAMPLES = """\
examples:
  onefold svm -v 5 heart_scale
  onefold svm -c 10 -g 0.1 -v 10 --libsvm-folds heart_scale   the accuracy svm-train prints
  onefold svm -s 3 -c 100 -p 0.5 -v 10 housing_scale          regression
  onefold svm -b 1 -v 5 heart_scale                           the most probable classes
  onefold svm -w1 10 -w-1 2 -v 5 -q heart_scale

Only cross-validation: -v is needed. svm-train itself writes model files. Types 0 and 3
share one kernel matrix among all folds; types 1, 2 and 4 are refitted by scikit-learn's
LIBSVM. --libsvm-folds reproduces the folds of svm-train on systems with the GNU C library;
with --engine refit every digit is that of svm-train, however large the tolerance -e.
"""


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "svm",
        help=summary,
        description="Cross-validate a support vector machine: the options and output of "
        "LIBSVM's svm-train -v.",
        epilog=_EXAMPLES,
        add_help=False,
    )
    parser.add_argument("file", metavar="FILE", help="LIBSVM text, a directory, CSV or npz")
    parser.add_argument("-v", type=int, metavar="N", help="number of folds (required)")
    add_svm_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    if arguments.v is None:
        raise UsageError("-v N is needed: this command cross-validates, svm-train writes models")
    if arguments.v < 2:
        raise UsageError(f"-v: n-fold cross validation: n must >= 2, got {arguments.v}")
    console.is_quiet |= arguments.q
    problem = load_problem(arguments.file, arguments, progress=console.progress)
    n_rows = len(problem.y)
    if arguments.v > n_rows:
        console.remark(
            f"WARNING: # folds ({arguments.v}) > # data ({n_rows}). Will use # folds = # data "
            "instead (i.e., leave-one-out cross validation)"
        )
    start = time.perf_counter()
    predictions, details = _held_out(problem, arguments, console)
    seconds = time.perf_counter() - start
    measures = problem.measure(predictions)
    if details and not arguments.q:
        console.remark(f"engine {details['engine']}, {duration(seconds)}")
    if problem.is_regression:
        console.line(f"Cross Validation Mean squared error = {measures['mean_squared_error']:g}")
        correlation = measures["squared_correlation"]
        console.line(f"Cross Validation Squared correlation coefficient = {correlation:g}")
    else:
        console.line(f"Cross Validation Accuracy = {measures['accuracy']:g}%")
    if "log_loss" in details:
        console.line(f"Cross Validation Log loss = {details['log_loss']:g}")
    summary = {"command": "svm", "file": arguments.file, "n_samples": n_rows}
    summary |= {"n_folds": min(arguments.v, n_rows), "libsvm_folds": arguments.libsvm_folds}
    console.emit({**summary, **measures, "seconds": seconds, **details})


def _held_out(
    problem: SvmProblem, arguments: argparse.Namespace, console: Console
) -> tuple[Any, dict[str, Any]]:
    """Held-out predictions, and how they were computed."""
    estimator = problem.estimator()
    options: dict[str, Any] = {
        "cv": problem.folds(arguments.v),
        "n_jobs": arguments.jobs,
        "progress": console.progress,
        "engine": problem.engine,
    }
    if arguments.m is not None and problem.engine != "refit":
        options["engine_options"] = {"kernel_mb": arguments.m}
    if arguments.s == 2:
        # A one-class machine has no score, so only its predictions are asked for.
        return cross_val_predict(estimator, problem.X, problem.y, **options), {}
    scoring = ["neg_mean_squared_error" if problem.is_regression else "accuracy"]
    if arguments.b:
        # As svm-train does: a sigmoid of the decision values that five folds within hold out.
        estimator = CalibratedClassifierCV(estimator, method="sigmoid", cv=5, ensemble=False)
        scoring.append("neg_log_loss")
    result = cross_validate(
        estimator, problem.X, problem.y, scoring=scoring, error_score="raise", **options
    )
    details: dict[str, Any] = {"engine": result.engine, "cost": result.cost}
    if arguments.b:
        details["log_loss"] = -result.pooled_scores["neg_log_loss"]
    return result.predictions, details
