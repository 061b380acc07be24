"""``python -m nnef_hw.cli``."""

import sys

from nnef_hw.cli import main

sys.exit(main())
