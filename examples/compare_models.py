"""Compare two models honestly.

Two scores and their standard errors are not enough: both models are tested on the same rows, so
their errors go up and down together. Compare paired differences, on the same folds, with an error
that allows for the rows that training sets share.

Run it with ``python examples/compare_models.py``.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import onefold

X, y = load_breast_cancer(return_X_y=True)
linear = make_pipeline(StandardScaler(), LogisticRegression())
kernel = make_pipeline(StandardScaler(), SVC(C=10, gamma=0.01))

# The same folds for both: pass those of the first result to the second.
folds = StratifiedKFold(10, shuffle=True, random_state=0)
first = onefold.cross_validate(kernel, X, y, cv=folds)
second = onefold.cross_validate(linear, X, y, cv=first.folds)
print(first)
print(second)

# Differences of less than half a percent do not matter to us: a region of practical equivalence.
print("\nPaired, on ten folds; candidate 0 is the SVC, 1 the logistic regression:")
comparison = onefold.compare(first, second, rope=0.005)
print(comparison)

# Repetition averages out the luck of one partition, but makes no new data: the corrected error
# falls far less than the plain one would with ten times as many test sets.
repeated = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
first = onefold.cross_validate(kernel, X, y, cv=repeated)
second = onefold.cross_validate(linear, X, y, cv=first.folds)
print("\nPaired, on ten repetitions:")
comparison = onefold.compare(first, second, rope=0.005)
print(comparison)

kernel_is = comparison.candidate == 0
equivalent = float(comparison.p_equivalent[kernel_is][0])
better = float(comparison.p_better[kernel_is][0])
print(f"\nThe SVC is better by more than 0.005 with probability {better:.2f},")
print(f"equivalent with {equivalent:.2f}, worse with {1 - better - equivalent:.2f}.")
