"""The manual pages and the completion for bash that `packaging/help.py` writes from the agent's help."""

import re
import subprocess

import pytest
from conftest import AGENT, PYTHON
from servers import ROOT

COMMANDS = ("run", "exec", "once", "check-config", "explain", "report", "top")
LEFT_OUT = ("usage: persia-metrics-agent [options] [command]", "positionals:")
COMPLETION = "/usr/share/bash-completion/bash_completion"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    directory = tmp_path_factory.mktemp("generated")
    subprocess.run([PYTHON, "-B", ROOT / "packaging/help.py", AGENT, directory], check=True, timeout=60)
    return directory


@pytest.fixture(scope="module")
def complete(generated):
    """Returns bash's completions for the last word of a command line."""

    def run(*words):
        # bash's own word splitting of COMP_WORDBREAKS.
        words = [part for word in words for part in (re.split("(=)", word) if "=" in word else [word])]
        script = """
source "$1"; source "$2"; shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMPREPLY=()
compopt() { :; }  # is an error outside of a completion by readline
_persia_metrics_agent
printf '%s\\n' "${COMPREPLY[@]}"
"""
        command = ["bash", "--norc", "-c", script, "bash", COMPLETION, generated / "completions/persia-metrics-agent"]
        done = subprocess.run([*command, "persia-metrics-agent", *words], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
        assert done.stderr == ""
        return set(done.stdout.split())

    return run


def help_of(*words):
    return subprocess.run([AGENT, *words, "--help-all"], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("words", [(), *((command,) for command in COMMANDS)])
def test_page_has_every_word_of_the_help(generated, words):
    page = generated / f"{'-'.join(['persia-metrics-agent', *words])}.1"
    env = {"MANWIDTH": "9999", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["man", "--warnings", "--local-file", page], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    shown = " ".join(done.stdout.split()).lower()
    lines = help_of(*words).replace("-h,--help", "-h, --help").lower().splitlines()
    for part in (part for line in lines if line not in LEFT_OUT for part in re.split("  +", line.strip())):
        text = part.removeprefix("usage: ").removesuffix(":").replace("exit codes", "exit status")
        assert text in shown, f"{text!r} is not on the page"


def test_pages_name_each_other(generated):
    program = (generated / "persia-metrics-agent.1").read_text().replace("\\-", "-")
    for command in COMMANDS:
        assert f"persia-metrics-agent-{command}\\fR(1)" in program
        page = (generated / f"persia-metrics-agent-{command}.1").read_text().replace("\\-", "-")
        assert "persia-metrics-agent\\fR(1)" in page.partition(".SH SEE ALSO")[2]
    assert "persia-metrics-agent exec --job dlrm" in (generated / "persia-metrics-agent-exec.1").read_text().replace("\\-", "-")


def test_commands_complete(complete):
    assert complete("") == {*COMMANDS, "-h", "--help", "--help-all", "--version"}
    assert complete("ex") == {"exec", "explain"}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_completes_its_own_flags(complete, command):
    offered = set(re.findall(r"^ +(--[a-z][\w.-]+)", help_of(command), re.M))
    assert complete(command, "--") - {"--help", "--"} == offered


def test_values_complete(complete):
    assert complete("run", "--on-job-end", "") == {"keep", "delete"}
    assert complete("run", "--on-job-end=de") == {"delete"}
    assert complete("run", "--config", "config/global") == {"config/global_config.yaml"}
    assert complete("run", "--state-dir", "conf") == {"config"}
    assert complete("run", "--job", "") == set()


def test_the_command_of_exec_completes_as_by_itself(complete):
    assert "CMakeLists.txt" in complete("exec", "--job", "dlrm", "--", "cat", "CMakeL")
