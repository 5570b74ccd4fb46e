"""Tests of conformance/site/."""
