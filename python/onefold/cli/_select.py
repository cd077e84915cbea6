"""``onefold select``: choose parameters of a learner, from options or a TOML file."""

from __future__ import annotations

import argparse
import ast
import itertools
import math
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._engines import ENGINES
from .._scoring.scorers import UNNAMED
from .._utils.text import counted, describe
from ..model_selection import GridSearchCV, RandomizedSearchCV, nested_cross_validate
from ._console import Console, UsageError
from ._learners import LEARNERS, SCALERS, last_step, literal, make_estimator, split_setting
from ._options import (
    add_file_options,
    add_fold_options,
    add_learner_options,
    add_output_options,
    check_outputs,
    fold_count,
    make_cv,
    metrics,
    params_of,
    positive_number,
    suggest,
    whole_number,
)
from ._problem import Problem, add_memory_options, load_problem
from ._show import metric_name, result_as_dict, write_report

__all__ = ["add_parser", "read_values"]

_EXAMPLES = """\
examples:
  onefold select ridge diabetes.csv --grid alpha=log:1e-3:1e3:13 -k loo --rule one_se
  onefold select svc heart_scale --scale standard --grid C=1,10,100 --grid gamma=0.01,0.1
  onefold select svc heart_scale --grid C=log:0.1:100:20 --random 10 --nested 5
  onefold select --config grid.toml heart_scale

values of --grid: 0.1,1,10   log:FROM:TO:COUNT   lin:FROM:TO:COUNT   int:FROM:TO[:STEP]

a TOML file (options on the command line take precedence):
  learner = "svc"
  file = "heart_scale"
  folds = 10
  scoring = ["accuracy"]
  scale = "standard"
  rule = "one_se"
  [params]
  kernel = "rbf"
  [grid]
  C = [0.1, 1, 10]
  gamma = { log = [1e-3, 1, 4] }
"""

MAX_ROWS_SHOWN = 15
"""Candidates in the table, the best first."""

RULES = ("best", "one_se")

