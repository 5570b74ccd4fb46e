"""Tests of the room `graphs`."""
