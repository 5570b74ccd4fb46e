"""Files, forms of JSON, temporary folders, the terminal and exit codes."""
