"""Draws mutations by a seed.

Each mutation gets a random number from a hash of the seed and of its own text, and they are taken in the order of these numbers. So an edit
of one source leaves the drawing of the others as it was. The numbers are weighted (Efraimidis and Spirakis, "Weighted random sampling with
a reservoir", 2006): an operator is drawn as often as operators.py says, whatever the number of its places.
"""

import collections
import hashlib
import math

from operators import OPERATORS, mutations


def _uniform(seed, mutation):
    digest = hashlib.sha256(f"{seed} {mutation.key}".encode()).digest()
    return (int.from_bytes(digest[:7]) + 0.5) / 2**56


def all_mutations(sources):
    """All mutations of the sources, {path: text}."""
    return [mutation for path in sorted(sources) for mutation in mutations(path, sources[path])]


def draw(found, seed):
    """The mutations in the order in which this seed draws them."""
    places = collections.Counter(mutation.operator for mutation in found)

    def order(mutation):
        weight = OPERATORS[mutation.operator][0] / places[mutation.operator]
        return -math.log(_uniform(seed, mutation)) / weight, mutation.key

    return sorted(found, key=order)