_CONFIG_KEYS = (
    *("learner", "file", "folds", "scoring", "scale", "rule", "engine", "params", "grid"),
    *("target", "seed", "jobs"),
)


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "select",
        help=summary,
        description="Choose parameters by cross-validation; candidates share their work.",
        epilog=_EXAMPLES,
    )
    words = parser.add_argument(
        "words",
        nargs="*",
        metavar="[LEARNER] FILE",
        help="LEARNER and FILE; either may be in the TOML file",
    )
    suggest(words, LEARNERS, with_files=True)
    parser.add_argument("--config", metavar="FILE.toml", help="read the search from a TOML file")
    search = parser.add_argument_group("the search")
    search.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="values of a parameter; may be given several times",
    )
    search.add_argument(
        "--random",
        type=whole_number,
        metavar="N",
        help="try N candidates of the grid, drawn at random",
    )
    search.add_argument(
        "--rule",
        choices=RULES,
        default=None,
        help="choose the best candidate, or the simplest within one standard error",
    )
    search.add_argument(
        "--time-budget",
        type=positive_number,
        metavar="SECONDS",
        help="start no new candidates after this time",
    )
    search.add_argument(
        "--journal",
        metavar="FILE.jsonl",
        help="write finished candidates there, so the same command resumes after a crash; --nested "
        "also writes FILE.jsonl.nested",
    )
    search.add_argument(
        "--nested",
        type=fold_count,
        metavar="K",
        help="also estimate the whole search by nested cross-validation",
    )
    add_fold_options(parser)
    add_learner_options(parser)
    add_file_options(parser)
    add_memory_options(parser)
    files = parser.add_argument_group("results")
    files.add_argument("--report", metavar="FILE.html", help="write a report page")
    files.add_argument(
        "--save",
        metavar="FILE.json",
        help="save the whole result, for onefold.SearchResult.from_json",
    )
    files.add_argument(
        "--model",
        metavar="FILE.joblib",
        help="save the chosen estimator, fitted to all rows, for joblib.load",
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    config = _read_config(arguments.config) if arguments.config else {}
    learner, path = _learner_and_file(arguments.words, config)
    check_outputs(arguments, "report", "save", "model")
    _apply(config, arguments)
    scoring = metrics(arguments.scoring)
    settings = dict(config.get("params", {})) | params_of(arguments.param)
    grid = {name: _config_values(name, value) for name, value in config.get("grid", {}).items()}
    for name, text in map(split_setting, arguments.grid):
        grid[name] = read_values(name, text)
    if not grid:
        raise UsageError("--grid NAME=VALUES is needed, or [grid] in the TOML file")
    estimator = make_estimator(learner, settings)
    make_estimator(
        learner, {name: value[0] for name, value in grid.items()}
    )  # its parameters exist
    problem = load_problem(arguments, estimator, path, console)
    if arguments.nested is not None and isinstance(problem.X, str):
        raise UsageError("--nested needs rows in memory, so it excludes --stream")
    if arguments.nested is not None and problem.groups is not None:
        raise UsageError("--nested and --groups exclude each other")
    prefix = last_step(problem.estimator)[1]
    search = _make_search(arguments, problem, {prefix + n: v for n, v in grid.items()})
    search.set_params(scoring=scoring, progress=console.progress)
    if isinstance(scoring, list):
        search.set_params(refit=scoring[0])
    fit_params = {} if problem.groups is None else {"groups": problem.groups}
    start = time.perf_counter()
    search.fit(problem.X, problem.y, **fit_params)
    seconds = time.perf_counter() - start
    nested = _nested(arguments, search, problem, scoring)
    metric = metric_name(scoring, problem.estimator)
    n_samples = int(search.result_.folds.n_samples)
    title = f"{type(last_step(problem.estimator)[0]).__name__} on {problem.where(n_samples)}"
    _show(console, search, prefix, title, seconds, problem.notes, nested, metric)
    if arguments.save:
        search.result_.to_json(arguments.save)
        console.line(f"result: {arguments.save}")
    if arguments.model:
        import joblib

        joblib.dump(search.best_estimator_, arguments.model)
        console.line(f"model: {arguments.model}")
    if arguments.report:
        write_report(search.result_, arguments.report)
        console.line(f"report: {arguments.report}")
    console.emit(
        {"command": "select", **problem.summary, "n_samples": n_samples, "learner": learner}
        | _as_dict(search, prefix, seconds, nested, metric)
    )
    if search.partial_ and arguments.time_budget is None:
        raise KeyboardInterrupt  # what was finished is shown, and the exit code says the rest


def _make_search(
    arguments: argparse.Namespace, problem: Problem, grid: dict[str, list[Any]]
) -> Any:
    estimator = problem.estimator
    options: dict[str, Any] = {
        "cv": problem.cv,
        "engine_options": problem.options or None,
        "engine": arguments.engine,
        "rule": arguments.rule or "best",
        "n_jobs": arguments.jobs,
        "random_state": arguments.seed,
        "time_budget": arguments.time_budget,
        "on_interrupt": "return",
        "journal": arguments.journal,
        "error_score": "raise",
    }
    if arguments.random is None:
        return GridSearchCV(estimator, grid, **options)
    n_all = int(np.prod([len(value) for value in grid.values()]))
    return RandomizedSearchCV(estimator, grid, n_iter=min(arguments.random, n_all), **options)


def _nested(arguments: argparse.Namespace, search: Any, problem: Problem, scoring: Any) -> Any:
    """The nested cross-validation of the search, if it is asked for."""
    if arguments.nested is None:
        return None
    outer = make_cv(
        arguments.nested, stratified=is_classifier(problem.estimator), seed=arguments.seed
    )
    journal = None if arguments.journal is None else f"{arguments.journal}.nested"
    return nested_cross_validate(
        search,
        problem.X,
        problem.y,
        cv=outer,
        scoring=scoring,
        n_jobs=arguments.jobs,
        journal=journal,
    )


def read_values(name: str, text: str) -> list[Any]:
    """Read the values of a parameter.

    Examples
    --------
    >>> from onefold.cli._select import read_values
    >>> read_values("C", "0.1,1"), read_values("C", "log:1:100:3"), read_values("k", "int:1:5:2")
    ([0.1, 1], [1.0, 10.0, 100.0], [1, 3, 5])
    """
    kind, _, rest = text.partition(":")
    if kind not in ("log", "lin", "int") or not rest:
        try:
            # Tuples such as (10, 5) have commas of their own.
            return list(ast.literal_eval(f"[{text}]"))
        except (ValueError, SyntaxError):
            return [literal(item.strip()) for item in text.split(",")]
    return _series(f"--grid {name}", kind, rest.split(":"))


def _series(where: str, kind: str, numbers: list[Any]) -> list[Any]:
    shape = "FROM, TO[, STEP]" if kind == "int" else "FROM, TO, COUNT"
    try:
        if not (2 if kind == "int" else 3) <= len(numbers) <= 3:
            raise ValueError(f"got {counted(len(numbers), 'number')}")
        if kind == "log" and not min(float(number) for number in numbers[:2]) > 0:
            raise ValueError("both ends must be positive")
        if kind == "int":
            first, last, step = (int(item) for item in [*numbers, 1][:3])
            values: list[Any] = list(range(first, last + 1, step))
        else:
            low, high, count = float(numbers[0]), float(numbers[1]), int(numbers[2])
            space = np.geomspace if kind == "log" else np.linspace
            values = space(low, high, count).tolist()
            values[-1:] = [high] if values else []
    except (ValueError, TypeError) as error:
        raise UsageError(f"{where}: {kind} takes {shape}: {error}") from error
    if not values:
        series = ", ".join(map(str, numbers))
        raise UsageError(f"{where}: there are no values in {kind} {series}")
    return values


def _config_values(name: str, value: Any) -> list[Any]:
    """Values of a parameter in a TOML file: a list, a single value, or ``{log = [1, 10, 3]}``."""
    if isinstance(value, dict):
        [(kind, numbers)] = value.items() if len(value) == 1 else [("", None)]
        if kind not in ("log", "lin", "int") or not isinstance(numbers, list):
            raise UsageError(f"[grid] {name}: expected a list or {{log = [from, to, count]}}")
        return _series(f"[grid] {name}", kind, numbers)
    values = value if isinstance(value, list) else [value]
    if not values:
        raise UsageError(f"[grid] {name}: the list is empty")
    return values


def _read_config(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            config = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    for key in config:
        if key not in _CONFIG_KEYS:
            raise UsageError(f"{path}: unknown key {key!r}; known are {', '.join(_CONFIG_KEYS)}")
    for key, value in config.items():
        expected = _expected(key, value)
        if expected:
            raise UsageError(f"{path}: {key} must be {expected}, got {value!r}")
    return config


def _expected(key: str, value: Any) -> str:
    """What a key of a TOML file must be, if it is something else."""
    words = {
        "scale": tuple(SCALERS),
        "rule": RULES,
        "engine": ("auto", *(engine.name for engine in ENGINES)),
    }
    if key in words:
        return "" if value in words[key] else f"one of {', '.join(words[key])}"
    if key in ("params", "grid"):
        return "" if isinstance(value, dict) else "a table"
    if key in ("seed", "jobs"):
        return "" if type(value) is int and (value or key == "seed") else "a whole number"
    if key == "scoring":
        names = value if isinstance(value, list) else [value]
        return "" if all(isinstance(name, str) for name in names) else "a name or a list of names"
    is_fine = isinstance(value, str) or (key in ("folds", "target") and isinstance(value, int))
    return "" if is_fine else "text"


def _learner_and_file(words: list[str], config: dict[str, Any]) -> tuple[str, str]:
    """The learner and the file, of which either may be in the TOML file."""
    if len(words) == 2:
        return words[0], words[1]
    if len(words) == 1 and "learner" in config:
        return str(config["learner"]), words[0]
    if not words and {"learner", "file"} <= config.keys():
        return str(config["learner"]), str(config["file"])
    if len(words) > 2:
        raise UsageError(f"expected LEARNER and FILE, got {' '.join(words)}")
    raise UsageError("LEARNER and FILE are needed, as arguments or in the TOML file")


def _apply(config: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Fill in options that were not given from the TOML file."""
    if arguments.folds is None and "folds" in config:
        try:
            arguments.folds = fold_count(str(config["folds"]))
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"folds: {error}") from error
    if not arguments.scoring and "scoring" in config:
        value = config["scoring"]
        arguments.scoring = value if isinstance(value, list) else [str(value)]
    for key, default in {"scale": None, "target": None, "rule": None, "engine": "auto"}.items():
        if getattr(arguments, key) == default and key in config:
            setattr(arguments, key, str(config[key]))
    for key, number in {"seed": 0, "jobs": 1}.items():
        if getattr(arguments, key) == number and key in config:
            setattr(arguments, key, config[key])


def _show(
    console: Console,
    search: Any,
    prefix: str,
    title: str,
    seconds: float,
    notes: list[str],
    nested: Any,
    metric: str,
) -> None:
    result = search.result_
    engines = ", ".join(dict.fromkeys(result.engines))
    console.line(title)
    n_candidates = counted(len(result.engines), "candidate")
    console.line(
        f"{n_candidates}, {counted(len(result.folds), 'fold')}, engine {engines}, "
        f"{result._work(seconds)}"
    )
    console.line()
    ranks = search.cv_results_[f"rank_test_{result.metric}"]
    order: list[int] = np.argsort(ranks, kind="stable").tolist()
    if result.best is not None:
        order = [result.best, *(item for item in order if item != result.best)]
    columns = result._columns()
    params = [key for key in columns if key.startswith("param_")]
    scores = [key for key in columns if key.startswith(("mean_test_", "std_error_test_"))]
    head = [key.removeprefix("param_").removeprefix(prefix) for key in params]
    head += [_title_of(key, metric) for key in scores]
    rows = [
        ["*" if item == result.best else "", *_row(columns, params, scores, item)]
        for item in itertools.islice(order, MAX_ROWS_SHOWN)
    ]
    console.table(["", *head], rows)
    if len(order) > len(rows):
        console.line(f"{counted(len(order) - len(rows), 'more candidate')} (--json has all)")
    console.line()
    chosen = {key.removeprefix(prefix): setting for key, setting in search.best_params_.items()}
    console.line(f"chosen: {describe(chosen)}")
    if nested is not None:
        for key, mean in nested.means.items():
            error = nested.std_errors[key]
            named = metric if key == UNNAMED else key
            spread = "" if math.isnan(error) else f" ± {error:.4f}"
            console.line(f"nested: {named} {mean:.4f}{spread}, of the whole search")
    else:
        console.line("the best score of several is optimistic; --nested 5 estimates the search")
    console.remarks("note", [note.replace(prefix, "") for note in (*result.notes, *notes)])


def _title_of(key: str, metric: str) -> str:
    if not key.startswith("mean_test_"):
        return "± std error"
    name = key.removeprefix("mean_test_")
    return metric if name == UNNAMED else name


def _row(columns: dict[str, Any], params: list[str], scores: list[str], position: int) -> list[Any]:
    values = [columns[key][position] for key in params]
    shown = [f"{v:g}" if isinstance(v, float) else "-" if v is None else str(v) for v in values]
    return [*shown, *(float(columns[key][position]) for key in scores)]


def _as_dict(search: Any, prefix: str, seconds: float, nested: Any, metric: str) -> dict[str, Any]:
    result = search.result_
    columns = result._columns()
    scores = [key for key in columns if key.startswith(("mean_", "std_error_", "rank_"))]
    candidates = [
        {"params": {key.removeprefix(prefix): value for key, value in item.items()}}
        | {key: columns[key][position] for key in scores}
        | {"engine": result.engines[position]}
        for position, item in enumerate(result.table["params"])
    ]
    return {
        "metric": metric if result.metric == UNNAMED else result.metric,
        "best": {key.removeprefix(prefix): setting for key, setting in search.best_params_.items()},
        "best_index": result.best,
        "best_score": search.best_score_,
        "partial": search.partial_,
        "seconds": seconds,
        "n_folds": len(result.folds),
        "candidates": candidates,
        "nested": None
        if nested is None
        else result_as_dict(nested, seconds=math.nan, metric=metric),
        "cost": result.cost,
        "notes": result.notes,
    }
