"""Tests of other suites: ours in their file formats, and theirs as cases."""
