"""Tests of conformance/sweep/."""
