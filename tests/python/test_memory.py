"""Too little memory is a MemoryError, never the end of the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import onefold
from onefold.learners import OnlineKMeans, RecursiveLeastSquares, RidgeStatistics

CASES = Path(__file__).with_name("memory_cases.py")


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.timeout(1200)  # BLAS may spin for a minute where it gets no memory
@pytest.mark.parametrize("group", ["learners", "virtual", "svm", "smooth", "trees", "others"])
def test_under_a_limit_there_is_a_result_or_a_memory_error(group):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, CASES, group], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout.splitlines()[-1])
    found = {outcome for outcomes in outcomes.values() for outcome in outcomes}
    failed = {
        name: each for name, each in outcomes.items() if not {*each} <= {"result", "MemoryError"}
    }
    assert not failed, failed
    # The limits are such that both occur.
    assert found == {"result", "MemoryError"}, outcomes


@pytest.mark.parametrize("learner", [RecursiveLeastSquares(), RidgeStatistics()])
def test_a_state_that_cannot_fit_is_named_with_its_bytes(learner):
    X = sp.eye_array(50, 10**7, format="csr")
    with pytest.raises(MemoryError, match=r"X with 10000000 features needs 400\d{12} bytes"):
        onefold.cross_validate(learner, X, np.arange(50.0), cv=5)


def test_an_argument_that_cannot_fit_is_named_with_its_bytes():
    X = np.ones((20, 3))
    with pytest.raises(MemoryError, match=r"n_clusters=1000000000000 .* needs \d{14} bytes"):
        onefold.cross_validate(OnlineKMeans(n_clusters=10**12), X, cv=5)
    with pytest.raises(MemoryError, match="folds of 1000000000000 samples"):
        onefold.Folds.contiguous(10**12, 2)
