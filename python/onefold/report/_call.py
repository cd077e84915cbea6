"""The call that reproduces a result, as far as the result knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.folds import Folds, resolve_cv
from .._utils.text import describe
from ..result._settings import metric_names

if TYPE_CHECKING:
    from ..model_selection._search.result import SearchResult
    from ..result._cv_result import CVResult

__all__ = ["call_of_result", "call_of_search"]

MAX_LISTED = 20
"""Values of a parameter that are written out."""


def call_of_result(result: CVResult) -> str:
    """The call of `cross_validate`."""
    settings = getattr(result, "settings", None) or {}
    lines = [
        f"{settings.get('estimator') or f'{result.estimator_name}(...)'},",
        "X," if result.targets is None else "X, y,",
        *_keywords(result, settings, name="result"),
        f"engine={result.engine!r},",
        *_seed(settings),
        *_engine_options(settings),
    ]
    return _call("result = onefold.cross_validate", lines)


def call_of_search(search: SearchResult) -> str:
    """The call of `GridSearchCV`, with the candidates as they were."""
    result = None if search.best is None else search.results.get(search.best)
    settings = (getattr(result, "settings", None) or {}) if result is not None else {}
    folds = search.folds
    lines = [f"{settings.get('estimator') or 'estimator'},", f"{_grid(search.table['params'])},"]
    if result is not None:
        lines += _keywords(result, settings, name="search.result_", arrays=False)
    elif isinstance(folds, Folds) and len(folds) == folds.n_samples:
        lines.append('cv="loo",')
    else:
        lines.append(f"cv=search.result_.folds,  # {folds!r}")
    lines += _seed(settings)
    lines += _engine_options(settings)
    has_targets = result is None or result.targets is not None
    fit = ["X", "y"] if has_targets else ["X"]
    fit += ["groups=groups"] if search.has_groups else []
    fit += [f"{name}={name}" for name in settings.get("arrays", [])]
    return f"{_call('search = onefold.GridSearchCV', lines)}.fit({', '.join(fit)})"


def _engine_options(settings: dict[str, Any]) -> list[str]:
    options = settings.get("options")
    if not options:
        return []
    inner = ", ".join(f"{name!r}: {text}" for name, text in options.items())
    return [f"engine_options={{{inner}}},"]


def _call(function: str, lines: list[str]) -> str:
    indented = [f"    {line}" for text in lines for line in text.splitlines()]
    return "\n".join([f"{function}(", *indented, ")"])


def _keywords(
    result: CVResult, settings: dict[str, Any], *, name: str, arrays: bool = True
) -> list[str]:
    lines = [f"cv={_cv(result, name)}"]
    scoring = _scoring(settings)
    if scoring is not None:
        lines.append(f"scoring={scoring},")
    if arrays and result.has_groups:
        lines.append("groups=groups,")
    if arrays:
        known = settings.get("arrays", [])
        lines += ["sample_weight=sample_weight,"] if "sample_weight" in known else []
        others = [item for item in known if item != "sample_weight"]
        if others:
            lines.append(f"params={{{', '.join(f'{other!r}: {other}' for other in others)}}},")
    return lines


def _seed(settings: dict[str, Any]) -> list[str]:
    seed = settings.get("random_state", "0")
    return [] if seed == "0" else [f"random_state={seed},"]


def _cv(result: CVResult, name: str) -> str:
    """The shortest argument that makes the same folds."""
    folds = result.folds
    if isinstance(folds, Folds):
        if len(folds) == folds.n_samples:
            return '"loo",'
        n_folds, labels = len(folds), folds.labels
        is_classifier = result.classes is not None or result._loss_of_predictions == "zero-one"
        if is_classifier and _is_default(result, labels):
            return f"{n_folds},  # stratified"
        if np.array_equal(Folds.contiguous(folds.n_samples, n_folds).labels, labels):
            return f"KFold({n_folds})," if is_classifier else f"{n_folds},"
    return f"{name}.folds,  # {folds!r}"


def _is_default(result: CVResult, labels: Any) -> bool:
    """Whether an integer as ``cv`` makes these folds for a classifier."""
    if result.targets is None or result.targets.ndim != 1:
        return False
    _, counts = np.unique(result.targets, return_counts=True)
    if counts.min() < len(result.folds):
        return False
    made = resolve_cv(len(result.folds), result.targets, result.targets, classifier=True)
    return isinstance(made, Folds) and np.array_equal(made.labels, labels)


def _scoring(settings: dict[str, Any]) -> str | None:
    scoring = settings.get("scoring", {})
    names = metric_names(settings)
    if list(scoring) == ["score"]:
        if "score" in names:
            return repr(names["score"])
        return None if scoring["score"].endswith(".score") else "scoring"
    if not scoring:
        return None
    if all(names.get(name) == name for name in scoring):
        return repr(list(scoring))
    parts = [
        f"{name!r}: {names[name]!r}" if name in names else f"{name!r}: ..." for name in scoring
    ]
    return f"{{{', '.join(parts)}}}"


def _grid(params: list[dict[str, Any]]) -> str:
    """The grid if the candidates are one, else the list of candidates."""
    keys = list(params[0]) if params else []
    values: dict[str, dict[str, Any]] = {key: {} for key in keys}
    for setting in params:
        if list(setting) != keys:
            return _candidates(params)
        for key in keys:
            values[key].setdefault(repr(setting[key]), setting[key])
    n_cells = int(np.prod([len(value) for value in values.values()], dtype=object)) if keys else 1
    distinct = {tuple(repr(setting[key]) for key in keys) for setting in params}
    if n_cells != len(params) or len(distinct) != n_cells:
        return _candidates(params)
    parts = [
        f"{key!r}: [{_listed([_plain(v) for v in value.values()])}]"
        for key, value in values.items()
    ]
    return f"{{{', '.join(parts)}}}"


def _candidates(params: list[dict[str, Any]]) -> str:
    """Candidates that are no grid: as grids of one cell each."""
    if len(params) > MAX_LISTED:
        return f"...,  # {len(params)} candidates, the first: {describe(params[0])}".rstrip(",")
    cells = (
        "{" + ", ".join(f"{key!r}: [{_plain(value)}]" for key, value in setting.items()) + "}"
        for setting in params
    )
    return f"[{', '.join(cells)}]"


def _listed(texts: list[str]) -> str:
    if len(texts) <= MAX_LISTED:
        return ", ".join(texts)
    return ", ".join([*texts[: MAX_LISTED // 2], "...", *texts[-MAX_LISTED // 2 :]])


def _plain(value: Any) -> str:
    """The repr of a value, of numpy's numbers as Python's."""
    return repr(value.item() if isinstance(value, np.generic) else value)
