"""The entry point of the command: an interrupt while its modules are imported ends it without a traceback."""

from __future__ import annotations

import signal


def main() -> int:
    """Run `main` of the command, which installs its own handlers."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .main import main as run

    return run()
