"""What is imported before a user asks for anything."""

import subprocess
import sys

import pytest

import onefold

HEAVY = ("sklearn", "scipy", "pandas", "matplotlib")
CALLS = ["onefold --version", "onefold --help", "onefold no-such-command", "onefold"]


def modules_after(code):
    """The packages that a new interpreter has imported after some code."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in ran.stdout.splitlines()[-1].split()}


@pytest.mark.parametrize("call", CALLS)
def test_the_command_starts_without_what_it_does_not_need(call):
    arguments = call.split()[1:]
    names = modules_after(f"from onefold.cli import main\nmain({arguments!r})")
    assert "onefold" in names
    assert names.isdisjoint(HEAVY)


def test_public_names_are_imported_on_first_use():
    assert modules_after("import onefold").isdisjoint(HEAVY)
    assert "sklearn" in modules_after("import onefold; onefold.cross_validate")
    assert "sklearn" in modules_after("import onefold; onefold.learners.Pegasos")


def test_every_public_name_is_there():
    assert set(onefold._MODULE_OF) == set(onefold.__all__) - {"__version__"}
    assert set(onefold.__all__) <= set(dir(onefold))
    for name in onefold.__all__:
        assert getattr(onefold, name) is not None
    with pytest.raises(AttributeError, match="'onefold' has no attribute 'cross_valdate'"):
        _ = onefold.cross_valdate
