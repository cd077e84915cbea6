"""scikit-learn's tests of LIBSVM files, on our reader and writer."""

from peers import adopt

from onefold import dump_libsvm, load_libsvm

FUNCTIONS = {
    "dump_svmlight_file": dump_libsvm,
    "load_svmlight_file": load_libsvm,
    "load_svmlight_files": load_libsvm,
}
globals().update(
    adopt("sklearn.datasets.tests.test_svmlight_format", {"sklearn.datasets": FUNCTIONS})
)
