"""Failing calls made small, and written as cases."""
