"""A script of a user, as short as it would be written: it passes ``mypy --strict`` and runs."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onefold
from onefold.learners import Pegasos


def summary(result: onefold.CVResult) -> str:
    low, high = result.mean - result.std_error, result.mean + result.std_error
    return (
        f"{result.engine}: {result.mean:.3f} ({low:.3f} to {high:.3f}), pooled {result.pooled:.3f}"
    )


def worst(result: onefold.CVResult, n: int) -> NDArray[np.int64]:
    losses = result.losses
    assert losses is not None
    return np.argsort(losses)[-n:]


X, y = load_breast_cancer(return_X_y=True)
model = make_pipeline(StandardScaler(), LogisticRegression())
result = onefold.cross_validate(model, X, y, cv=10)
print(summary(result), worst(result, 3))

several = onefold.cross_validate(model, X, y, cv=10, scoring=["accuracy", "roc_auc"])
means: dict[str, float] = several.means
errors: dict[str, float] = several.std_errors
print({name: (round(mean, 3), round(errors[name], 3)) for name, mean in means.items()})

search = onefold.GridSearchCV(Pegasos(), {"alpha": [1e-3, 1e-2, 1e-1]}, cv=5, random_state=0)
search.fit(X, y)
searched: onefold.SearchResult = search.result_
print(search.best_params_, searched.chosen.mean, searched.engines)

frame: pd.DataFrame = result.to_frame(by="sample")
text: str | None = result.to_json()
other = onefold.cross_validate(Pegasos(), X, y, cv=result.folds)
compared = onefold.compare(result, other, loss="zero-one")
print(len(frame), text is not None, compared)
cv = onefold.holdout(0.2, random_state=0)
scores: NDArray[np.float64] = onefold.cross_val_score(model, X, y, cv=cv)
print(scores.shape)
