"""What every page of ours is wrapped in: one file, one style, one script, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from .look import STYLE
from .parts import plain


def shell(title: str, script: str, body: Iterable[str]) -> str:
    """A whole page; `script` may be empty."""
    allowed = f" script-src {_pinned(script)};" if script else ""
    policy = f"default-src 'none'; style-src {_pinned(STYLE)};{allowed} base-uri 'none'; form-action 'none'"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{plain(title)}</title><style>{STYLE}</style></head><body>",
        *body,
        f"<script>{script}</script></body></html>" if script else "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _pinned(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
