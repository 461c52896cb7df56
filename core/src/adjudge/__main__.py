"""`python -m adjudge` is the command `adjudge`."""

import sys

from adjudge.cli import main

sys.exit(main())
