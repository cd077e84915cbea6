"""Searches: candidates are evaluated by the engines, one is chosen and fitted to all rows."""
