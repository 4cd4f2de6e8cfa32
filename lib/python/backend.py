"""The build backend: setuptools', after a check of the requirements of `pip wheel --no-build-isolation`."""

import importlib
import sys

try:
    from setuptools.build_meta import *  # noqa: F403

    try:
        importlib.import_module("setuptools.command.bdist_wheel")  # setuptools 70.1 and newer
    except ModuleNotFoundError:
        importlib.import_module("wheel.bdist_wheel")
except ModuleNotFoundError as error:
    sys.exit(
        f"persia-metrics: {error.name.partition('.')[0]} is missing. On Debian: apt-get install python3-setuptools python3-wheel. "
        "With a package index, pip installs both if it is called without --no-build-isolation."
    )
