"""Slow, readable versions of the engines, one module per engine: to read, and to test against."""
