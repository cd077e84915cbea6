"""Progress, warnings, numbers of threads, cached properties."""
