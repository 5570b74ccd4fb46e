"""Cases → rows that can be executed: graphs, memory, selection."""
