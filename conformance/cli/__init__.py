"""The `conformance` command: a module for each subcommand, and what several of them share."""
