"""Load the YAML files of spec/ and cases/ into a Suite; every error names the file and the line."""

from .cases import load_cases, load_suite
from .folders import cases_folder, spec_folder
from .spec import load_spec

__all__ = ["cases_folder", "load_cases", "load_spec", "load_suite", "spec_folder"]
