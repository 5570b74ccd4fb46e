"""The lab: what `lab.yaml` says is run for the published results, how stale they are, and environments to run it in."""
