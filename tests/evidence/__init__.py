"""Tests of conformance/evidence/."""
