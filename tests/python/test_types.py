"""The types that a user's code sees."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("typed_script.py")


def test_a_script_of_a_user_passes_strict_type_checks(tmp_path):
    pytest.importorskip("mypy")
    config = tmp_path / "mypy.ini"  # scikit-learn has no types
    config.write_text("[mypy]\nstrict = True\n[mypy-sklearn.*]\nignore_missing_imports = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", config, SCRIPT]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_script_runs():
    ran = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("newton: 0.98")
