"""What the suite promises about itself: `pytest --pyargs conformance`."""
