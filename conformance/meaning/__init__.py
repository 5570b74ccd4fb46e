"""The meaning of calls in a document: the rule language, contracts, chains, and bounded domains of calls."""
