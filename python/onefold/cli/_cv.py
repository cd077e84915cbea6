"""``onefold cv``: cross-validate a learner on a file."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ..model_selection._cross_validate import cross_validate
from ._console import Console, UsageError
from ._learners import LEARNERS, last_step, make_estimator
from ._options import (
    add_file_options,
    add_fold_options,
    add_learner_options,
    add_output_options,
    check_outputs,
    metrics,
    params_of,
    suggest,
)
from ._problem import Problem, add_memory_options, load_problem
from ._show import metric_name, result_as_dict, show_result, write_predictions, write_report

__all__ = ["add_parser"]

_EXAMPLES = """\
examples:
  onefold cv ridge diabetes.csv --target progression -p alpha=0.1
  onefold cv ridge diabetes.csv -k loo --scoring neg_mean_squared_error
  onefold cv svc heart_scale -k 10 -p C=10 -p gamma=0.1 --scale standard
  onefold cv logistic a9a.xz --scoring accuracy,roc_auc --jobs -1 --json
  onefold cv pegasos big.d -k 100 -p alpha=1e-6 --stream --memory-mb 500
  onefold cv sklearn.ensemble.RandomForestClassifier iris.csv -k 5
  onefold cv --list

FILE is LIBSVM text (plain, .gz, .bz2, .xz, .zst; - is standard input), a directory made
by onefold convert, a CSV or TSV file, or an npz file with the arrays X and y.
"""


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "cv",
        help=summary,
        description="Cross-validate a learner, for about the price of one fit.",
        epilog=_EXAMPLES,
    )
    learner = parser.add_argument(
        "learner", nargs="?", metavar="LEARNER", help="short name (see --list) or path of a class"
    )
    suggest(learner, LEARNERS)
    parser.add_argument("file", nargs="?", metavar="FILE", help="file or directory to read")
    parser.add_argument("--list", action="store_true", help="list the short names of learners")
    add_fold_options(parser)
    add_learner_options(parser)
    add_file_options(parser)
    add_memory_options(parser)
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
    check_outputs(arguments, "report", "predictions", "save")
    scoring = metrics(arguments.scoring)
    estimator = make_estimator(arguments.learner, params_of(arguments.param))
    problem = load_problem(arguments, estimator, arguments.file, console)
    start = time.perf_counter()
    result = cross_validate(
        problem.estimator,
        problem.X,
        problem.y,
        cv=problem.cv,
        groups=problem.groups,
        scoring=scoring,
        engine=arguments.engine,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        progress=console.progress,
        error_score="raise",
        engine_options=problem.options,
    )
    seconds = time.perf_counter() - start
    result.notes = [*result.notes, *problem.notes]
    _finish(arguments, console, result, problem, seconds)


def _finish(
    arguments: argparse.Namespace, console: Console, result: Any, problem: Problem, seconds: float
) -> None:
    """Print and write what was found."""
    name = type(last_step(problem.estimator)[0]).__name__
    if arguments.scale:
        name += f" after {arguments.scale} scaling"
    n_samples = int(result.folds.n_samples)
    metric = metric_name(metrics(arguments.scoring), problem.estimator)
    where = problem.where(n_samples)
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
    summary = {"command": "cv", **problem.summary, "n_samples": n_samples}
    console.emit(summary | settings | scores)


def _list_learners(console: Console) -> None:
    rows = [(name, learner.path, learner.text) for name, learner in LEARNERS.items()]
    console.table(["learner", "class", "what it is"], rows)
    console.emit(
        {"command": "cv", "learners": {name: learner.path for name, learner in LEARNERS.items()}}
    )
