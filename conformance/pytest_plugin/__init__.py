"""`pytest --adapter BACKEND`: each row is an item."""
