"""Puts the test tree's own modules (oracle, summaries) on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
