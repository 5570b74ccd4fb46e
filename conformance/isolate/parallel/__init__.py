"""Distribute work over processes of this machine or a Dask cluster."""
