"""The results of `time()`, `track_inprogress()` and `count_exceptions()`, under prometheus_client's module name."""

from ..timing import ExceptionCounter as ExceptionCounter
from ..timing import InprogressTracker as InprogressTracker
from ..timing import Timer as Timer
