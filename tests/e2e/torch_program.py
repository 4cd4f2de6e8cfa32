"""PyTorch programs under test, as their users write them: without a line of ours, on an interpreter that has the package installed."""

import json
import subprocess

from conftest import PYTHON, PYTHON_PACKAGE, environment

MODEL = """
import sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(1)
layers = [torch.nn.Linear(8, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1)]
model = torch.nn.Sequential(*layers)
data = TensorDataset(torch.randn(70, 8), torch.randn(70, 1))
batch, wanted = data[:16]
"""

# The last line of the output: the visits of each phase, and the progress.
SHOW = """
import json, persia_metrics
snapshot = list(persia_metrics.snapshot())
visits = {s.labels["phase"]: s.value.count for s in snapshot if s.name == "duration_seconds" and s.value.count > 0}
progress = {s.name: s.value for s in snapshot if s.group == "persia_progress" or s.name == "step"}
print(json.dumps([visits, progress]))
"""


def installed(tmp_path):
    """PYTHONPATH with the package, and its file persia_metrics.pth in effect, as in a folder of installed packages."""
    folder = tmp_path / "hook"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(PYTHON_PACKAGE)!r})\n")
    return f"{folder}:{PYTHON_PACKAGE}"


def run(tmp_path, code, *arguments, torch="1", stderr=""):
    """What the program prints. `torch`: the value of PERSIA_METRICS_TORCH; `stderr`: what it must print there."""
    script = tmp_path / "train.py"
    script.write_text(code)
    env = environment(PYTHONPATH=installed(tmp_path), PERSIA_METRICS_TORCH=torch)
    done = subprocess.run([PYTHON, script, *map(str, arguments)], capture_output=True, text=True, timeout=180, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == stderr
    return done.stdout


def visits_of(tmp_path, code, *arguments, **options):
    """Runs code with the model. Returns the visits of each phase, and the progress."""
    return json.loads(run(tmp_path, MODEL + code + SHOW, *arguments, **options).splitlines()[-1])
