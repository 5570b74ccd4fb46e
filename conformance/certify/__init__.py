"""A whole run: planted backends, evidence, waivers, standing and exit code."""
