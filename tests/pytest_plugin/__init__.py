"""Tests of conformance/pytest_plugin/."""
