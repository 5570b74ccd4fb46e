"""A certificate: its records, their signatures, its page, and the checks before anybody relies on it."""
