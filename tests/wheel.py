"""Use the installed wheel from an environment that holds nothing else.

Run by `make wheel-test`, outside the source tree: what is imported is the wheel. With
``--built-here``, by `make sdist-test`, it may name directories of this machine.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge

import onefold

package = Path(onefold.__file__).parent
assert Path(sys.prefix) in package.parents, f"imported from {package}, not from the wheel"
assert (package / "py.typed").exists(), "the wheel lacks its type marker"
assert (package / "_core.pyi").exists(), "the wheel lacks its stubs"
assert not list(package.parent.glob("docs")), "the wheel has the documentation in it"
binary = Path(onefold._core.__file__).read_bytes()
cargo = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
directories = (Path.home(), Path(__file__).resolve().parents[1], cargo)
for directory in () if "--built-here" in sys.argv else directories:
    place = binary.find(f"{directory}/".encode())
    assert place < 0, f"the wheel names a path of this machine: {binary[place : place + 200]!r}"
X, y = load_iris(return_X_y=True)
result = onefold.cross_validate(Ridge(), X, y, cv="loo", scoring="neg_mean_squared_error")
expected = [
    Ridge().fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] for i in range(len(y))
]
np.testing.assert_allclose(result.predictions, expected)
print(f"onefold {onefold.__version__} works from its wheel: {result.mean:.4f}")
