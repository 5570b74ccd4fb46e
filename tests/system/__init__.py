"""Tests of conformance/system/."""
