"""Load the YAML files of spec/ and cases/ into a Suite; every error names the file and the line."""
