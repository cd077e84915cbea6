"""Small problems for the tests of support vector machines."""

from sklearn.datasets import load_diabetes, load_wine, make_classification
from sklearn.preprocessing import StandardScaler


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def noisy(n=240, classes=2):
    return make_classification(n, 8, n_informative=5, n_classes=classes, flip_y=0.1, random_state=3)


def regression():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], ((y - y.mean()) / y.std())[:200]
