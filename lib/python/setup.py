"""Builds the wheel from a clone of the repository: CMake compiles the native module, which contains the library.

    pip wheel --no-build-isolation --no-deps lib/python        (or pip install)

Needs CMake, a C++20 compiler and Python's headers; downloads nothing. CMAKE_ARGS has further options for CMake.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = re.search(r"project\(persia_metrics VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit("persia-metrics: Python without the global lock is not supported; use the ordinary build of this version")

# One wheel for Python 3.10 and all later ones.
STABLE_ABI = sys.version_info >= (3, 10)

# Outside the source folder, which stays unchanged.
BUILD = ROOT / "build/wheel"


class CMakeBuild(build_ext):
    """Builds the one extension by CMake, for the running interpreter."""

    def run(self):
        if not shutil.which("cmake"):
            sys.exit("persia-metrics: cmake is not on PATH. On Debian: apt-get install cmake g++ ninja-build python3-dev")
        super().run()

    def build_extension(self, extension):
        target = Path(self.get_ext_fullpath(extension.name)).resolve()
        build = Path(self.build_temp).resolve()
        configure = ["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DPERSIA_METRICS_BUILD_PYTHON=ON"]
        configure += [f"-DPERSIA_METRICS_PYTHON={sys.executable}", f"-DPERSIA_METRICS_MODULE_DIRECTORY={target.parent}"]
        configure += [f"-DPERSIA_METRICS_PYTHON_STABLE_ABI={'ON' if STABLE_ABI else 'OFF'}"]
        configure += [f"-DPERSIA_METRICS_BUILD_{part}=OFF" for part in ("AGENT", "EXAMPLES", "TESTS")]
        configure += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        # CMake's default is make, which may be missing. An existing build tree keeps its generator.
        if shutil.which("ninja") and not (build / "CMakeCache.txt").exists():
            configure += ["-G", "Ninja"]
        subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", build, "--target", "persia_metrics_python", "--parallel"], check=True)


class BuildPy(build_py):
    """Adds the file by which Python calls persia_metrics_startup. setuptools has no setting for a file beside the packages."""

    def run(self):
        super().run()
        self.copy_file(HERE / "persia_metrics.pth", Path(self.build_lib) / "persia_metrics.pth")


class EggInfo(egg_info):
    """Creates the directory that egg_info requires, only when something is built."""

    def finalize_options(self):
        BUILD.mkdir(parents=True, exist_ok=True)
        super().finalize_options()


setup(
    name="persia-metrics",
    version=VERSION,
    description="Metrics of machine-learning training jobs for Prometheus, kept in shared memory",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    python_requires=">=3.9",
    packages=[
        "persia_metrics",
        "persia_metrics.torch",
        "persia_metrics.torchelastic",
        "persia_metrics.torchelastic.events",
        "persia_metrics.torchelastic.metrics",
    ],
    py_modules=["persia_metrics_startup"],
    package_data={"persia_metrics": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("persia_metrics._native", sources=[], py_limited_api=STABLE_ABI)],
    cmdclass={"build_ext": CMakeBuild, "build_py": BuildPy, "egg_info": EggInfo},
    options={
        "build": {"build_base": str(BUILD)},
        "egg_info": {"egg_base": str(BUILD)},
        "bdist_wheel": {"py_limited_api": "cp310"} if STABLE_ABI else {},
    },
    zip_safe=False,
)
