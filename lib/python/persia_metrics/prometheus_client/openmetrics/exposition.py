"""The OpenMetrics text format, with the names of prometheus_client.openmetrics.exposition."""

from __future__ import annotations

from typing import Any, List, Mapping

from ..utils import floatToGoString


CONTENT_TYPE_LATEST = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""The content type of the format."""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items())) + "}"


def _exemplar(metric: Any, sample: Any) -> str:
    exemplar = sample.exemplar
    if not exemplar:
        return ""
    of_counter = metric.type == "counter" and sample.name.endswith("_total")
    of_bucket = metric.type in ("histogram", "gaugehistogram") and sample.name.endswith("_bucket")
    if not (of_counter or of_bucket):
        raise ValueError(f"Metric {metric.name} has exemplars, but is not a histogram bucket or counter")
    timestamp = "" if exemplar.timestamp is None else f" {exemplar.timestamp}"
    return f" # {_labels(exemplar.labels)} {floatToGoString(exemplar.value)}{timestamp}"


def _lines_of(metric: Any) -> List[str]:
    lines = [f"# HELP {metric.name} {_escaped(metric.documentation)}\n", f"# TYPE {metric.name} {metric.type}\n"]
    if metric.unit:
        lines.append(f"# UNIT {metric.name} {metric.unit}\n")
    for sample in metric.samples:
        labels = _labels(sample.labels) if sample.labels else ""
        timestamp = "" if sample.timestamp is None else f" {sample.timestamp}"
        lines.append(f"{sample.name}{labels} {floatToGoString(sample.value)}{timestamp}{_exemplar(metric, sample)}\n")
    return lines


def generate_latest(registry: Any) -> bytes:
    """A registry's metrics in the OpenMetrics format."""
    output: List[str] = []
    for metric in registry.collect():
        try:
            output += _lines_of(metric)
        except Exception as exception:
            exception.args = (exception.args or ("",)) + (metric,)
            raise
    return "".join([*output, "# EOF\n"]).encode()
