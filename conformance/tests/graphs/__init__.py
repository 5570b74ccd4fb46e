"""Tests of the room `graphs`, and of the command check-graph."""
