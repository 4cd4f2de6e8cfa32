#!/usr/bin/python3
"""Takes `page.png`: the page of the demo job, in Chromium.

    PERSIA_BUILD_DIR=$PWD/build/release agent/web/picture.py
"""

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "examples/demo")]

from browser import Browser  # noqa: E402
from page import demo_job, wait_for_points  # noqa: E402

SECONDS = 60  # of history


def main():
    with tempfile.TemporaryDirectory() as directory, demo_job(Path(directory)) as address:
        browser = Browser(Path(directory) / "browser.log")
        try:
            browser.new_tab(1400, 1650)
            browser.open(f"http://{address}/")
            wait_for_points(browser, "batch_unique_indices_rate")
            time.sleep(SECONDS)
            browser.screenshot(Path(__file__).parent / "page.png")
        finally:
            browser.stop()


main()
