"""The documents match the programs."""

import fnmatch
import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import AGENT, PYTHON
from servers import ROOT, find_program
from torch_environment import torch_environment
from wheel import build_environment

import catalog


def block(language, start, document="README.md"):
    """The document's code block of this language that begins with `start`."""
    text = (ROOT / document).read_text()
    blocks = [body for body in re.findall(rf"```{language}\n(.*?)```", text, re.S) if body.startswith(start)]
    assert len(blocks) == 1, f"{len(blocks)} blocks of {language} begin with {start!r}"
    return blocks[0]


def project_files(pattern):
    """Files of the project, without build outputs."""
    found = []
    for folder, below, files in os.walk(ROOT):
        below[:] = sorted(set(below) - {"build", ".git", "__pycache__", ".pytest_cache"})
        found += [Path(folder, name) for name in sorted(files) if fnmatch.fnmatch(name, pattern)]
    return found


@pytest.mark.static
def test_quick_start_is_what_the_tests_build():
    main = (ROOT / "examples/quickstart/main.cc").read_text()
    assert block("cpp", "#include <persia/metrics/metrics.h>") == main
    assert len(main.splitlines()) <= 22
    assert block("cmake", "cmake_minimum_required") == (ROOT / "examples/quickstart/CMakeLists.txt").read_text()


def test_torchrun_lines_run_as_they_are_written(gateway, tmp_path, built_wheel):
    """With Debian's torch, and a pip that installs into a virtual environment of the test."""
    lines = block("sh", "pip install", "docs/install.md") + block("sh", "persia-metrics-agent exec --job=dlrm --instrument=torch")
    bin_ = tmp_path / "venv/bin"
    subprocess.run([PYTHON, "-m", "venv", "--system-site-packages", "--without-pip", bin_.parent], check=True, timeout=60)
    (tmp_path / "train.py").write_text("import torch.distributed.elastic.metrics as metrics\nmetrics.put_metric('loss', 3, 'my_app')\n")
    (bin_ / "torchrun").write_text(f"#!{bin_}/python\nfrom torch.distributed.run import main\nmain()\n")
    (bin_ / "pip").write_text(
        f'#!/bin/sh\ncd {ROOT}\nexec flock {ROOT}/build/wheel.lock {built_wheel.python} -m pip --quiet --python {bin_}/python "$@" --no-deps\n'
    )
    for program in ("torchrun", "pip"):
        (bin_ / program).chmod(0o755)
    (bin_ / "persia-metrics-agent").symlink_to(AGENT)
    paths = {"PATH": f"{bin_}:{os.environ['PATH']}", "PERSIA_METRICS_DIR": f"/dev/shm/persia-docs-{os.getpid()}"}
    env = build_environment(**paths, **torch_environment(tmp_path))
    assert lines.count("--instrument=torch --") == 1 and len(lines.splitlines()) == 2
    script = "set -e\n" + lines.replace("--instrument=torch --", f"--instrument=torch --gateway={gateway.address} --")
    try:
        done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        for rank in range(4):
            gateway.wait_for("my_app_loss", 3, job="dlrm", role="worker", instance=f"rep_{rank}")
        gateway.wait_for("torchelastic_worker_group_runs_total", 1, job="dlrm", role="worker", instance="rep_0")
        gateway.wait_for("persia_events_total", 4, type="torchelastic.worker", event="torchelastic.worker.status.SUCCEEDED", role="launcher")
    finally:
        shutil.rmtree(env["PERSIA_METRICS_DIR"], ignore_errors=True)


@pytest.mark.static
def test_table_of_metrics_is_the_catalog():
    rows = re.findall(r"^\| `(\w+)` \| (counter|gauge|time cost) \| (?:`(\w+)`)? ?\| (.*) \|$", (ROOT / "docs/persiaml.md").read_text(), re.M)
    assert rows == [(entry.name, entry.type.replace("_", " "), entry.label, entry.help) for entry in catalog.entries()]


