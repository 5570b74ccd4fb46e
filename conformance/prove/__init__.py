"""Proofs about the suite and about an adapter."""
