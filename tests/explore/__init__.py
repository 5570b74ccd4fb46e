"""Tests of conformance/explore/."""
