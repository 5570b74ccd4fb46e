"""Tests of conformance/verdict/."""
