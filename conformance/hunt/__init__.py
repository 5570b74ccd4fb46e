"""Failing calls that nobody wrote, made small and written as cases."""
