"""One whole run: planted backends, cases, drawn rows, shards and repeats."""
