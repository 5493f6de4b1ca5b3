"""``python -m skescore``."""

import sys

from skescore.cli import main

sys.exit(main())
