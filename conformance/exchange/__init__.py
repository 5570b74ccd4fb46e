"""Our rows as tests of other suites and as JSON, and what calls mean as code in other languages."""
