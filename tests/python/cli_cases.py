"""Small files for the tests of the command line."""

import csv

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.preprocessing import scale

from onefold import dump_libsvm
from onefold.cli import main


def write_csv(path, X, y, names):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([*row, label] for row, label in zip(X.tolist(), y, strict=True))
    return str(path)


def iris_csv(folder):
    iris = load_iris()
    species = [str(iris.target_names[code]) for code in iris.target]
    return write_csv(folder / "iris.csv", iris.data, species, ["a", "b", "c", "d", "species"])


def diabetes_csv(folder):
    data = load_diabetes()
    names = [*data.feature_names, "progression"]
    return write_csv(folder / "diabetes.csv", data.data, data.target, names)


def shuffled_wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return scale(X)[order], y[order] + 1.0


def wine_libsvm(folder):
    X, y = shuffled_wine()
    path = str(folder / "wine.libsvm")
    dump_libsvm(X, y, path, zero_based=False)
    return path


@pytest.fixture
def run(capsys):
    """Run a command, check its exit code, and return what it printed to both streams."""

    def call(*argv, code=0):
        found = main([str(own) for own in argv])
        printed = capsys.readouterr()
        assert found == code, printed.err
        return printed

    return call
