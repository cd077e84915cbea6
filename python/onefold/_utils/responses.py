"""The methods by which a fitted estimator answers for rows."""

__all__ = ["RESPONSES"]

RESPONSES = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "score_samples",
    "transform",
)
"""The methods that answer for each row of a test set."""
