"""Measurements of the suite's cost beside baselines: `python -m benchmarks`. Not installed."""
