"""Several interpreters in one process, and Python without its global lock."""

import subprocess

from conftest import PYTHON_PACKAGE, environment
from servers import ROOT
from test_python_wheel import pythons

INTERPRETERS = """
import os, sys, threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import persia_metrics
"""
SUBINTERPRETERS = INTERPRETERS + """
steps = persia_metrics.Counter("g", "steps", "Steps.", ["of"])
steps.labels("main").inc()
PROGRAM = '''
import persia_metrics
from persia_metrics import Gauge, Histogram, events, snapshot
steps = persia_metrics.Counter("g", "steps", "Steps.", ["of"])
for _ in range(10_000):
    steps.labels("sub").inc()
with Histogram("g", "seconds").time():
    Gauge("g", "level").set(1)
events.record("g", "ready")
try:
    steps.inc()
except ValueError:
    pass
else:
    raise AssertionError
assert snapshot().value("g", "steps", {"of": "main"}) == 1  # one process, one set of metrics
'''
def run():
    interpreter = interpreters.create()
    failed = interpreters.run_string(interpreter, PROGRAM)
    assert failed is None, failed
    interpreters.destroy(interpreter)
    done.append(True)
done = []
threads = [threading.Thread(target=run) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
steps.labels("sub").inc()
assert len(done) == 3 and steps.labels("sub").value() == 30_001, steps.labels("sub").value()
assert persia_metrics.snapshot().events("g", "ready") == 3
"""


def test_interpreters_of_one_process_share_its_metrics(tmp_path):
    """Those of Python 3.12 and later have a global lock each, and run at the same time."""
    script = tmp_path / "interpreters.py"
    script.write_text(SUBINTERPRETERS)
    for version, python in pythons().items():
        env = environment(PYTHONPATH=str(PYTHON_PACKAGE), PERSIA_METRICS_DIR=str(tmp_path / "segments"))
        done = subprocess.run([python, script], env=env, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, ""), (version, done.stderr)


def test_without_a_global_lock_the_error_says_so(run_python, tmp_path):
    """As that Python sees it: it does not find a module for the stable ABI."""
    told = run_python(
        """
import importlib.abc, sys, sysconfig
class Hides(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "persia_metrics._native":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hides())
sysconfig.get_config_vars()["Py_GIL_DISABLED"] = 1
try:
    import persia_metrics
except ImportError as error:
    print(error)
"""
    )
    assert told == "persia_metrics does not support Python without the global lock; use the ordinary build of this version\n"
    setup = "import sys, sysconfig\nsysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n"
    setup += f"sys.argv = ['setup.py', 'build']\nexec(compile(open({str(ROOT / 'lib/python/setup.py')!r}).read(), {str(ROOT / 'lib/python/setup.py')!r}, 'exec'))\n"
    (tmp_path / "build.py").write_text(setup.replace("exec(compile", "__file__ = %r\nexec(compile" % str(ROOT / "lib/python/setup.py")))
    done = subprocess.run(["/usr/bin/python3", tmp_path / "build.py"], env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "persia-metrics: Python without the global lock is not supported" in done.stderr, done.stderr
