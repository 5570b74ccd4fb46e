"""Tests of conformance/adapter/."""
