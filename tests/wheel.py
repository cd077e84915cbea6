"""Use the installed wheel from an environment that holds nothing else.

Run by `make wheel-test`, outside the source tree: what is imported is the wheel. With
``--built-here``, by `make sdist-test`, it may name directories of this machine.
"""

import os
import subprocess
import sys
from importlib.metadata import files
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

# Neither the extension nor the metadata name a directory of the machine that built them. pip adds
# bytecode, scripts and direct_url.json, which do.
cargo = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
directories = (Path.home(), Path(__file__).resolve().parents[1], cargo)
packed = [
    file
    for file in files("onefold") or []
    if ".." not in file.parts and file.suffix != ".pyc" and file.name != "direct_url.json"
]
names = {file.name for file in packed}
assert "LICENSE-THIRD-PARTY" in names, "the wheel lacks the licences of the crates in it"
assert len(packed) > 100, f"the wheel has {len(packed)} files"
for file in () if "--built-here" in sys.argv else packed:
    content = Path(file.locate()).read_bytes()
    for directory in directories:
        for named in (f"{directory}/", f"file://{directory}"):
            place = content.find(named.encode())
            found = content[place : place + 200]
            assert place < 0, f"{file} names a path of this machine: {found!r}"

X, y = load_iris(return_X_y=True)
result = onefold.cross_validate(Ridge(), X, y, cv="loo", scoring="neg_mean_squared_error")
expected = [
    Ridge().fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] for i in range(len(y))
]
np.testing.assert_allclose(result.predictions, expected)

command = [sys.executable, "-m", "onefold", "--version"]
shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
assert shown == f"onefold {onefold.__version__}", shown
version = sys.version.split()[0]
print(f"onefold {onefold.__version__} works from its wheel on Python {version}: {result.mean:.4f}")
