"""Tests of conformance/hunt/."""
