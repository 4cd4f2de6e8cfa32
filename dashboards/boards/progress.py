"""Rows that several boards have: how far the training is, from what its processes count."""

from .grafana import chart, query
from .promql import RANK, RANK_LEGEND, over, select, total_rate


def progress(with_tokens):
    """Steps, samples, tokens if the board's jobs have them, the step of each rank, and the time that is left."""
    steps = total_rate(RANK, "persia_progress_steps_total")
    step, planned = over("max", RANK, select("persia_phase_step")), over("max", RANK, select("persia_progress_planned_steps"))
    left = over("max", "job", f"clamp_min({planned} - {step}, 0) / ({steps} > 0)")
    amounts = [query(total_rate("job", "persia_progress_samples_total"), "{{job}} samples")]
    amounts += [query(total_rate("job", "persia_progress_tokens_total"), "{{job}} tokens")] if with_tokens else []
    last = over("max", "job", select("persia_progress_planned_steps"))
    return [
        chart("Steps", "Training steps per second of the median rank.", "ops", [query(f"quantile by (job) (0.5, {steps})", "{{job}}")], (6, 8)),
        chart("Samples" + " and tokens" * with_tokens, "Trained on per second, by all ranks together.", "short", amounts, (6, 8)),
        chart("Step", "The number of the present step, by rank, and that of the last one.", "short", [query(step, RANK_LEGEND), query(last, "{{job}} last step")], (6, 8)),
        chart("Time left", "Until the last step of the rank that ends last, at its present rate.", "s", [query(left, "{{job}}")], (6, 8)),
    ]
