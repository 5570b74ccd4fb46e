"""Our rows as tests of other suites, in their file formats, and what calls mean as code in other languages."""
