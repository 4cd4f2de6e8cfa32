"""Writes the dashboards, a JSON file for each: `python3 dashboards/generate.py`."""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "examples/demo")]  # the catalog is read by the demo's catalog.py

from boards import generate  # noqa: E402


def files():
    """The expected content of each file, by path."""
    return {FOLDER / f"{uid}.json": json.dumps(board, indent=2) + "\n" for uid, board in generate().items()}


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content)
