"""What `./run test`, the gate and the night run, in which order."""

import sys
import time

import changes
import commands
import stages
from session import Stop

_RESTRICTED = ("sh", "-c", 'trap "" INT HUP; exec "$@" <&-', "sh")

sys.path.insert(0, str(commands.ROOT / "tests/mutate"))
from layers import CONTRACT  # noqa: E402


def folders_of_module(identifier):
    """What a test of pytest guards: its own file, its folder's contract in the product."""
    path = identifier.split("::")[0]
    name = path.rpartition("/")[2].removesuffix(".py")
    folders = [folder if folder == "lib" else f"agent/{folder}" for folder, modules in CONTRACT.items() if name in modules.split()]
    return (path, *folders) if path.startswith("tests/e2e/") else ("/".join(path.split("/")[:2]), "lib", "agent/ledger", "agent/files")


def _words(*words):
    return (commands.PYTHON, *words)


def _static(session):
    """Checks that need no build, and end the run if they fail."""
    files = 'git ls-files -z "$@" | xargs -0 --no-run-if-empty'
    rows = {
        "format": ("sh", "-c", f"{files} clang-format --dry-run --Werror", "sh", "*.h", "*.cc", "*.c"),
        "scripts": ("sh", "-c", r"git grep -lIE '^#!(/usr)?/bin/(env )?(ba)?sh' -- ':!*.md' | xargs -d '\n' shellcheck"),
        "Python": ("sh", "-c", f"{files} pyflakes3", "sh", "tests/*.py", "packaging/*.py", "examples/*.py", ".ci/*.py"),
        "includes": _words("tests/static/check_includes.py"),
    }
    good = session.stage("static checks", 5, stages.each, rows)
    good &= session.stage("documents, boards and manifests", 5, stages.pytest, ["tests/e2e"], options=("--level=static",))
    if not good:
        raise Stop


def _build(session, preset, *targets, minutes=30):
    if not session.stage(f"build of {preset}", minutes, stages.build, preset, *targets):
        raise Stop


def _draws(session, name, number):
    """So many histories of the model, or recordings of litmus. Those of another seed are others."""
    option = {"model": "--histories", "litmus": "--recordings"}[name]
    words = (f"build/test/tests/{name}/{name}", option, number, "--seed", (session.seed - 1) * number)
    session.stage(name, 15, stages.command, words, seeded=True, quiet=False)


def _pytest(session, name, minutes, paths, **more):
    return session.stage(name, minutes, stages.pytest, paths, folders_of=folders_of_module, **stages.built("test"), **more)


def _end_to_end(session, level, minutes, width):
    options = (f"--level={level}", "--durations=10")
    _pytest(session, f"end-to-end tests, {level}", minutes, ["tests/e2e"], width=min(8, width * commands.PROCESSORS), options=options)


def test(session):
    """`./run test`: what a developer runs before a commit."""
    _build(session, "test", "quick_tests")
    session.stage("unit tests", 10, stages.unit, "test", seed=session.seed, without=("gate",))
    _draws(session, "model", 50_000)
    _end_to_end(session, "quick", 15, 3)


def gate(session):
    """A function of the commit: no network but apt's and pip's, no second job beside a job, no limit on speed, no test of a tool."""
    touched = changes.files()
    _static(session)
    _build(session, "test")
    session.stage("names in unity builds", 5, stages.command, _words("tests/check_unity_names.py", "build/test"))
    # Each case in two builds: with ASan, and here or with TSan.
    session.stage("unit tests", 15, stages.unit, "test", seed=session.seed, without=("threaded",))
    _draws(session, "model", 200_000)
    _draws(session, "litmus", 100)
    session.stage("growth", 10, stages.growth)
    _end_to_end(session, "gate", 30, 3)
    _pytest(session, "fault tests", 10, ["tests/faults"])
    one_by_one = ("--dist=load", "--deselect=tests/crash/test_crash.py::test_a_missing_step_is_found")
    _pytest(session, "crash tests", 10, ["tests/crash"], width=commands.PROCESSORS, options=one_by_one)
    _build(session, "sanitize", "unit_tests", "fuzzers")
    session.stage("unit tests, ASan and UBSan", 20, stages.unit, "sanitize", seed=session.seed)
    session.stage("corpus of the fuzzers", 5, stages.command, _words("tests/fuzz", "--seconds=0"), seeded=True)
    _build(session, "tsan", "tsan_tests")
    session.stage("unit tests, TSan", 20, stages.unit, "tsan", seed=session.seed)
    for part in changes.night_parts(touched):
        for need in _NEEDS.get(part, ()):
            session.stage(f"packages of {part}: {need}", 15, stages.command, ("packaging/setup/install", need))
        NIGHT[part](session)
    return changes.folders(touched)


def _night_unit(session):
    _build(session, "test", "unit_tests")
    session.stage("unit tests in another order", 20, stages.unit, "test", seed=session.seed)


def _night_clang(session):
    _build(session, "clang", minutes=60)
    session.stage("unit tests of clang, without stdin", 20, stages.unit, "clang", seed=session.seed, prefix=_RESTRICTED)


def _night_model(session):
    _build(session, "test")
    _draws(session, "model", 2_000_000)
    _draws(session, "litmus", 400)


def _night_end_to_end(session):
    _build(session, "test")
    _end_to_end(session, "night", 60, 3)


def _night_end_to_end_otherwise(session):
    _build(session, "test")
    _end_to_end(session, "gate", 60, 4)


