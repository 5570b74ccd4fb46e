"""Calls that nobody wrote: sweeps and hunts."""
