"""Tests of conformance/run/."""
