"""Tests of conformance/certificate/."""
