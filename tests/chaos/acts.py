"""The faults of the chaos test: acts drawn from a seed. The same seed draws the same acts with the same pauses; the state of each
process at that moment depends on the machine."""

import signal
import time

import ledger as ledgers
from job import IDENTITIES, PUSH_INTERVAL

_STATES = (ledgers.BORN, ledgers.GROWING, ledgers.REGISTERING, ledgers.THREADS, ledgers.FORKING, ledgers.BUSY)


class Acts:
    """Draws acts and performs them on a job."""

    def __init__(self, job, rng, can_fill):
        self._job, self._rng = job, rng
        # An act, and its weight.
        self._acts = [
            (self.kill_one, 8),
            (self.kill_in_state, 8),
            (self.kill_newborn, 3),
            (self.kill_many, 3),
            (self.kill_forked, 4),
            (self.kill_launched, 1),
            (self.end_one, 2),
            (self.stop_worker, 2),
            (self.kill_agent, 2),
            (self.kill_worker_then_agent, 3),
            (self.kill_agent_again_and_again, 1),
            (self.stop_agent, 1),
            (self.kill_supervised_agent, 2),
            (self.kill_gateway, 2),
            (self.kill_gateway_and_agent, 1),
            (self.stop_gateway, 1),
        ]
        if can_fill:
            self._acts.append((self.fill, 1))
        if job.state_elsewhere:
            self._acts.append((self.refuse_segments, 4))
        self.done = {}

    def next(self):
        """Performs one act. It makes all draws first, so that its course does not change the next act."""
        acts, weights = zip(*self._acts)
        act = self._rng.choices(acts, weights)[0]
        # Never interrupted, because an act leaves the job complete.
        act(self._rng.random, self._rng.randrange(len(IDENTITIES)))
        self.done[act.__name__] = self.done.get(act.__name__, 0) + 1
        time.sleep(self._rng.uniform(0.02, 0.3))
        self._job.mind_agent()
        self._job.living()

    def kill_one(self, _draw, index):
        self._job.kill_worker(index)

    def kill_in_state(self, draw, index):
        """Kills a worker while it starts, grows its segment, registers, ends threads, forks, or counts without a pause."""
        state = _STATES[int(draw() * len(_STATES))]
        if state in (ledgers.BORN, ledgers.GROWING):
            self._job.kill_worker(index)  # only a new worker has these states
        self._job.kill_worker_at(index, state, after=draw() * 0.0004)

    def kill_newborn(self, draw, index):
        """Kills the agent twice, the second time while it starts."""
        pause = draw() * 0.012
        self._job.kill_worker(index)
        time.sleep(pause)
        self._job.kill_worker(index)

    def kill_many(self, draw, index):
        for step in range(2 + int(draw() * 3)):
            self._job.kill_worker((index + step) % len(IDENTITIES))

    def kill_forked(self, draw, index):
        pick = draw()
        forked = self._job.forked()
        if forked:
            self._job.kill_by_pid(forked[int(pick * len(forked))])

    def kill_launched(self, _draw, _index):
        self._job.await_launched()
        for ledger in self._job.launched_workers():
            self._job.kill_by_pid(ledger)
        if self._job.launched:
            self._job.agent.wait()

    def end_one(self, _draw, index):
        self._job.end_worker(index)

    def stop_worker(self, draw, index):
        seconds, and_kill = draw() * 0.5, draw() < 0.5
        worker = self._job.workers[index]
        worker.signal(signal.SIGSTOP)
        time.sleep(seconds)
        if and_kill:
            self._job.kill_worker(index)
        else:
            worker.signal(signal.SIGCONT)

    def kill_agent(self, draw, _index):
        away, launch = draw() * 0.4, draw() < 0.3
        self._job.kill_agent()
        time.sleep(away)
        self._job.start_agent(launch)

    def kill_supervised_agent(self, draw, index):
        """Kills the agent under its supervisor every 50 ms, and a worker meanwhile."""
        seconds = draw() * 1.5
        if not self._job.launched:
            self._job.kill_agent()
            self._job.start_agent(launch=True)
        end = time.monotonic() + seconds
        self._job.kill_worker(index)
        while time.monotonic() < end and self._job.agent.running():
            self._job.kill_supervised_agent()
            time.sleep(0.05)

    def kill_worker_then_agent(self, draw, index):
        """Kills the agent shortly before or after it takes over a dead worker's counts."""
        pause, launch = draw() * 1.5 * PUSH_INTERVAL, draw() < 0.2
        self._job.kill_worker(index)
        time.sleep(pause)
        self._job.kill_agent()
        self._job.start_agent(launch)

    def kill_agent_again_and_again(self, draw, index):
        pauses = [draw() * 0.15 for _ in range(3)]
        self._job.kill_worker(index)
        for pause in pauses:
            self._job.kill_agent()
            self._job.start_agent(launch=False)
            time.sleep(pause)

    def stop_agent(self, draw, index):
        seconds = draw() * 0.8
        self._job.agent.signal(signal.SIGSTOP)
        self._job.kill_worker(index)
        time.sleep(seconds)
        self._job.agent.signal(signal.SIGCONT)

    def kill_gateway(self, draw, _index):
        away = draw() * 0.4
        self._job.kill_gateway()
        time.sleep(away)
        self._job.start_gateway()

    def kill_gateway_and_agent(self, draw, index):
        away = draw() * 0.3
        self._job.kill_gateway()
        self._job.kill_agent()
        self._job.kill_worker(index)
        time.sleep(away)
        self._job.start_agent(launch=False)
        self._job.start_gateway()

    def stop_gateway(self, draw, index):
        """Stops the gateway for less time than a push may take: the agent cannot correct a push that is handled after it gave up."""
        seconds = draw() * 0.8
        self._job.gateway.signal(signal.SIGSTOP)
        self._job.kill_worker(index)
        time.sleep(seconds)
        self._job.gateway.signal(signal.SIGCONT)

    def refuse_segments(self, draw, index):
        """An agent cannot read the segments, and has the living workers' values from its state; a worker dies meanwhile."""
        before, pause, killed = draw() * 0.3, draw() * 0.5, draw() < 0.5
        time.sleep(before)
        self._job.kill_agent()
        self._job.start_agent(launch=False, refuses_segments=True)
        self._job.kill_worker(index)
        time.sleep(pause)
        if killed:
            self._job.kill_agent()
        else:
            self._job.agent.signal(signal.SIGTERM)
            self._job.agent.wait()
        self._job.start_agent(launch=False)

    def fill(self, draw, index):
        """Fills the directory's filesystem for a second, and kills a worker and the agent meanwhile."""
        leave, pause = int(draw() * 3) * 16384, 0.2 + draw() * 0.6
        with self._job.full_directory(leave):
            time.sleep(pause)
            self._job.kill_worker(index)
            time.sleep(pause / 2)
            self._job.kill_agent()
            self._job.start_agent(launch=False)
            time.sleep(pause)
            self._job.mind_agent()
        # Processes started meanwhile may have dropped counts; the fewer of them, the stricter the comparison.
        self._job.kill_worker(index)
        self._job.mind_agent()
