"""Code in other languages that says what a call means: one file each, without dependencies."""
