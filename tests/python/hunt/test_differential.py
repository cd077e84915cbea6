"""Random cross-validations against scikit-learn: what `hunt_promises` says holds for all of them.

A short run with fixed seeds is part of the tests. ``make hunt`` draws new cases for HUNT_SECONDS
and keeps those that fail in a database that the next hunt starts with.
"""

import os
import time
from collections import Counter

import pytest
from hunt_cases import cases
from hunt_check import check
from hunt_estimators import FAMILIES
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from threadpoolctl import threadpool_limits

SECONDS = float(os.environ.get("HUNT_SECONDS", "0"))
SEED = int(os.environ.get("ONEFOLD_SEED", "0"))
EXAMPLES = 10
DRAWN = Counter()
"""Cases checked so far by family, for the last lines of the output."""
RULES = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_scikit_learn(family):
    def one(case):
        DRAWN[family] += 1
        check(case)

    with threadpool_limits(1):
        if not SECONDS:
            short = settings(RULES, max_examples=EXAMPLES, database=None, phases=[Phase.generate])
            seed(SEED)(short(given(cases(family))(one)))()
            return
        end = time.monotonic() + SECONDS / len(FAMILIES)
        database = DirectoryBasedExampleDatabase(f".hypothesis/hunt/{family.replace(' ', '_')}")
        while time.monotonic() < end:
            settings(RULES, max_examples=50, database=database)(given(cases(family))(one))()
