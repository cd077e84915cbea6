"""Native models between workers: their states are sent as they are in memory, without copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._core import Learner

__all__ = ["NativeModels", "aligned"]


class NativeModels:
    """The native models of all candidates that share a tree.

    Parameters
    ----------
    learners : tuple of Learner

    Examples
    --------
    >>> import pickle
    >>> from onefold._core import Learner
    >>> from onefold.distributed._models import NativeModels
    >>> models = NativeModels((Learner("perceptron", 1000, 2, {"fit_intercept": False}),))
    >>> buffers = []
    >>> header = pickle.dumps(models, protocol=5, buffer_callback=buffers.append)
    >>> len(header) < 500, [buffer.raw().nbytes for buffer in buffers], models.nbytes
    (True, [8000], 8000)
    """

    def __init__(self, learners: tuple[Learner, ...]) -> None:
        self.learners = learners

    def __iter__(self) -> Iterator[Learner]:
        return iter(self.learners)

    def __len__(self) -> int:
        return len(self.learners)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(learner.state.nbytes for learner in self.learners)

    def merged(self, other: NativeModels) -> NativeModels:
        """Models of the rows that either have learnt."""
        return NativeModels(tuple(map(Learner.merged, self.learners, other.learners)))

    def __reduce__(self) -> tuple[Any, ...]:
        reduced: list[Any] = [learner.__reduce__() for learner in self.learners]
        arguments = [pair[1] for pair in reduced]
        return _restore, (
            [argument[:-1] for argument in arguments],
            [argument[-1] for argument in arguments],
        )


def _restore(arguments: list[Any], states: list[NDArray[np.float64]]) -> NativeModels:
    make: Any = Learner
    learners = [
        make(*argument, aligned(state)) for argument, state in zip(arguments, states, strict=True)
    ]
    return NativeModels(tuple(learners))


def aligned(part: Any) -> Any:
    """An array as the core takes it: one that is a part of a message may start at any byte."""
    if part is None:
        return None
    if sp.issparse(part):
        csr: Any = part
        arrays = tuple(aligned(item) for item in (csr.data, csr.indices, csr.indptr))
        return type(csr)(arrays, shape=csr.shape)
    return part if part.flags.aligned else part.copy()
