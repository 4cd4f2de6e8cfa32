"""Each resource limit, at 20 levels between the need of the program alone and its need with the library."""

import resource

import pytest
from cases import BOTH, bare, problems, run, run_all, scenario

LEVELS = 20
_MIB = 1 << 20
# A limit, the highest value that is tried, and its steps. For small numbers each value is a level.
_LIMITS = {"fsize": (64 * _MIB, 4096), "as": (512 * _MIB, 4096), "data": (512 * _MIB, 4096), "memlock": (64 * _MIB, 1024)}
_REASONS = {"fsize": "file size limit", "as": "out of memory", "data": "out of memory", "memlock": "out of memory"}
_SMALL = {"nofile": 256, "nproc": 64}
_FIRST_USER = 200_000  # not in use


def _wrapper(limit, value):
    return ["prlimit", f"--{limit}={value}:{value}"]


def _passes(case):
    return not list(problems(run(case)))


def _least(passes, most, step):
    """The least multiple of `step` with which `passes` is true."""
    assert passes(most), f"it fails even with {most}"
    low, high = -1, most // step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle * step) else (middle, high)
    return high * step


@pytest.mark.parametrize("limit", _LIMITS)
def test_limit_on_memory_and_files(limit, way, result):
    most, step = _LIMITS[limit]
    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{limit.upper()}"))[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    alone = _least(lambda value: _passes(bare(_wrapper(limit, value), stdout=result)), most, step)
    whole = _least(
        lambda value: _passes(scenario(limit, way, _wrapper(limit, value), stdout=result, complete=BOTH)), most, step
    )
    # If the library needs nothing, the levels are in steps above the need of the program alone.
    top = max(whole, alone + LEVELS * step)
    values = sorted({alone + (top - alone) * i // (LEVELS - 1) for i in range(LEVELS)})
    assert len(values) == LEVELS
    more = {"stdout": result, "reasons": (_REASONS[limit],)}
    run_all([scenario(f"{limit} {value}", way, _wrapper(limit, value), **more) for value in values])


def test_limit_on_descriptors(way, result):
    alone = _least(lambda value: _passes(bare(_wrapper("nofile", value), stdout=result)), _SMALL["nofile"], 1)
    values = range(alone, alone + LEVELS)
    more = {"stdout": result, "reasons": ("descriptor limit",)}
    run_all([scenario(f"nofile {value}", way, _wrapper("nofile", value), **more) for value in values])


@pytest.mark.needs("other-users")
def test_limit_on_processes(way, result):
    """The limit does not apply to root. Each case has its own user, since the limit counts all processes of a user."""

    def wrapped(value, user):
        identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return [*_wrapper("nproc", value), *identity]

    def owned(case, user):
        case.env["OWNER"] = str(user)
        return case

    def passes(value):
        return _passes(owned(bare(wrapped(value, _FIRST_USER), stdout=result), _FIRST_USER))

    alone = _least(passes, _SMALL["nproc"], 1)
    assert alone > 1, "the limit binds nobody here"
    cases = []
    for i in range(LEVELS):
        user = _FIRST_USER + 1 + i
        case = scenario(f"nproc {alone + i}", way, wrapped(alone + i, user), stdout=result, complete=BOTH)
        cases.append(owned(case, user))
    run_all(cases)
