"""Slow, readable twins of the engines, one module an engine: to learn from, and to test against."""
