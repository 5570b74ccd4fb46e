"""Evidence: the results of a run, with the files under test and the machine, written to a file and read back."""
