"""Tests of conformance/draw/."""
