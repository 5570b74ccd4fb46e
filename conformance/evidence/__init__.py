"""What a run writes down, and how it is read back: results, the files under test, the machine."""
