"""prometheus_client itself, with its values in the segment that the job's agent exports."""

from prometheus_client import *

def install() -> bool:
    """Keeps the values of all metrics of prometheus_client in the segment from now on, also of those in its default registry.

    Returns whether it does; the reason why not is one log line.
    """
