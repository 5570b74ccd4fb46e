"""Tests of conformance/selfcheck/."""
