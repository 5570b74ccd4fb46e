"""The lab of a certificate, for the tests of this folder."""

from __future__ import annotations

from ..vendor_and_issuer import lab, original

__all__ = ["lab", "original"]
