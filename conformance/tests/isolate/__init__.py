"""Tests of conformance/isolate/."""
