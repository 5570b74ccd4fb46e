"""Files, temporary folders and the terminal: what the suite asks of the operating system."""
