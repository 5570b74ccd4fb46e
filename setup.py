"""The packages of the wheel, by a pattern: conformance/, and three folders beside it that are installed inside it."""

from setuptools import find_packages, setup

INSIDE = ("adapters", "cases", "spec")

setup(
    packages=[
        *find_packages(include=["conformance", "conformance.*"]),
        *(f"conformance.{name}" for top in INSIDE for name in (top, *(f"{top}.{each}" for each in find_packages(top)))),
    ],
    package_dir={"conformance": "conformance", **{f"conformance.{name}": name for name in INSIDE}},
)
