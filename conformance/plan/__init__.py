"""Turn cases into rows that can be run: graphs, memory, selection."""
