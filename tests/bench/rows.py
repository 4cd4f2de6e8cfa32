"""The table's rows. Those whose text is bold are for users; the others guard them."""

from table import Demand, Row


def hot(name, what, call, threads=1, how="static", peer_call=None, demands=()):
    """A row of hot_calls.py. Peers in `demands` are given by their last words."""
    full = [
        Demand(kind, limit, f"static/{peer_call or call}/{threads}/{peer}" if peer else "", aim) for kind, limit, peer, aim in demands
    ]
    return Row(name, what, f"{how}/{call}/{threads}/ours", "ns", full)


CPP = "prometheus-cpp"
FETCH = "fetch_add"


def hot_rows():
    yield hot(
        "counter", "**`Counter::Increment()`**", "counter", demands=[("share of", 0.25, FETCH, 0.15), ("times", 9, CPP, 10)]
    )
    yield Row(
        "counter by",
        "**`Counter::Increment(x)`**, varying whole x",
        "static/counter by whole/1/ours",
        "ns",
        [
            Demand("share of", 0.3, "static/counter/1/fetch_add", 0.15),
            Demand("times", 8, "static/counter by whole/1/prometheus-cpp", 10),
        ],
    )
    yield hot("counter by double", "`Counter::Increment(x)`, x a double", "counter by double", demands=[("times", 3.5, CPP, None)])
