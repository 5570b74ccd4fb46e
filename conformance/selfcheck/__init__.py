"""Is the suite sound? Its cases, their coverage, its documents, and mutants that it must notice."""
