"""Is this adapter sound? Checks before a verdict on its backend is believed."""
