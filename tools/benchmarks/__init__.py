"""Measurements of the suite's cost beside baselines: `python -m tools.benchmarks`. Not installed."""
