"""Our rows as tests of other suites, in their file formats."""
