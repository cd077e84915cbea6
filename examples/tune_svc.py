"""Tune a support vector machine with an RBF kernel after a scaler.

This is the script for scikit-learn with another import. The scaler is fitted to each training set,
never to held-out rows. All candidates share inner products, and each fold starts from solutions of
other folds (``engine='seeded'``).

Run it with ``python examples/tune_svc.py``.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from onefold import GridSearchCV, nested_cross_validate

X, y = load_breast_cancer(return_X_y=True)
pipeline = make_pipeline(StandardScaler(), SVC())
grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.001, 0.01, 0.1, 1]}
folds = StratifiedKFold(10, shuffle=True, random_state=0)

search = GridSearchCV(pipeline, grid, cv=folds, n_jobs=-1).fit(X, y)
print(search.result_)

# Is the best candidate better than the others, or only luckier? Differences are paired, and their
# errors corrected for the rows that training sets share.
print("\nThe five best:")
print("\n".join(repr(search.compare()).splitlines()[:7]))

# The simplest candidate within one standard error of the best: often as good, and more stable.
simple = GridSearchCV(pipeline, grid, cv=folds, rule="one_se", n_jobs=-1).fit(X, y)
print("\nBest:          ", search.best_params_)
print("One-SE choice: ", simple.best_params_)

# The best score of a search is too good, because it was chosen for being the best. An outer
# cross-validation of the entire search is not.
nested = nested_cross_validate(search, X, y, cv=5)
print(f"\nScore of the best candidate: {search.best_score_:.4f}")
print(f"Score of the entire search:  {nested.mean:.4f} ± {nested.std_error:.4f}")
