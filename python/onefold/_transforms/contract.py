"""What a transformer shares between folds, and what a fold gets from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

__all__ = ["FoldRows", "Indices", "Shared", "returns_arrays"]

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class FoldRows:
    """The transformed rows of one fold."""

    train: Any
    test: Any
    fitted: Callable[[], Any]
    """Makes the scikit-learn transformer that is fitted to the training rows."""


class Shared(Protocol):
    """The part of a transformer's work that is the same for all folds."""

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Transform the rows of one fold, with the bits of scikit-learn's own transformer.

        Raises an error where scikit-learn's fit would: the caller then fits the whole pipeline,
        which raises scikit-learn's.
        """
        ...


def returns_arrays(step: Any) -> bool:
    """Whether ``set_output`` asks for no frames of a transformer."""
    has_own = hasattr(step, "_sklearn_output_config")
    return not has_own and get_config()["transform_output"] == "default"
