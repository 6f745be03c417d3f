"""Online learning: a model that learns from one stream and scores another, while both go on.

    python examples/online_learning.py                  # in this process
    python examples/online_learning.py --engine spark   # the same job on Spark

Shows: two connected streams that share state. A logistic regression for each shop has its weights in state, so they survive
failures like any other state; each labelled visit moves them a step, each new visit is scored with what they are then.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import headwater as hw

STEP = 0.5
"""How far one example moves the weights."""
LABELLED = "shop string, ts timestamp, minutes double, items double, bought boolean"
VISIT = "shop string, ts timestamp, minutes double, items double"
SCORE = "shop string, items double, ts timestamp, seen long, probability double"


class LogisticRegression(hw.CoProcessFunction):
    """Learns on the left and scores on the right."""

    weights = hw.ListState("double")
    seen = hw.ValueState("long", default=0)

    def process_left(self, example: Any, ctx: hw.Context) -> None:
        """Move the weights down the gradient of the loss at one example."""
        features = features_of(example)
        weights = self.weights.get() or [0.0] * len(features)
        error = probability(weights, features) - float(example.bought)
        self.weights.update([w - STEP * error * x for w, x in zip(weights, features, strict=True)])
        self.seen.set(self.seen.get() + 1)

    def process_right(self, visit: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        """Score a visit with the weights as they are now."""
        features = features_of(visit)
        weights = self.weights.get() or [0.0] * len(features)
        score = round(probability(weights, features), 3)
        yield {"shop": visit.shop, "items": visit.items, "ts": visit.ts, "seen": self.seen.get(), "probability": score}


def features_of(visit: Any) -> list[float]:
    """What the model knows about a visit: one, for what is always there, then its measures, each about as large."""
    return [1.0, visit.minutes / 10, visit.items]


def probability(weights: list[float], features: list[float]) -> float:
    """The probability that a visitor buys."""
    return 1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, features, strict=True))))


def at(second: float) -> datetime:
    """A time on the day of the example."""
    return datetime(2026, 1, 1, 12, 0, tzinfo=UTC) + timedelta(seconds=second)


def labelled_visits(count: int) -> list[tuple[Any, ...]]:
    """In the book shop those buy who take their time; in the tool shop those who take something."""
    rows = []
    for second in range(count):
        minutes, items = float(second * 7 % 20), float(second * 3 % 4)
        rows.append(("books", at(second), minutes, items, minutes > 10))
        rows.append(("tools", at(second), minutes, items, items >= 2))
    return rows


def visits(every: int, count: int) -> list[tuple[Any, ...]]:
    """The same two visitors come again and again: one with time and without a thing, one the other way round."""
    return [
        (shop, at(second + 0.5), minutes, items)
        for second in range(0, count, every)
        for shop in ("books", "tools")
        for minutes, items in ((18.0, 0.0), (2.0, 3.0))
    ]


def main(engine: str, *, examples: int = 300, parallelism: int = 2) -> list[Any]:
    """Run the job; gives the scores by shop and visitor, in the order of time."""
    env = hw.Environment("online_learning", engine=engine, parallelism=parallelism)
    by_ts = hw.Watermarks.monotonous("ts")
    learned = env.from_rows(labelled_visits(examples), LABELLED, by_ts, name="labelled").key_by("shop")
    scored = env.from_rows(visits(examples // 3 - 1, examples), VISIT, by_ts, name="visits").key_by("shop")
    scores = hw.connectors.memory()
    learned.connect(scored).process(LogisticRegression(), SCORE).sink(scores)
    env.run()
    return sorted(scores.rows)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    for score in main(options.parse_args().engine):
        visitor = f"a visitor with {score.items:.0f} things"
        print(f"{score.shop} after {score.seen:3} examples: {visitor} buys with probability {score.probability:.3f}")
