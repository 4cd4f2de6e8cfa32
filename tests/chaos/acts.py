"""What is done to a job: acts, drawn one after another from a seed. The same seed draws the same acts with the same pauses; how
far each process has come when it is hit is the machine's own."""

import signal
import time

import ledger as books
from job import IDENTITIES, PUSH_INTERVAL

_STATES = (books.BORN, books.GROWING, books.REGISTERING, books.THREADS, books.FORKING, books.BUSY)


class Acts:
    """Draws acts and performs them on a job."""

    def __init__(self, job, rng, can_fill):
        self._job, self._rng = job, rng
        # An act, and how often it comes.
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
            (self.kill_gateway, 2),
            (self.kill_gateway_and_agent, 1),
            (self.stop_gateway, 1),
        ]
        if can_fill:
            self._acts.append((self.fill, 1))
        self.done = {}

    def next(self):
        """Performs one. All draws of an act are made before it, so that what it meets does not change the next."""
        acts, weights = zip(*self._acts)
        act = self._rng.choices(acts, weights)[0]
        # Never interrupted: an act leaves the job whole.
        act(self._rng.random, self._rng.randrange(len(IDENTITIES)))
        self.done[act.__name__] = self.done.get(act.__name__, 0) + 1
        time.sleep(self._rng.uniform(0.02, 0.3))
        self._job.mind_agent()
        self._job.living()

    def kill_one(self, _draw, index):
        self._job.kill_worker(index)

    def kill_in_state(self, draw, index):
        """In the middle of its birth, growing, registering, of the ends of threads, of a fork, or of counting without a pause."""
        state = _STATES[int(draw() * len(_STATES))]
        if state in (books.BORN, books.GROWING):
            self._job.kill_worker(index)  # only a new one is in these
        self._job.kill_worker_at(index, state, after=draw() * 0.0004)

    def kill_newborn(self, draw, index):
        """Two in a row, the second while it starts."""
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

    def kill_worker_then_agent(self, draw, index):
        """The agent is about to take over what a dead worker left, or just has."""
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
        """Shorter than a push may take: a gateway that takes a push after its sender gave up is not the agent's to mend."""
        seconds = draw() * 0.8
        self._job.gateway.signal(signal.SIGSTOP)
        self._job.kill_worker(index)
        time.sleep(seconds)
        self._job.gateway.signal(signal.SIGCONT)

    def fill(self, draw, index):
        """The directory's filesystem is full for a second, in which a worker and the agent are killed."""
        leave, pause = int(draw() * 3) * 16384, 0.2 + draw() * 0.6
        with self._job.full_directory(leave):
            time.sleep(pause)
            self._job.kill_worker(index)
            time.sleep(pause / 2)
            self._job.kill_agent()
            self._job.start_agent(launch=False)
            time.sleep(pause)
            self._job.mind_agent()
        # What was born meanwhile may have dropped some; the fewer such counts there are, the closer the comparison.
        self._job.kill_worker(index)
        self._job.mind_agent()
