"""The reshape nodes of real model files: readers, lengths of inputs, and what each node means."""
