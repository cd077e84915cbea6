"""``onefold cv``: cross-validate a learner on a file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier, is_regressor

from ..model_selection import cross_validate
from ..svm import SVC, SVR
from ._console import Console, UsageError
from ._files import Rows, format_of, load_rows, targets_for
from ._learners import LEARNERS, last_step, make_estimator, suited, with_seed
from ._options import (
    add_file_options,
    add_fold_options,
    add_learner_options,
    add_output_options,
    check_folds,
    make_cv,
    metrics,
    params_of,
    positive_number,
)
from ._show import metric_name, result_as_dict, show_result, write_predictions, write_report

__all__ = ["add_parser", "make_problem"]

_EXAMPLES = """\
examples:
  onefold cv ridge diabetes.csv --target progression -k loo -p alpha=0.1
  onefold cv svc heart_scale -k 10 -p C=10 -p gamma=0.1 --scale standard
  onefold cv logistic a9a.xz --scoring accuracy,roc_auc --jobs -1 --json
  onefold cv pegasos big.d -k 100 -p alpha=1e-6 --stream --memory-mb 500
  onefold cv sklearn.ensemble.RandomForestClassifier iris.csv -k 5
  onefold cv --list

FILE is LIBSVM text (plain, .gz, .bz2, .xz, .zst; - is standard input), a directory made
by onefold convert, a CSV or TSV file, or an npz file with the arrays X and y.
"""


def add_parser(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "cv",
        help="cross-validate a learner on a file",
        description="Cross-validate a learner: scores of held-out rows, for about one fit.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "learner", nargs="?", metavar="LEARNER", help="short name (see --list) or path of a class"
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="the rows")
    parser.add_argument("--list", action="store_true", help="list the short names of learners")
    add_fold_options(parser)
    add_learner_options(parser)
    add_file_options(parser)
    big = parser.add_argument_group("files larger than memory")
    big.add_argument(
        "--stream",
        action="store_true",
        help="read rows block by block where they exceed the memory: LIBSVM text or a "
        "directory; learners of onefold, naive Bayes, least squares",
    )
    big.add_argument(
        "--memory-mb",
        type=positive_number,
        metavar="MB",
        help="memory for rows (implies --stream), or for the kernel values of an SVM",
    )
    files = parser.add_argument_group("results")
    files.add_argument("--report", metavar="FILE.html", help="write a report page")
    files.add_argument(
        "--predictions", metavar="FILE.csv", help="write the held-out prediction of every row"
    )
    files.add_argument(
        "--save", metavar="FILE.json", help="save the whole result, for onefold.CVResult.from_json"
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    if arguments.list:
        _list_learners(console)
        return
    if arguments.learner is None or arguments.file is None:
        raise UsageError("LEARNER and FILE are needed")
    scoring = metrics(arguments.scoring)
    estimator = make_estimator(arguments.learner, params_of(arguments.param))
    options: dict[str, Any] = {
        "scoring": scoring,
        "engine": arguments.engine,
        "n_jobs": arguments.jobs,
        "random_state": arguments.seed,
        "progress": console.progress,
        "error_score": "raise",
    }
    if arguments.memory_mb is not None:
        options["memory_mb"] = arguments.memory_mb
    is_svm = isinstance(estimator, SVC | SVR)  # whose kernel values take the memory
    if arguments.stream or (arguments.memory_mb is not None and not is_svm):
        arguments.stream = True
        _stream(arguments, estimator, options, console)
        return
    rows = load_rows(
        arguments.file,
        format=arguments.format,
        target=arguments.target,
        groups=arguments.groups,
        dense=arguments.dense,
        progress=console.progress,
    )
    estimator, rows, y, cv = make_problem(arguments, estimator, rows)
    start = time.perf_counter()
    result = cross_validate(estimator, rows.X, y, cv=cv, groups=rows.groups, **options)
    seconds = time.perf_counter() - start
    result.notes = [*result.notes, *rows.notes]
    n_samples, n_features = rows.X.shape
    where = f"{rows.path}: {n_samples} rows, {n_features} features"
    _finish(arguments, console, result, estimator, rows.summary, where, seconds)


def make_problem(
    arguments: argparse.Namespace, estimator: Any, rows: Rows
) -> tuple[Any, Rows, Any, Any]:
    """The estimator with its scaler, rows and targets that suit it, and the folds."""
    classifies = is_classifier(estimator)
    with_seed(estimator, arguments.seed)
    y = targets_for(rows, numbers=is_regressor(estimator))
    estimator, rows.X, notes = suited(estimator, rows.X, arguments.scale)
    rows.notes += notes
    cv = _make_cv(arguments, classifies)
    check_folds(cv, rows, y if classifies else None)
    return estimator, rows, y, cv


def _make_cv(arguments: argparse.Namespace, stratified: bool) -> Any:
    return make_cv(
        arguments.folds or 10,
        stratified=stratified,
        has_groups=arguments.groups is not None,
        shuffle=not arguments.no_shuffle,
        repeats=arguments.repeats,
        seed=arguments.seed,
    )


def _stream(
    arguments: argparse.Namespace, estimator: Any, options: dict[str, Any], console: Console
) -> None:
    """Cross-validate a file in blocks of rows."""
    for name in ("scale", "groups", "target"):
        if getattr(arguments, name) is not None:
            raise UsageError(f"--stream and --{name} exclude each other")
    if format_of(arguments.file) not in ("libsvm", "directory"):
        raise UsageError("--stream is for LIBSVM text and directories of onefold convert")
    if not Path(arguments.file).exists():
        raise FileNotFoundError(f"{arguments.file}: no such file")
    cv = _make_cv(arguments, is_classifier(estimator))
    start = time.perf_counter()
    result = cross_validate(estimator, arguments.file, cv=cv, **options)
    seconds = time.perf_counter() - start
    summary = {"file": arguments.file, "n_samples": int(result.folds.n_samples)}
    where = f"{arguments.file}: {result.folds.n_samples} rows"
    _finish(arguments, console, result, estimator, summary, where, seconds)


def _finish(
    arguments: argparse.Namespace,
    console: Console,
    result: Any,
    estimator: Any,
    summary: dict[str, Any],
    where: str,
    seconds: float,
) -> None:
    """Print and write what was found."""
    last, _ = last_step(estimator)
    name = type(last).__name__
    if arguments.scale:
        name += f" after {arguments.scale} scaling"
    metric = metric_name(metrics(arguments.scoring), estimator)
    show_result(console, result, where=where, seconds=seconds, name=name, metric=metric)
    if arguments.predictions:
        write_predictions(result, arguments.predictions)
        console.line(f"predictions: {arguments.predictions}")
    if arguments.save:
        result.to_json(arguments.save)
        console.line(f"result: {arguments.save}")
    if arguments.report:
        write_report(result, arguments.report)
        console.line(f"report: {arguments.report}")
    params = {key: str(value) for key, value in params_of(arguments.param).items()}
    settings = {"learner": arguments.learner, "params": params, "scale": arguments.scale}
    settings |= {"folds": arguments.folds or 10, "seed": arguments.seed}
    settings |= {"shuffle": not arguments.no_shuffle}
    scores = result_as_dict(result, seconds=seconds, metric=metric)
    console.emit({"command": "cv", **summary, **settings, **scores})


def _list_learners(console: Console) -> None:
    rows = [(name, own.path, own.text) for name, own in LEARNERS.items()]
    console.table(["learner", "class", "what it is"], rows)
    console.emit({"command": "cv", "learners": {name: own.path for name, own in LEARNERS.items()}})
