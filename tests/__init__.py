"""What the suite promises about itself."""
