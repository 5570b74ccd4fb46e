"""Tests of conformance/shrink/."""
