"""Tests of conformance/certify/."""
