"""Talk to a process that answers for a backend: requests, replies, and the worker at the other end."""
