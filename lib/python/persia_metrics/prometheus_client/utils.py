"""Numbers as the exposition formats write them."""

from __future__ import annotations

import math
from typing import Union


INF = math.inf
MINUS_INF = -math.inf
NaN = math.nan


def floatToGoString(d: Union[int, float, str]) -> str:  # noqa: N802 - prometheus_client's name
    """The number as Go prints it: from 1e+06 on with an exponent, where Python needs 1e+16."""
    number = float(d)
    if number == math.inf:
        return "+Inf"
    if number == -math.inf:
        return "-Inf"
    if math.isnan(number):
        return "NaN"
    text = repr(number)
    whole, point, fraction = text.partition(".")
    if number > 0 and point and len(whole) > 6:
        digits = (whole[1:] + fraction).rstrip("0")
        return f"{whole[0]}{'.' if digits else ''}{digits}e+{len(whole) - 1:02d}"
    return text
