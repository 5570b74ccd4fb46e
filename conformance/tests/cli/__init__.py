"""Tests of conformance/cli/."""
