"""Tests of conformance/adapter_check/."""
