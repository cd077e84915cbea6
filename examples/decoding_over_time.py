"""Decode a condition from a recording at every time point, with permutations for the p values.

The shapes are those of `mne.Epochs`: 60 trials, 30 channels, 300 time points. Every time point is a
problem of its own with the same trials and folds: `onefold.cross_validate_many` solves all of them
in batches. Permuted labels are further columns of the targets and share the factorisations. The
largest score of each permutation over all time points gives p values for the whole recording.

Run it with ``python examples/decoding_over_time.py [permutations]``.
"""

import sys
import time

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_score

import onefold

n_permutations = int(sys.argv[1]) if len(sys.argv) > 1 else 199
random = np.random.default_rng(0)
condition = np.arange(60) % 2
epochs = random.normal(size=(60, 30, 300))  # trials x channels x time points
response = np.exp(-0.5 * ((np.arange(300) - 150) / 15) ** 2)  # after 150 samples, for 30 of them
epochs[:, :10] += 1.2 * condition[:, None, None] * response
Xs = np.ascontiguousarray(epochs.transpose(2, 0, 1))  # one problem for each time point

labels = [random.permutation(condition) for _ in range(n_permutations)]
ys = np.column_stack([condition, *labels])  # the true labels, then the permuted ones
cv = StratifiedKFold(5, shuffle=True, random_state=0)
lda = LinearDiscriminantAnalysis()

start = time.perf_counter()
result = onefold.cross_validate_many(lda, Xs, ys, cv=cv)
print(f"{result.mean.size} problems of 5 folds in {time.perf_counter() - start:.2f} s")

scores, permuted = result.mean[:, 0], result.mean[:, 1:]
largest = permuted.max(axis=0)  # over time: corrects for the number of time points
p_values = (1 + (largest >= scores[:, None]).sum(axis=1)) / (1 + n_permutations)
significant = np.flatnonzero(p_values <= 0.05)
print(f"\naccuracy {scores.max():.2f} at time point {scores.argmax()}; p <= 0.05 at", end=" ")
print(f"{len(significant)} time points from {significant.min()} to {significant.max()}")

# The same numbers as one call of scikit-learn for each problem.
best = int(scores.argmax())
np.testing.assert_allclose(result.scores[best, 0], cross_val_score(lda, Xs[best], condition, cv=cv))

# A number instead of a condition, such as a reaction time, by ridge regression.
reaction_time = 2 * condition + 0.5 * random.normal(size=60)
ridge = onefold.cross_validate_many(Ridge(alpha=10), Xs, reaction_time, cv=5)
print(f"\nreaction time: R2 {ridge.mean.max():.2f} at time point {ridge.mean.argmax()}")
