"""A worker that counts until its input ends, and then prints its count."""

import select
import sys

import persia_metrics

steps = persia_metrics.Counter("packages", "steps_total", "Steps of this process.")
count = 0
while not select.select([sys.stdin], [], [], 0.001)[0]:
    steps.inc()
    count += 1
print(count)
