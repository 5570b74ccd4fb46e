"""Start a process, watch its memory and its children, and end it."""
