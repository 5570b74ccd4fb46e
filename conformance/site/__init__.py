"""The published pages: landing, documents, comparison, and the folders of all results."""
