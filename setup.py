"""The packages of the wheel, by a pattern: conformance/, and three folders beside it that are installed inside it."""

from tempfile import TemporaryDirectory

from setuptools import find_packages, setup

INSIDE = ("adapters", "cases", "spec")
PACKAGES = [
    *find_packages(include=["conformance", "conformance.*"]),
    *(f"conformance.{name}" for top in INSIDE for name in (top, *(f"{top}.{each}" for each in find_packages(top)))),
]

with TemporaryDirectory() as folder:  # build/ in a clone keeps files that the clone has no more, and installs them
    setup(
        packages=PACKAGES,
        package_dir={"conformance": "conformance", **{f"conformance.{name}": name for name in INSIDE}},
        options={"build": {"build_base": folder}},
    )
