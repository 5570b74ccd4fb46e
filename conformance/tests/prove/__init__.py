"""Tests of conformance/prove/."""
