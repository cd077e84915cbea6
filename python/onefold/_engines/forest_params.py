"""Parameters of scikit-learn's trees and forests, as the core reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble, tree
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from .._core import OutOfFold
from .._sklearn_compat import n_bootstrap_rows, validate_params
from .._utils.estimator_class import known_class

__all__ = [
    "BAGS",
    "FORESTS",
    "FRACTIONS",
    "TREES",
    "ForestOptions",
    "ForestParams",
    "growth",
    "n_draws",
    "tree_of",
    "why_not_parameters",
]

TREES = (
    tree.DecisionTreeClassifier,
    tree.DecisionTreeRegressor,
    tree.ExtraTreeClassifier,
    tree.ExtraTreeRegressor,
)
FORESTS = (
    ensemble.RandomForestClassifier,
    ensemble.RandomForestRegressor,
    ensemble.ExtraTreesClassifier,
    ensemble.ExtraTreesRegressor,
)
EXTRA = (ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor)
BAGS = (ensemble.BaggingClassifier, ensemble.BaggingRegressor)

CRITERIA = {"gini", "entropy", "log_loss", "squared_error"}
MAX_SEED = 2**32 - 1
MAX_DRAWN = np.iinfo(np.int32).max
"""scikit-learn draws the ``random_state`` of a member below this number."""

FRACTIONS = ", fractions"
"""The end of the name of a kind of growth, with targets that are not whole numbers."""

NOT_COVERED: dict[str, Any] = {
    "monotonic_cst": None,
    "warm_start": False,
    "oob_score": False,
    "bootstrap_features": False,
}
"""Parameters with the only value that is covered."""

Seeds = NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class ForestParams:
    """The parameters of a tree or a forest, as the core reads them."""

    criterion: str
    splitter: str
    max_depth: int | None
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    max_features: int
    max_leaf_nodes: int | None
    ccp_alpha: float
    seeds: Seeds
    """The ``random_state`` of every tree."""
    sample_seeds: Seeds | None = None
    """The ``random_state`` of every bootstrap sample, if it is not that of the tree."""
    n_draws: list[int] | None = None
    """Rows of a bootstrap sample of each training set; None without bootstrap."""

    @classmethod
    def of(cls, estimator: Any, n_features: int, n_train: Sequence[int]) -> ForestParams:
        """Read the parameters of an estimator, for training sets of ``n_train`` rows."""
        member = tree_of(estimator)
        return cls(
            criterion=member.criterion,
            splitter=_splitter(estimator, member),
            max_depth=None if member.max_depth is None else int(member.max_depth),
            min_samples_split=_count(member.min_samples_split),
            min_samples_leaf=_count(member.min_samples_leaf),
            min_weight_fraction_leaf=float(member.min_weight_fraction_leaf),
            min_impurity_decrease=float(member.min_impurity_decrease),
            max_features=_max_features(member.max_features, n_features),
            max_leaf_nodes=None if member.max_leaf_nodes is None else int(member.max_leaf_nodes),
            ccp_alpha=float(member.ccp_alpha),
            n_draws=n_draws(estimator, n_train) if getattr(estimator, "bootstrap", False) else None,
            **_seeds(estimator),
        )


@dataclass(frozen=True)
class ForestOptions:
    """What all trees of the installed scikit-learn have in common, as the core reads it."""

    min_difference: float
    """Values of a column that differ by no more count as equal."""
    on_finished: Callable[[int, OutOfFold], object] | None = None
    """Called with the position and the result of each candidate as soon as it is finished, in a
    thread of the core. Nothing is returned then."""

    @classmethod
    @cache
    def installed(cls) -> ForestOptions:
        """Those of the installed version, which splits two neighbors or does not."""
        neighbors = np.array([[0.0], [1e-8]])
        stump = tree.DecisionTreeClassifier(random_state=0).fit(neighbors, [0, 1])
        return cls(min_difference=1e-7 if stump.get_depth() == 0 else 0.0)


def tree_of(estimator: Any) -> Any:
    """What has the parameters of the trees: the estimator itself, or the member of a bag."""
    if known_class(estimator, BAGS) is None:
        return estimator
    if estimator.estimator is not None:
        return estimator.estimator
    kind = tree.DecisionTreeClassifier if is_classifier(estimator) else tree.DecisionTreeRegressor
    return kind()


def growth(
    estimator: Any,
    *,
    has_fractions: bool = False,
    is_weighted: bool = False,
    is_sparse: bool = False,
    has_missing: bool = False,
) -> tuple[str, ...]:
    """What must be as in scikit-learn for its trees to be those of the core.

    Parameters
    ----------
    estimator : estimator
    has_fractions : bool
        Whether sums of targets depend on the order of addition.
    is_weighted : bool
        Whether samples have weights.
    is_sparse : bool
        Whether rows are sparse.
    has_missing : bool
        Whether values are missing.
    """
    member = tree_of(estimator)
    criterion = "entropy" if member.criterion == "log_loss" else member.criterion
    kinds = [f"{_splitter(estimator, member)} {criterion}"]
    if known_class(estimator, FORESTS) is not None:
        kinds.append("forest of classes" if is_classifier(estimator) else "forest of numbers")
    if member.max_leaf_nodes is not None:
        kinds.append("best first")
    if member.ccp_alpha > 0:
        kinds.append("pruned")
    if member is not estimator:
        kinds.append("bagged")
    if is_weighted and getattr(estimator, "bootstrap", False):
        kinds.append("weighted bootstrap")
    if is_sparse:
        kinds.append("sparse")
    if has_missing:
        kinds.append("missing")
    return tuple(f"{kind}{FRACTIONS}" for kind in kinds) if has_fractions else tuple(kinds)


def _splitter(estimator: Any, member: Any) -> str:
    is_extra = known_class(estimator, EXTRA) is not None
    return str(getattr(member, "splitter", "random" if is_extra else "best"))


def _seeds(estimator: Any) -> dict[str, Seeds]:
    if known_class(estimator, TREES) is not None:
        return {"seeds": np.array([estimator.random_state], dtype=np.uint32)}
    random = check_random_state(estimator.random_state)
    drawn = random.randint(MAX_DRAWN, size=int(estimator.n_estimators))
    if known_class(estimator, FORESTS) is not None:
        return {"seeds": drawn.astype(np.uint32)}
    # The member of a bag draws its seed from that of its sample.
    seeds = [np.random.RandomState(seed).randint(MAX_DRAWN) for seed in drawn]
    return {
        "seeds": np.array(seeds, dtype=np.uint32),
        "sample_seeds": drawn.astype(np.uint32),
    }


def n_draws(estimator: Any, n_train: Sequence[int]) -> list[int]:
    """The rows that each bootstrap sample of a forest or a bag draws, by training set."""
    is_bag = known_class(estimator, BAGS) is not None
    count = _n_bagged_rows if is_bag else n_bootstrap_rows
    sizes = {n: count(n, estimator.max_samples) for n in set(n_train)}
    return [sizes[n] for n in n_train]


def _n_bagged_rows(n_rows: int, max_samples: Any) -> int:
    """The number of rows that a bag draws from a training set."""
    if max_samples is None:
        return n_rows
    return int(max_samples if isinstance(max_samples, Integral) else max_samples * n_rows)


def _count(number: Any) -> int | float:
    return int(number) if isinstance(number, Integral) else float(number)


def _max_features(max_features: Any, n_features: int) -> int:
    """The number of features that a node draws, as scikit-learn reads it."""
    if max_features is None:
        return n_features
    if isinstance(max_features, str):
        root = np.sqrt if max_features == "sqrt" else np.log2
        return max(1, int(root(n_features)))
    if isinstance(max_features, Integral):
        return int(max_features)
    return max(1, int(max_features * n_features))


def why_not_parameters(estimator: Any, n_features: int, n_train: Sequence[int]) -> str | None:
    """Which parameter of an estimator the engine does not cover, or None."""
    member = tree_of(estimator)
    try:
        validate_params(estimator)
        if member is not estimator:
            validate_params(member)
    except ValueError as error:
        return str(error)
    random_state: Any = estimator.random_state
    if not isinstance(random_state, Integral) or not 0 <= int(random_state) <= MAX_SEED:
        return f"random_state={random_state!r} is not an integer, as random_state=0 is"
    if not (isinstance(member.criterion, str) and member.criterion in CRITERIA):
        return f"criterion={member.criterion!r} is not covered"
    if member.max_leaf_nodes is not None and member.ccp_alpha > 0:
        return "max_leaf_nodes is not covered with ccp_alpha"
    return _why_not_unused(estimator, member) or _why_not_samples(estimator, n_features, n_train)


def _why_not_unused(*estimators: Any) -> str | None:
    for estimator in estimators:
        for name, value in NOT_COVERED.items():
            given: Any = getattr(estimator, name, value)
            if given is not value and not (np.ndim(given) == 0 and given == value):
                return f"{name}={given!r} is not covered"
    return None


def _why_not_samples(estimator: Any, n_features: int, n_train: Sequence[int]) -> str | None:
    if known_class(estimator, TREES) is not None:
        return None
    max_samples = estimator.max_samples
    if known_class(estimator, FORESTS) is not None:
        if not estimator.bootstrap and max_samples is not None:
            return "max_samples is for bootstrap=True"
        return None
    takes_all = max_samples is None or (max_samples == 1 and not isinstance(max_samples, Integral))
    if not estimator.bootstrap and not takes_all:
        return "samples without replacement are not covered"
    if not takes_all and min(_n_bagged_rows(n, max_samples) for n in n_train) < 1:
        return f"max_samples={max_samples!r} draws no row"
    max_features = estimator.max_features
    is_count = isinstance(max_features, Integral)
    if not (max_features == n_features if is_count else max_features == 1):
        return "members that see some of the features only are not covered"
    return None
