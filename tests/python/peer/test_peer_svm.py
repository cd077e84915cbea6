"""scikit-learn's tests of its support vector machines, on ours."""

from peers import adopt

from onefold.svm import SVC, SVR

globals().update(adopt("sklearn.svm.tests.test_svm", {"sklearn.svm": {"SVC": SVC, "SVR": SVR}}))
