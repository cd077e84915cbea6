"""The tables of the engines: which estimators each is for, and what it reads of them."""
