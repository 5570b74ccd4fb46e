"""Fixtures of this folder: the lab of a certificate."""

from .vendor_and_issuer import lab, original

__all__ = ["lab", "original"]
