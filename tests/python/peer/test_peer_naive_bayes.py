"""scikit-learn's tests of naive Bayes, on our learners."""

from peers import adopt

from onefold import learners

NAMES = ("BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB")
CLASSES = {name: getattr(learners, name) for name in NAMES}
globals().update(adopt("sklearn.tests.test_naive_bayes", {"sklearn.naive_bayes": CLASSES}))
