"""Tests of conformance/plan/."""
