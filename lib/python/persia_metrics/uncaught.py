"""Records the exception that ends the process, for the agent, which reports why it died.

The record is an event of the segment's ring: type "python", name "uncaught_exception". It has the exception's type and message, the
innermost line of the program itself, and the first phase that the exception left. `caught` tells that the process goes on: the program
itself called the hook, to print an exception, or the interpreter's prompt did. The traceback is printed as before: the hook calls the one
that was there.

Thread safety: `install` at the import; the hook in the thread whose exception ends the process.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from types import TracebackType
from typing import Any, Dict, Optional, Type

from . import _native

_MAX_MESSAGE = 300
_MAX_SEARCHED = 10_000
_installed = False


def install() -> None:
    """Puts the hook in front of `sys.excepthook`. Does nothing if it is there."""
    global _installed
    if _installed:
        return
    _installed = True
    following = sys.excepthook

    def record_exception(kind: Type[BaseException], error: BaseException, traceback: Optional[TracebackType]) -> None:
        try:
            now = int(time.time() * 1000)
            # The ring exists once an event is counted.
            if isinstance(error, Exception) and _native.count_event("uncaught_exception", "python", now):
                _native.keep_event("uncaught_exception", "python", _describe(error, traceback), now)
        except Exception:  # the traceback is printed in any case
            pass
        following(kind, error, traceback)

    sys.excepthook = record_exception


def _describe(error: Exception, traceback: Optional[TracebackType]) -> Dict[str, Any]:
    try:
        message = str(error)
    except Exception:  # of the program's own class
        message = ""
    about: Dict[str, Any] = {
        "type": type(error).__qualname__,
        "message": _first_words(message)[:_MAX_MESSAGE],
        "where": _where(traceback),
    }
    number = getattr(error, "errno", None)
    if isinstance(error, OSError) and isinstance(number, int):
        about["errno"] = number
    elif isinstance(error, MemoryError):  # or a subclass, such as numpy's
        about["errno"] = errno.ENOMEM
    if _is_caught(error):
        about["caught"] = True
    phase = getattr(error, "_persia_metrics_phase", None)
    if isinstance(phase, str):
        about["phase"] = phase
    return about


def _first_words(message: str) -> str:
    """Its first line with a letter, since some begin with an empty line and a rule; without one, its first line with anything."""
    lines = [line.strip() for line in message[:_MAX_SEARCHED].splitlines() if line.strip()]
    with_letters = [line for line in lines if any(map(str.isalpha, line))]
    return next(iter(with_letters or lines), "")


def _is_caught(error: Exception) -> bool:
    """Whether the program goes on: the interpreter calls the hook once it has left all frames of the program."""
    if sys.exc_info()[1] is error or _prompt_follows():
        return True
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_name in ("<module>", "_run_module_as_main", "_bootstrap")


def _prompt_follows() -> bool:
    """Whether the interpreter is at its prompt, or goes there after the program (`python -i`, PYTHONINSPECT)."""
    if hasattr(sys, "ps1") or sys.flags.interactive:
        return True
    return bool(sys.flags.inspect or os.environ.get("PYTHONINSPECT")) and os.isatty(0)


def _where(traceback: Optional[TracebackType]) -> str:
    """The innermost line outside of installed packages: "train.py:42 in load"; of all lines, if there is none."""
    innermost = own = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        innermost = f"{os.path.basename(code.co_filename)}:{traceback.tb_lineno} in {code.co_name}"
        if "site-packages" not in code.co_filename and "dist-packages" not in code.co_filename and not _is_of_python(code.co_filename):
            own = innermost
        traceback = traceback.tb_next
    return own or innermost


def _is_of_python(path: str) -> bool:
    return path.startswith("<frozen") or path.startswith(os.path.dirname(os.__file__) + os.sep)
