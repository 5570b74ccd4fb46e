"""What a call means in a document: the rule language, contracts, and a bounded domain of calls."""
