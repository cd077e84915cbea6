"""How deep a call is: frames of Python from `cross_validate` to the core."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import onefold
from onefold import _core
from onefold.learners import Pegasos

CONTRIBUTING = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
Y = np.arange(60) % 2


@pytest.mark.parametrize("estimator", [Pegasos(), SVC(), LogisticRegression()], ids=str)
def test_contributing_says_how_many_frames_lie_before_the_core(monkeypatch, estimator):
    """As many as the page says: a call that grows a layer must change the page."""
    core, depths = _core.cross_validate, []

    def counted(*arguments, **keywords):
        names = [frame.function for frame in inspect.stack(0)]
        depths.append(names.index("cross_validate"))
        return core(*arguments, **keywords)

    monkeypatch.setattr(_core, "cross_validate", counted)
    onefold.cross_validate(estimator, X, Y, cv=3)
    name = type(estimator).__name__
    claimed = re.search(rf"^\| `{name}` \| (\d+) \|", CONTRIBUTING, re.MULTILINE)
    assert depths == [int(claimed[1])]
