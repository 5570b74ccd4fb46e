"""Tests of conformance/runner/."""
