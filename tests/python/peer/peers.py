"""scikit-learn's own tests, run on our functions and classes of the same names.

The tests come from the installed scikit-learn; none of them is copied. A test module is executed
again while the names that it imports are ours, so that the arguments of parametrised tests are
ours, too. Where we differ on purpose is listed in `differences.py`.
"""

import importlib
import inspect
import re
from contextlib import ExitStack
from types import ModuleType
from unittest import mock

import pytest


def adopt(name, replaced):
    """Return the names of a test module of scikit-learn, for a test module of ours.

    Parameters
    ----------
    name : str
        The test module.
    replaced : dict of dicts
        By package, the names that are ours. Tests that use none of them are left out.
    """
    module = importlib.import_module(name)  # what it imports gets scikit-learn's own names
    with ExitStack() as stack:
        for package, ours in replaced.items():
            stack.enter_context(mock.patch.multiple(package, **ours))
        importlib.reload(module)
    for package, ours in replaced.items():
        _replace_module(module, importlib.import_module(package), ours)
    names = {name for ours in replaced.values() for name in ours}
    adopted = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    all_ours = [value for ours in replaced.values() for value in ours.values()]
    for name in [name for name in adopted if name.startswith("test_")]:
        if _uses(adopted[name], module, names, set()):
            _keep_cases(adopted[name], all_ours)
        else:
            del adopted[name]
    return adopted


def _replace_module(module, package, ours):
    """Give a test module its own copy of a package that it uses as a whole: ``svm.SVC``."""
    for name, value in list(vars(module).items()):
        if value is package:
            copied = ModuleType(package.__name__)
            vars(copied).update(vars(package) | ours)
            setattr(module, name, copied)


def _keep_cases(test, ours):
    """Of a test that is parametrised with classes or functions, keep the cases of ours.

    Cases that are generated become a list, as pytest wants them.
    """
    marks = getattr(test, "pytestmark", [])
    for number, mark in enumerate(marks):
        if mark.name != "parametrize":
            continue
        names, cases = mark.args[0], list(mark.args[1])
        keywords = dict(mark.kwargs)
        kept = [place for place, case in enumerate(cases) if _is_ours(case, ours)]
        if kept:
            cases = [cases[place] for place in kept]
            if isinstance(keywords.get("ids"), (list, tuple)):
                keywords["ids"] = [keywords["ids"][place] for place in kept]
        marks[number] = pytest.mark.parametrize(names, cases, **keywords).mark


def _is_ours(case, ours):
    """Whether a value of a case is one of ours, or an instance of one."""
    values = getattr(case, "values", case)
    values = values if isinstance(values, (list, tuple)) else [values]
    classes = tuple(own for own in ours if inspect.isclass(own))
    return any(isinstance(value, classes) or any(value is own for own in ours) for value in values)


def _uses(value, module, names, seen):
    """Whether a test uses one of the names, also through functions and lists of its module."""
    words = set(re.findall(r"\w+", inspect.getsource(value)))
    if words & names:
        return True
    ours = [vars(module)[name] for name in names if name in vars(module)]
    for word in words - seen:
        seen.add(word)
        other = vars(module).get(word)
        if isinstance(other, (list, tuple)) and any(own in ours for own in other):
            return True
        is_here = getattr(other, "__module__", None) == module.__name__
        if is_here and inspect.isroutine(other) and _uses(other, module, names, seen):
            return True
    return False
