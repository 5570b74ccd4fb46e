"""Model files → their reshape nodes, decided for the lengths that a user asks about."""
