"""A backend in a process of its own: protocol, workers, parallel runs."""
