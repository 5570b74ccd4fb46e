"""Tests of conformance/meaning/."""
