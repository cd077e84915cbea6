"""What a call is given: rows, targets, weights, folds, files, and arguments routed to steps."""
