"""Backends that the suite knows by name, one file each."""
