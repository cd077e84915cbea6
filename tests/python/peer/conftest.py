"""Fixtures that scikit-learn's tests ask for, and the differences from it that are on purpose."""

from pathlib import Path

import numpy as np
import pytest
import sklearn
from differences import DIFFERENT, LACKING
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """The tests are small: several threads would only get in each other's way."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture
def global_dtype():
    return np.float64


@pytest.fixture
def enable_slep006():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "thread_unsafe: of scikit-learn, for runs in several threads"
    )


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent != HERE:
            continue
        item.add_marker(pytest.mark.filterwarnings("ignore"), append=False)
        names = {item.name, getattr(item, "originalname", item.name), *beginnings(item.name)}
        for name in ((item.path.stem, own) for own in names):
            if name in LACKING:
                item.add_marker(pytest.mark.skip(reason=LACKING[name]))
            if name in DIFFERENT:
                item.add_marker(pytest.mark.xfail(reason=DIFFERENT[name], strict=True))


def beginnings(name):
    """Names of groups of cases that a case is in: ``test[a*`` of ``test[a-b]``."""
    test, bracket, case = name.partition("[")
    return (f"{test}{bracket}{case[:end]}*" for end in range(1, len(case)))
