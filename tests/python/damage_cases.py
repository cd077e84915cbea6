"""Files whose arrays lie, read in every way: each in a process of its own, so that a crash is seen.

`python damage_cases.py FORM` prints one JSON object: the outcome of each call with each damage. An
outcome is "result", an exception, or the signal that ended the process.
"""

import contextlib
import importlib
import io
import json
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.naive_bayes import MultinomialNB

import onefold
from onefold.cli import main as command
from onefold.learners import LeastSquaresSGD, RidgeStatistics

N_ROWS, N_FEATURES = 600, 10
LARGEST = 2**31 - 1
random = np.random.default_rng(0)
ROWS = sp.random(N_ROWS, N_FEATURES, 0.5, format="csr", random_state=random)
TARGETS = np.arange(N_ROWS) % 3
MIDDLE = N_ROWS // 2


def changed(position, value):
    """Replace one element."""

    def damage(array):
        array[position] = value(array) if callable(value) else value
        return array

    return damage


ARRAYS = {
    "indptr decreases": ("indptr", changed(MIDDLE, lambda own: own[MIDDLE - 2])),
    "indptr falls far": ("indptr", changed(MIDDLE, 1)),
    "indptr beyond the values": ("indptr", changed(MIDDLE, lambda own: own[-1] + 1)),
    "indptr far beyond": ("indptr", changed(MIDDLE, LARGEST)),
    "indptr negative": ("indptr", changed(MIDDLE, -5)),
    "indptr least": ("indptr", changed(MIDDLE, -LARGEST - 1)),
    "indptr starts late": ("indptr", changed(0, 1)),
    "indptr starts below": ("indptr", changed(0, -1)),
    "indptr ends early": ("indptr", changed(-1, lambda own: own[-2])),
    "indptr ends late": ("indptr", changed(-1, lambda own: own[-1] + 3)),
    "indptr ends far": ("indptr", changed(-1, LARGEST)),
    "indptr short": ("indptr", lambda own: own[:-1]),
    "indptr long": ("indptr", lambda own: np.append(own, own[-1])),
    "indptr empty": ("indptr", lambda own: own[:0]),
    "indices negative": ("indices", changed(7, -5)),
    "indices least": ("indices", changed(7, -LARGEST - 1)),
    "indices one too large": ("indices", changed(-1, N_FEATURES)),
    "indices too large": ("indices", changed(-1, N_FEATURES + 2)),
    "indices largest": ("indices", changed(MIDDLE, LARGEST)),
    "indices short": ("indices", lambda own: own[:-3]),
    "indices long": ("indices", lambda own: np.append(own, own[-3:])),
    "indices empty": ("indices", lambda own: own[:0]),
    "values short": ("values", lambda own: own[:-3]),
    "values empty": ("values", lambda own: own[:0]),
    "values long": ("values", lambda own: np.append(own, own[-3:])),
    "targets short": ("labels", lambda own: own[:-1]),
}
SHAPES = {
    "fewer features": (N_ROWS, N_FEATURES - 1),
    "no features": (N_ROWS, 0),
    "negative features": (N_ROWS, -1),
    "more features than an index has": (N_ROWS, 2**40),
    "features beyond 64 bits": (N_ROWS, 2**64 + N_FEATURES),
    "fewer rows": (N_ROWS - 1, N_FEATURES),
    "more rows": (N_ROWS + 1, N_FEATURES),
    "no rows": (0, N_FEATURES),
    "negative rows": (-N_ROWS, N_FEATURES),
    "one size": (N_ROWS,),
    "three sizes": (N_ROWS, N_FEATURES, 1),
    "fractions": (N_ROWS + 0.5, N_FEATURES),
}
VALUES = {
    "NaN": ("values", changed(5, np.nan)),
    "infinity": ("values", changed(5, np.inf)),
    "NaN in the targets": ("labels", changed(5, np.nan)),
}


def directories(folder):
    """A directory of arrays for each damage."""
    text = io.BytesIO()
    onefold.dump_libsvm(ROWS, TARGETS, text)
    text.seek(0)
    sound = folder / "sound"
    onefold.convert_libsvm(text, sound, n_features=N_FEATURES, zero_based=True)
    yield "sound", sound
    for number, (name, (array, damage)) in enumerate((ARRAYS | VALUES).items()):
        path = shutil.copytree(sound, folder / f"array{number}")
        meta = json.loads((path / "meta.json").read_text())
        replaced = damage(np.load(path / f"{array}.npy"))
        np.save(path / f"{array}.npy", replaced)
        # The fault of a program, or of somebody who wants harm: the metadata agree with the array.
        meta["arrays"][array] |= {
            "length": len(replaced),
            "bytes": (path / f"{array}.npy").stat().st_size,
            "crc32": zlib.crc32(replaced.tobytes()),
        }
        (path / "meta.json").write_text(json.dumps(meta))
        yield name, path
    for number, (name, shape) in enumerate(SHAPES.items()):
        path = shutil.copytree(sound, folder / f"shape{number}")
        meta = json.loads((path / "meta.json").read_text())
        (path / "meta.json").write_text(json.dumps(meta | {"shape": shape}))
        yield name, path


