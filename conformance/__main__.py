"""`python -m conformance`: the same as the command."""

import contextlib
import os
import sys

from .cli.start import main

if __name__ == "__main__":
    # Modules of the working directory come last: a backend may write files there, and none of them is to hide another.
    with contextlib.suppress(FileNotFoundError):  # it was removed
        here = os.getcwd()
        sys.path[:] = [*(path for path in sys.path if path not in ("", here)), here]
    sys.exit(main())
