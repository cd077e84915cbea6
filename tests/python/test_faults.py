"""Reads and writes that fail, at every call in turn: an error of the system, and nothing is left.

A library is compiled and preloaded that makes the n-th call for a file of a case fail; the cases
themselves are in `fault_cases`.
"""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fault_cases import CASES

HERE = Path(__file__).parent
COMPILER = shutil.which("cc")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or COMPILER is None, reason="needs a C compiler, and LD_PRELOAD"
)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "fault_shim.so"
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", library, HERE / "fault_shim.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


def run(case, folder, shim, error, kind):
    """How many calls failed, and how many failures did no harm."""
    variables = os.environ | {"LD_PRELOAD": str(shim), "FAULT_FOLDER": str(folder)}
    done = subprocess.run(
        [sys.executable, HERE / "fault_cases.py", case, folder, str(error), kind],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@pytest.mark.parametrize("case", CASES)
def test_each_read_and_write_may_fail(case, shim, tmp_path):
    n_failed, n_survived = run(case, tmp_path, shim, errno.EIO, "all")
    assert n_failed > 0
    assert n_survived == 0


@pytest.mark.parametrize("case", ["text", "sorted_copy", "predictions", "conversion", "dump"])
def test_the_disk_may_be_full_at_each_write(case, shim, tmp_path):
    n_failed, n_survived = run(case, tmp_path, shim, errno.ENOSPC, "writes")
    assert n_failed > 0
    assert n_survived == 0
