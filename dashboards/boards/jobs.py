"""What is known of a whole job: expressions of the boards of all jobs and of one job. And the list of jobs of all boards."""

from .promql import COMMANDS, RANK, RATE, WORKERS, increase, over, rate, select, total_rate, unless_ended

# One series for each process of a job that records metrics, with its run and versions, or for the agent alone: all lists of jobs and of their ranks are made of it.
LISTED = "persia_job_info"

STATES = {
    7: ("no news", "orange"),
    6: ("failed", "red"),
    5: ("hangs", "red"),
    4: ("ranks dead or hung", "red"),
    3: ("straggler", "yellow"),
    2: ("running", "green"),
    1: ("interrupted", "purple"),
    0: ("finished", "blue"),
    -1: ("no process", "text"),
    -2: ("not seen", "text"),
}
STATES_ABOUT = (
    "no news: no agent of the job is seen any more. failed, finished: the exit code of the command under exec. interrupted: by Ctrl-C or a signal to it. hangs: no metric of the job changes. "
    "no process: none runs, and no exit code is known. not seen: it has no values now, and had some within an hour: it ended, or its gateway is away."
)

CODES = {text: code for code, (text, _) in STATES.items()}
RUNNING = ["running", "straggler", "ranks dead or hung", "hangs"]
# A failed job is one for its team: it stays on the gateway until its next run.
WITH_A_PROBLEM = ["ranks dead or hung", "hangs", "no news"]

TIME = "persia_rank_seconds_total"


def _as(text, condition):
    """The code of the state for each job for which there is the condition."""
    return f"{CODES[text]} + 0 * ({condition})"


def last(name):
    """Without a gateway, a job's series end with it, or five minutes later."""
    return f"last_over_time({select(name)}[1h])"


def of_last_run(name):
    """Without a run that another one, on another host, has followed."""
    return f"{last(name)} unless ignoring (cause) {select('agent:replaced:bool')}"


def owner():
    """One series for each job that is seen, or was within an hour, with the label `owner`."""
    return f'max by (job, owner) (label_replace({last(LISTED)}, "owner", "$1", "team", "(.+)"))'


def state():
    """The code of each job's state, as in STATES: the worst that is true."""
    seen = f"{select('agent:job_running:bool')} == 1 unless {select('agent:silent:seconds')}"
    lost = f"{over('max', 'job', select('agent:vanished:seconds'))} unless on (job) ({seen})"
    bad = " or ".join(over("sum", "job", select(name)) + " > 0" for name in ("persia_process_died", "persia_process_hung"))
    waited_for = " or ".join(over("max", "job", select(name)) for name in ("rank:straggler:seconds_per_step", "persia_straggler"))
    running = [
        _as("hangs", over("min", "job", select("persia_job_hung")) + " == 1"),
        _as("ranks dead or hung", bad),
        _as("straggler", waited_for),
        _as("running", f"{COMMANDS} == 1 or {WORKERS} > 0"),
    ]
    code = of_last_run("persia_exec_exit_code")
    interrupted = f"({of_last_run('persia_exec_interrupted')}) == 1"
    failed = over("max", "job", f"({code}) > 0 unless ({interrupted})")
    ended = [
        _as("failed", failed),
        _as("interrupted", over("max", "job", interrupted)),
        _as("finished", over("max", "job", code) + " == 0"),
        _as("no process", over("max", "job", select(LISTED))),
        _as("not seen", over("max", "job", last(LISTED))),
    ]
    return " or ".join([_as("no news", lost), unless_ended(" or ".join(running)), *ended])


def in_states(texts):
    """The jobs in one of these states."""
    return f"({state()})" + "".join(f" != {code}" for text, code in CODES.items() if text not in texts)


def ranks():
    """Processes that run."""
    return unless_ended(over("sum", "job", select("persia_process_up")))


def step():
    return over("max", "job", select("persia_phase_step"))


def planned_steps():
    return over("max", "job", select("persia_progress_planned_steps"))


def time_left():
    """Until the last step of the rank that ends last, at its present rate."""
    to_go = f"clamp_min({over('max', RANK, select('persia_progress_planned_steps'))} - {over('max', RANK, select('persia_phase_step'))}, 0)"
    return unless_ended(over("max", "job", f"{to_go} / ({steps_of_ranks()} > 0)"))


def steps_of_ranks():
    return total_rate(RANK, "persia_progress_steps_total")


def speed():
    """Steps per second of the median rank, of those that step; of a job that counts none, its own counter over all ranks."""
    steps = steps_of_ranks()
    own = over("sum", "job", select("persia_job_throughput"))
    counted = increase("persia_progress_steps_total")
    return unless_ended(f"quantile by (job) (0.5, {steps} > 0) or {over('max', 'job', steps)} or ({own} unless on (job) {counted})")


def goodput(by, range=RATE):
    """Of ranks that mark phases, which alone have this bucket: it is not known what the others do."""
    grown = rate if range == RATE else increase
    bucket = 'bucket="compute"'
    known = over("sum", by, f"{grown(TIME)} and ignoring (bucket) {grown(TIME, bucket)}")
    return f"{over('sum', by, grown(TIME, bucket))} / {known}"


def goodput_so_far():
    """Of all agents of the job, over the run."""
    return over("avg", "job", select("persia_goodput_ratio"))


def gpus():
    """Whole devices that the job holds: those of its ranks; if no rank of a device is known, those of its hosts."""

    def devices(*matchers):
        held = select("persia_gpu_up", 'gpu!~".+:.+"', *matchers)
        return over("count", "job", over("max", "job, ip_addr, gpu", f"{held} == 1"))

    return unless_ended(devices('instance!~"no_rank.*"') + " or " + devices())


def gpu_hours():
    """In the board's time range, from the number of devices at each point."""
    return f"sum_over_time(({gpus()})[$__range:$__interval]) * $__interval_ms / 3600000"


def gpu_use():
    return over("max", "job, ip_addr, gpu", select("persia_gpu_utilization_ratio"))
