"""Checks the guarantees of the hot calls, on the machine code and by counting instructions.

usage: check_hot_path.py disassembly|instructions HOT_PATH_PROGRAM
"""

import re
import subprocess
import sys

# The maximum of instructions on the way to the return: those of g++ 12 at -O2; clang 14 makes fewer. `Increment` has the slot, the
# thread's table, the chunk and a test of it, the cell's place, and the addition.
MOST_ON_FAST_PATH = {
    "HotIncrement": 12,
    "HotIncrementBy": 12,
    "HotIncrementByDouble": 26,
    "HotSet": 12,
}
# No locked instruction at all, on no path of theirs.
NEVER_LOCKED = ("HotObserve", "HotAdd")
# The most instructions one call may take, the call and return and the loop around it included; `HotObserve` has 11 bounds.
MOST_PER_CALL = {
    "HotIncrement": 18,
    "HotIncrementBy": 19,
    "HotIncrementByDouble": 34,
    "HotSet": 20,
    "HotObserve": 56,
    "HotAdd": 75,
    "HotPutMetric": 400,
    "HotChild": 360,
    "HotRecord": 1400,
}


# Of xchg with memory the lock needs no prefix.
LOCKED = re.compile(r"lock|xchg.*\(")


def machine_code(program, function):
    """The function's instructions."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", program],
        check=True, capture_output=True, text=True).stdout
    code = [m.group(1).strip() for m in re.finditer(r"^\s+[0-9a-f]+:\t(.*)$", text, re.M)]
    assert code, f"{function} is not in {program}"
    return code


def fast_path(program, function):
    """Those up to its first return."""
    code = machine_code(program, function)
    returns = [i for i, instruction in enumerate(code) if instruction.startswith("ret")]
    assert returns, f"{function} never returns"
    return code[:returns[0] + 1]


def check_disassembly(program):
    for function, most in MOST_ON_FAST_PATH.items():
        code = fast_path(program, function)
        listing = "\n  ".join(code)
        assert not any(c.startswith("call") for c in code), f"{function} makes a call:\n  {listing}"
        assert not any(LOCKED.match(c) for c in code), f"{function} has a locked instruction:\n  {listing}"
        assert len(code) <= most, f"{function} has {len(code)} instructions, more than {most}:\n  {listing}"
        print(f"{function}: {len(code)} instructions to its return, none of them a call or locked")
    for function in NEVER_LOCKED:
        locked = [c for c in machine_code(program, function) if LOCKED.match(c)]
        assert not locked, f"{function} has locked instructions: {locked}"
    code = fast_path(program, "HotIncrement")
    branches = [c for c in code if re.match(r"j(?!mp)", c)]
    assert len(branches) == 1, f"HotIncrement asks more than whether the thread has the chunk: {branches}"


def instructions(program, function, times):
    err = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, function, str(times)],
        check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Collected : (\d+)", err).group(1))


def check_instructions(program):
    times = 100_000
    for function, most in MOST_PER_CALL.items():
        per_call = (instructions(program, function, times) - instructions(program, function, 0)) / times
        print(f"{function}: {per_call:.1f} instructions a call, loop included (at most {most})")
        assert per_call <= most, f"{function} takes {per_call:.1f} instructions a call, more than {most}"
        assert per_call >= 5, f"{function} was not called at all"


if __name__ == "__main__":
    {"disassembly": check_disassembly, "instructions": check_instructions}[sys.argv[1]](sys.argv[2])