def test_table_of_settings_has_the_agents_flags_and_variables():
    rows = re.findall(r"^\| (?:`[^|]*`|) ?\| (?:`(--[\w.-]+)` )?\| ([^|]*?) ?\| .* \|$", (ROOT / "config/README.md").read_text(), re.M)
    documented = {flag for flag, _ in rows} - {""}  # secrets have none
    help_text = "".join(
        subprocess.run([AGENT, command, "--help-all"], capture_output=True, text=True, timeout=60, check=True).stdout
        for command in ("run", "exec")
    )
    offered = set(re.findall(r"^ +(--[a-z][\w.-]+) ", help_text, re.M))
    assert documented == offered - {"--config", "--strict", "--exit-when-idle", "--instrument", "--help-all"}
    variables = {variable for _, cell in rows for variable in re.findall(r"`(\w+)`", cell)}
    assert variables == set(re.findall(r"\$(\w+)", help_text)) - {"PERSIA_GLOBAL_CONFIG"}


def test_config_of_the_document_is_accepted(tmp_path):
    config = tmp_path / "global_config.yaml"
    config.write_text(block("yaml", "PersiaMetricsConfig:\n  enable_metrics", "config/README.md"))
    result = subprocess.run([AGENT, "check-config", f"--config={config}"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("document", ["README.md", "docs/gateway.md"])
def test_scrape_config_of_the_documents_is_accepted_by_prometheus(tmp_path, document):
    config = tmp_path / "prometheus.yml"
    config.write_text(block("yaml", "scrape_configs:", document))
    result = subprocess.run([find_program("promtool"), "check", "config", config], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert "honor_labels: true" in config.read_text()


@pytest.mark.static
def test_document_names_the_releases_that_are_built():
    built = dict(re.findall(r"^(\S+) +(\S+) +\S+@v", (ROOT / "tests/peers/build").read_text(), re.M))
    table = dict(re.findall(r"^ *\| (\w+) \| [\d.]+ \| ([\d.]+) \|$", (ROOT / "docs/compatibility.md").read_text(), re.M))
    assert table == {"PushGateway": built["pushgateway"], "Prometheus": built["prometheus"], "VictoriaMetrics": built["victoria-metrics"]}
    assert built["promtool"] == built["prometheus"]


@functools.cache
def anchors(document):
    """Those of its headings, as GitHub makes them: of two equal ones the second has a number."""
    text = re.sub(r"^ *```.*?^ *```", "", document.read_text(), flags=re.M | re.S)
    found = []
    for heading in re.findall(r"^#+ +(.*)$", text, re.M):
        name = re.sub(r"[^\w -]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return found


@pytest.mark.static
@pytest.mark.parametrize("document", project_files("*.md"), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", document.read_text()):
        if "://" not in target:
            file = document.parent / target if target else document
            assert file.exists(), f"{document.name} links to {target}"
            if anchor:
                assert file.suffix == ".md" and anchor in anchors(file.resolve()), f"{document.name} links to {target}#{anchor}"


@pytest.mark.static
def test_readme_is_read_in_a_few_minutes():
    """What it has no space for is in docs/, whose index leads to each page."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200
    index = (ROOT / "docs/README.md").read_text()
    missing = [path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md" and f"]({path.name})" not in index]
    assert not missing, f"docs/README.md does not lead to {missing}"


@pytest.mark.static
def test_every_folder_of_the_project_says_what_it_is():
    folders = {path.parent for path in project_files("*") if path.is_file() and path.suffix in {".cc", ".h", ".py", ".yaml", ".json"}}
    # lib/README.md describes the public headers, whose folders are their include path, and the sources; config/grafana/README.md
    # describes the folders that Grafana requires. A README in a fuzzer's corpus would be an input of the fuzzer.
    covering = {ROOT / "lib", ROOT / "config/grafana", ROOT / "tests/fuzz/corpus"}
    covered = {folder for folder in folders if covering & set(folder.parents)}
    missing = [folder for folder in folders - covered if not (folder / "README.md").exists()]
    assert not missing, f"no README.md in {sorted(str(folder.relative_to(ROOT)) for folder in missing)}"
