"""The `conformance` command: one module for each subcommand."""
