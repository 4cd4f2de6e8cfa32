"""The model, a classifier of points in two half-moons, and the training step.

A step's batch is divided into PARTS, for any number of workers. Each worker takes its share, and the parts' gradients are
averaged in their order. So the weights after a step are the same to the last bit, for any workers that took part.
"""

import contextlib
import json
import math
import os
import random

from phases import phase

PARTS, POINTS, RATE = 8, 64, 0.3
FEATURES = [(i, j) for i in range(5) for j in range(5 - i)]  # powers of x and y


class MyState:
    """Thread safety: none; it belongs to the train loop."""

    def __init__(self, steps):
        """`steps`: the length of the whole training."""
        self.steps, self.step, self.loss, self.group = steps, 0, math.nan, None
        self.weights = [0.0] * len(FEATURES)

    def capture_snapshot(self):
        """The data that is needed to return to this step."""
        return {"step": self.step, "weights": list(self.weights)}

    def apply_snapshot(self, snapshot):
        self.step, self.weights = snapshot["step"], snapshot["weights"]

    def sync(self, group):
        """Called by all members of a round together: all take the state of the most advanced one."""
        self.group = group
        snapshots = group.gather(self.capture_snapshot())
        self.apply_snapshot(group.broadcast(snapshots and max(snapshots, key=lambda snapshot: snapshot["step"])))

    def save(self, path):
        """Writes a checkpoint. A concurrent reader finds the previous one, or none."""
        with open(f"{path}.new", "w") as stream:
            json.dump(self.capture_snapshot(), stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(f"{path}.new", path)

    def load(self, path):
        """Loads the checkpoint, if it exists and is more advanced."""
        with contextlib.suppress(FileNotFoundError), open(path) as stream:
            self.apply_snapshot(max(json.load(stream), self.capture_snapshot(), key=lambda snapshot: snapshot["step"]))


def train_step(state):
    """Makes one step of gradient descent, together with the other members. Raises StopIteration at the end of the data."""
    if state.step == state.steps:
        raise StopIteration
    with phase("data"):
        batches = {part: list(points(state.step, part)) for part in parts_of(state.group)}
    with phase("forward"):
        outputs = {part: [predict(state.weights, features(x, y)) for x, y, _ in batch] for part, batch in batches.items()}
    with phase("backward"):
        gradients = {part: gradient(batch, outputs[part]) for part, batch in batches.items()}
    with phase("sync"):
        *slopes, state.loss = state.group.average(gradients)
    with phase("optimizer"):
        state.weights = [weight - RATE * slope for weight, slope in zip(state.weights, slopes)]
    state.step += 1


def parts_of(group):
    """The parts of a step's batch that this member takes."""
    return range(group.rank, PARTS, group.world_size)


def samples_of(group):
    """The points in them."""
    return POINTS * len(parts_of(group))


def points(step, part):
    """(x, y, label) of one part of a step's batch, with noise."""
    draw = random.Random(f"{step}/{part}")
    for _ in range(POINTS):
        label, angle = draw.randrange(2), draw.uniform(0, math.pi)
        x, y = (math.cos(angle), math.sin(angle)) if label else (1 - math.cos(angle), 0.5 - math.sin(angle))
        yield x + draw.gauss(0, 0.1), y + draw.gauss(0, 0.1), label


def features(x, y):
    return [x**i * y**j for i, j in FEATURES]


def predict(weights, values):
    """The score of a point: above 0, it is in the upper half-moon."""
    return sum(map(float.__mul__, weights, values))


def gradient(batch, outputs):
    """The gradient of the batch's mean cross-entropy, followed by the cross-entropy itself. `outputs`: the points' scores."""
    total = [0.0] * (len(FEATURES) + 1)
    for (x, y, label), out in zip(batch, outputs):
        error = 1 / (1 + math.exp(-out)) - label
        loss = max(out, 0) - out * label + math.log1p(math.exp(-abs(out)))
        total = [a + b for a, b in zip(total, [*(error * feature for feature in features(x, y)), loss])]
    return [value / POINTS for value in total]
