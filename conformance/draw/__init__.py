"""Rows that nobody wrote: a seed and a number give each, and a nonce gives the plan other contents."""
