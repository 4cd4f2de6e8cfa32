"""The spelling of `events` that torchelastic's document uses: `event.configure(event.NullEventHandler())`."""

from .events import *  # noqa: F401, F403
from .events import api  # noqa: F401