def _night_faults(session):
    _build(session, "test")
    _pytest(session, "fault tests, all cases", 30, ["tests/faults"], PERSIA_TEST_FAULTS="all")


def _night_crash(session):
    _build(session, "test")
    _pytest(session, "crash tests, all states", 30, ["tests/crash"], PERSIA_TEST_CRASH="all")


def _night_chaos(session):
    _build(session, "test")
    for name, words in {"chaos": (), "chaos, state elsewhere": ("--state-elsewhere",)}.items():
        command = _words("tests/chaos", "--kills=500", f"--seed={session.seed}", *words)
        session.stage(name, 30, stages.command, command, quiet=False, **stages.built("test"))


def _night_stragglers(session):
    _build(session, "test")
    words = ("tests/stragglers", f"--seed={session.seed}", "--delays=20", "--clean=20", "--hangs=10", "--host-delays=3", "--host-hangs=2")
    session.stage("stragglers", 40, stages.command, _words(*words, "--beside-others"), quiet=False, **stages.built("test"))


def _night_fuzz(session):
    _build(session, "fuzz", "fuzzers")
    session.stage("fuzzing, a minute a target", 30, stages.command, _words("tests/fuzz", "--seconds=60", f"--seed={session.seed}"), quiet=False)


def _night_outages(session):
    _build(session, "test")
    outage = ["tests/e2e/test_remote_write_databases.py::test_an_outage_of_databases_and_kills_of_all_lose_nothing"]
    trouble = ["tests/e2e/test_remote_write_faults.py::test_a_target_in_each_kind_of_trouble_by_turns_gets_every_sample_in_order"]
    _pytest(session, "databases away for three minutes", 20, outage, PERSIA_TEST_COLLECTIONS_AWAY=450)
    _pytest(session, "each kind of trouble for a minute", 20, trouble, PERSIA_TEST_TROUBLE_COLLECTIONS=200)


def _night_docker(session):
    session.stage("images and compose files", 70, stages.pytest, ["tests/docker"], config="tests/docker/pytest.ini", prefix=(*stages.as_root(), ".ci/docker_engine"))


def _night_packages(session):
    as_root = stages.as_root()
    if session.stage("build of the packages", 30, stages.command, ("packaging/build",)):
        session.stage("packages", 30, stages.pytest, ["tests/packages"], config="tests/packages/pytest.ini", prefix=as_root)


def _night_peers(session):
    _build(session, "test")
    if session.stage("build of current servers", 30, stages.command, ("tests/peers/build",)):
        path = f"{commands.ROOT}/build/peers:{commands.environment()['PATH']}"
        _pytest(session, "end-to-end tests with current servers", 30, ["tests/e2e"], width=4, options=("--level=peers",), PATH=path)


def _night_client_python(session):
    _build(session, "test", "persia_metrics_python", "persia_metrics_python_sources")
    session.stage("prometheus_client's own tests", 20, stages.command, _words("tests/client_python"), quiet=False, **stages.built("test"))


def _night_boards(session):
    session.stage("boards by Grafana's types and linter", 20, stages.command, (".ci/dashboards/check",))


def _night_manifests(session):
    session.stage("manifests by the API server's checks", 40, stages.command, (".ci/kubernetes/check",))


def _night_rules(session):
    _build(session, "test", "quick_tests")
    _pytest(session, "rules and alerts by promtool", 20, ["tests/e2e/test_alert_matrix.py", "tests/e2e/test_prometheus_config.py"], width=max(2, commands.PROCESSORS), options=("--dist=load",))


def _night_tools(session):
    _build(session, "test")
    _pytest(session, "tests of the gate and of the static checks", 10, ["tests/gate", "tests/static"])


def _night_bare(session):
    for release in (12, 13):
        for command in ("demo", "test"):
            session.stage(f"./run {command} on a bare Debian {release}", 45, stages.command, (*stages.as_root(), *_words("tests/bare", f"--release={release}", command)), quiet=False)


def _night_mutate(session):
    session.stage("mutants", 60, stages.command, _words("tests/mutate", "--count=20", f"--seed={session.seed}", "--allow=5"), quiet=False)


def _night_bench(session):
    _build(session, "test")
    words = ("build/test/tests/bench/bench_ended_processes", "build/test/tests/chaos/worker/chaos_worker", "20", "2000")
    session.stage("collections after 2,000 ended processes", 20, stages.command, words)


NIGHT = {
    "tools": _night_tools,
    "unit": _night_unit,
    "clang": _night_clang,
    "model": _night_model,
    "end-to-end": _night_end_to_end,
    "otherwise": _night_end_to_end_otherwise,
    "faults": _night_faults,
    "crash": _night_crash,
    "chaos": _night_chaos,
    "stragglers": _night_stragglers,
    "fuzz": _night_fuzz,
    "outages": _night_outages,
    "boards": _night_boards,
    "manifests": _night_manifests,
    "rules": _night_rules,
    "peers": _night_peers,
    "client_python": _night_client_python,
    "docker": _night_docker,
    "packages": _night_packages,
    "bare": _night_bare,
    "mutate": _night_mutate,
    "bench": _night_bench,
}


# What the gate's own packages lack for a part of the night.
_NEEDS = {"docker": ("docker",), "packages": ("docker", "package")}


def night(session, suites):
    """What draws, takes long, needs real engines or the network, or limits speed. Each suite runs, whatever the others did."""
    for suite in suites or NIGHT:
        try:
            NIGHT[suite](session)
        except Stop:
            continue


def seed_of_the_day():
    return int(time.strftime("%Y%m%d"))
