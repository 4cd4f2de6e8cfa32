"""`events` as torchelastic's document spells it: `event.configure(event.NullEventHandler())`."""

from .events import *  # noqa: F401, F403
from .events import api  # noqa: F401
