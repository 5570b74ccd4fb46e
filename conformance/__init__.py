"""An executable specification and conformance suite for the reshape operations of oneDNN Graph."""

import os

__version__ = "0.1.0"
DISTRIBUTION = "reshape-conformance"

# A wheel carries spec/, cases/ and adapters/ inside this package; a clone has them beside it.
if os.path.isfile(os.path.join(os.path.dirname(__path__[0]), "spec", "sources.yaml")):
    __path__.append(os.path.dirname(__path__[0]))
