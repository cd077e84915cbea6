"""ONEFOLD_SEED, a number, gives the tests other random data: it is added to their seeds."""

import functools
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import sklearn.datasets
from clock import Clock

from onefold.model_selection._search import deadline

# A shell ignores Ctrl-C in what it starts in the background, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
SHIFT = int(os.environ.get("ONEFOLD_SEED", "0"))


def _is_ours(frame):
    """Whether a call comes from one of these tests."""
    return HERE in Path(frame.f_globals.get("__file__", "")).parents


def _shifted(make):
    """The same maker of generators, with other seeds for these tests."""

    @functools.wraps(make)
    def shifted(seed=None, *more):
        if isinstance(seed, int) and _is_ours(sys._getframe(1)):
            seed += SHIFT
        return make(seed, *more)

    return shifted


def _with_other_data(make):
    """The same maker of data sets, with another random_state for these tests."""

    @functools.wraps(make)
    def other(*arguments, **keywords):
        if isinstance(keywords.get("random_state"), int) and _is_ours(sys._getframe(1)):
            keywords["random_state"] += SHIFT
        return make(*arguments, **keywords)

    return other


if SHIFT:
    np.random.default_rng = _shifted(np.random.default_rng)
    for _name in ("make_blobs", "make_circles", "make_classification", "make_moons",
                  "make_multilabel_classification", "make_regression"):  # fmt: skip
        setattr(sklearn.datasets, _name, _with_other_data(getattr(sklearn.datasets, _name)))
    for _name in ("random", "random_array"):
        setattr(scipy.sparse, _name, _with_other_data(getattr(scipy.sparse, _name)))


@pytest.fixture
def clock(monkeypatch):
    """Time budgets count the seconds of the class `Clock`, which pass when a test says so."""
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: Clock.now))
    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr(Clock, "interrupted_at", float("inf"))
    return Clock
