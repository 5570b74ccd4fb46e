"""A backend in a separate process: protocol, workers, processes."""