def archives(folder):
    """An npz file for each damage."""
    sound = {"data": ROWS.data, "indices": ROWS.indices, "indptr": ROWS.indptr, "shape": ROWS.shape}
    sound = {f"X_{name}": np.array(part) for name, part in sound.items()} | {"y": TARGETS * 1.0}
    names = {"values": "X_data", "labels": "y", "indices": "X_indices", "indptr": "X_indptr"}
    damaged = {"sound": sound}
    for name, (array, damage) in (ARRAYS | VALUES).items():
        key = names[array]
        damaged[name] = sound | {key: damage(sound[key].copy())}
    for name, shape in SHAPES.items():
        damaged[name] = sound | {"X_shape": np.array(shape)}
    damaged["wide indices too large"] = sound | {
        "X_indices": sound["X_indices"].astype(np.int64) + 2**40
    }
    damaged["unsigned indptr"] = sound | {
        "X_indptr": changed(MIDDLE, 2**63 + 1)(sound["X_indptr"].astype(np.uint64))
    }
    damaged["no numbers"] = sound | {"X_data": sound["X_data"].astype(str)}
    damaged["fractions of indices"] = sound | {"X_indices": sound["X_indices"] + 0.5}
    for number, (name, arrays) in enumerate(damaged.items()):
        path = folder / f"{number}.npz"
        np.savez(path, **arrays)
        yield name, path


def arrays(folder):
    """An npy file for each damage."""
    sound = folder / "sound.npy"
    np.save(sound, ROWS.toarray())
    yield "sound", sound
    for number, shape in enumerate(SHAPES.values()):
        path = folder / f"{number}.npy"
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.write(ROWS.toarray().tobytes())
        if shape not in {(N_ROWS, N_FEATURES - 1), (N_ROWS - 1, N_FEATURES)}:  # fewer are there
            yield f"shape {shape}", path
    for name, value in (("NaN", np.nan), ("infinity", np.inf)):
        X = ROWS.toarray()
        X[MIDDLE, 3] = value
        path = folder / f"{name}.npy"
        np.save(path, X)
        yield name, path


def cross_validate(estimator, *, memory_mb, y=None, **keywords):
    """A call with rows of a file."""

    def call(path):
        onefold.cross_validate(
            estimator,
            path,
            y,
            cv=5,
            engine_options={"memory_mb": memory_mb},
            error_score="raise",
            **keywords,
        )

    return call


def opened(path):
    """Use a matrix as compiled code does."""
    for mmap_mode in ("r", None):
        X, _ = onefold.open_libsvm(path, mmap_mode=mmap_mode)
        X.toarray()
        (X @ np.ones(X.shape[1])).sum()
        X[[5, 3]].tocsc()


def of_command(*words):
    """A call of the command line; an error of its own kind is raised again."""

    def call(path):
        out = path.with_name("out.csv")
        out.unlink(missing_ok=True)
        own = [
            str(path) if word == "FILE" else str(out) if word == "OUT" else word for word in words
        ]
        with contextlib.redirect_stderr(io.StringIO()) as errors, warnings.catch_warnings():
            if command(own):
                raise ValueError(errors.getvalue())

    return call


FOLD_KEYWORDS = {"n_jobs": 2}
LIBRARY = {
    f"{type(own).__name__} {place}": cross_validate(own, memory_mb=memory_mb, **FOLD_KEYWORDS)
    for own in (Ridge(), LinearRegression(), MultinomialNB(), RidgeStatistics(), LeastSquaresSGD())
    for place, memory_mb in (("in memory", 100), ("on disk", 0.03))
}
COMMANDS = {
    "inspect": of_command("inspect", "FILE"),
    "to csv": of_command("convert", "FILE", "OUT"),
    "dense": of_command("cv", "ridge", "FILE", "--dense", "-k", "5"),
    "sparse": of_command("cv", "ridge", "FILE", "-k", "5"),
}
DENSE = {
    name: cross_validate(own, memory_mb=memory_mb, y=TARGETS * 1.0)
    for name, own, memory_mb in (
        ("ridge in memory", Ridge(), 100),
        ("ridge on disk", Ridge(), 0.03),
        ("learner on disk", RidgeStatistics(), 0.03),
    )
}
FORMS = {
    "directory": (directories, {"opened": opened} | LIBRARY | COMMANDS),
    "npz": (archives, COMMANDS),
    "npy": (arrays, DENSE),
}


def import_all():
    """Import the package before the forks, each of which would import what its call needs."""
    for module in pkgutil.walk_packages(onefold.__path__, "onefold."):
        if not module.name.startswith(("onefold.distributed", "onefold.__main__")):
            importlib.import_module(module.name)


def outcome_of(call, path):
    """Make a call in a child process: its outcome."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        outcome = "result"
        try:
            # A crash is expected to be found, not to be stored.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            sys.stdout = io.StringIO()
            call(path)
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        os.write(writer, outcome.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        outcome = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else outcome


def main(form):
    make, calls = FORMS[form]
    import_all()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = {
            name: {call: outcome_of(function, path) for call, function in calls.items()}
            for name, path in make(Path(folder))
        }
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
