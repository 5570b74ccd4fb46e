"""Files, temporary folders, the terminal and exit codes: what the suite asks of the operating system."""
