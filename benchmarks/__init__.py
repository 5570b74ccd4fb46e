"""What the suite costs, beside baselines: `python -m benchmarks`. Not installed."""
