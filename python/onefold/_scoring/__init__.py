"""From held-out responses to scores: scorers, metrics, losses of samples."""
