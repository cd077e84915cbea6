"""k-fold cross-validation for about the price of one fit."""
