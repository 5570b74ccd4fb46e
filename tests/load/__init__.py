"""Tests of conformance/load/."""
