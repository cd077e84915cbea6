"""What the Python benchmarks share: data, the engines below the facade, clocks and tables."""
