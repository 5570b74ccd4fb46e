"""YAML → Suite: strict, and every error names the file and the line."""
