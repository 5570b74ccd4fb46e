"""What a call means as code in other languages: one file each, without dependencies."""
