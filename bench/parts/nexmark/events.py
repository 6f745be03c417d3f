"""Events of an auction site, after Nexmark's published distributions: of 50, one is a person, three are auctions, 46 bids.

The same number of events is the same data on any machine. All of it is made by columns.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PERSONS, AUCTIONS, BIDS = 1, 3, 46
OF_ALL: Final = PERSONS + AUCTIONS + BIDS
FIRST_ID: Final = 1000
FIRST_CATEGORY: Final = 10
CATEGORIES: Final = 5
BASE_MS: Final = 1_700_000_000_000
EVENTS_PER_S: Final = 10_000
HOT: Final = 100
"""Of so many persons, or auctions, one is hot at a time."""
IN_FLIGHT, ACTIVE_PEOPLE, LEAD = 100, 1000, 10
CHANNELS: Final = 10_000
STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES: Final = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
FIRST_NAMES: Final = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES: Final = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
HOT_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")

Ints = npt.NDArray[np.int64]


class Events:
    """The first `count` events, as tables of persons, auctions and bids in the order of time."""

    def __init__(self, count: int, *, seed: int = 0) -> None:
        self._chance = np.random.default_rng(seed)
        numbers = np.arange(count)
        kinds = numbers % OF_ALL
        self.person = self._persons(numbers[kinds < PERSONS])
        self.auction = self._auctions(numbers[(kinds >= PERSONS) & (kinds < PERSONS + AUCTIONS)])
        self.bid = self._bids(numbers[kinds >= PERSONS + AUCTIONS])

    def _persons(self, numbers: Ints) -> pa.Table:
        count = len(numbers)
        names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
        cards = self._chance.integers(0, 10_000, (4, count)).astype(str)
        return pa.table(
            {
                "id": last_person(numbers) + FIRST_ID,
                "name": self._chosen(names, count),
                "emailAddress": self._texts(count, 18),
                "creditCard": [" ".join(parts) for parts in zip(*cards, strict=True)],
                "city": self._chosen(CITIES, count),
                "state": self._chosen(STATES, count),
                "dateTime": moments(times(numbers)),
                "extra": self._texts(count, 100),
            }
        )

    def _auctions(self, numbers: Ints) -> pa.Table:
        count = len(numbers)
        initial, at = self._prices(count), times(numbers)
        horizon = IN_FLIGHT * OF_ALL // AUCTIONS * 1000 // EVENTS_PER_S
        return pa.table(
            {
                "id": last_auction(numbers) + FIRST_ID,
                "itemName": self._texts(count, 20),
                "description": self._texts(count, 100),
                "initialBid": initial,
                "reserve": initial + self._prices(count),
                "dateTime": moments(at),
                "expires": moments(at + 1 + self._chance.integers(0, max(1, 2 * horizon), count)),
                "seller": self._hot(last_person(numbers) // HOT * HOT, self._person(numbers), 4) + FIRST_ID,
                "category": FIRST_CATEGORY + self._chance.integers(0, CATEGORIES, count),
                "extra": self._texts(count, 300),
            }
        )

    def _bids(self, numbers: Ints) -> pa.Table:
        count = len(numbers)
        newest = last_auction(numbers)
        least = np.maximum(newest - IN_FLIGHT, 0)
        any_auction = least + (self._chance.random(count) * (newest - least + 1 + LEAD)).astype(np.int64)
        channels = np.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))])
        urls = np.array([self._url(number) for number in range(len(channels))])
        is_hot = self._chance.random(count) < 0.5
        channel = np.where(
            is_hot,
            self._chance.integers(0, len(HOT_CHANNELS), count),
            len(HOT_CHANNELS) + self._chance.integers(0, CHANNELS, count),
        )
        return pa.table(
            {
                "auction": self._hot(newest // HOT * HOT, any_auction, 2) + FIRST_ID,
                "bidder": self._hot(last_person(numbers) // HOT * HOT + 1, self._person(numbers), 4) + FIRST_ID,
                "price": self._prices(count),
                "channel": channels[channel],
                "url": urls[channel],
                "dateTime": moments(times(numbers)),
                "extra": self._texts(count, 40),
            }
        )

    def _person(self, numbers: Ints) -> Ints:
        """Someone of those who are active, or who is about to come."""
        known = last_person(numbers) + 1
        active = np.minimum(known, ACTIVE_PEOPLE)
        return known - active + (self._chance.random(len(numbers)) * (active + LEAD)).astype(np.int64)

    def _hot(self, hot: Ints, others: Ints, ratio: int) -> Ints:
        """The hot one, but once in `ratio` times."""
        return np.where(self._chance.integers(0, ratio, len(hot)) > 0, hot, others)

    def _prices(self, count: int) -> Ints:
        return np.round(10 ** (self._chance.random(count) * 6) * 100).astype(np.int64)

    def _chosen(self, values: Any, count: int) -> npt.NDArray[Any]:
        chosen: npt.NDArray[Any] = np.array(values)[self._chance.integers(0, len(values), count)]
        return chosen

    def _texts(self, count: int, length: int) -> npt.NDArray[Any]:
        """Texts of small letters, of about the length, of a thousand different ones."""
        letters = self._chance.integers(97, 123, (1000, length), dtype=np.uint8)
        return self._chosen([bytes(row).decode() for row in letters], count)

    def _url(self, number: int) -> str:
        parts = "/".join(bytes(row).decode() for row in self._chance.integers(97, 123, (3, 5), dtype=np.uint8))
        channel = f"&channel_id={number}" if number % 10 else ""
        return f"https://www.nexmark.com/{parts}/item.htm?query=1{channel}"


def last_person(numbers: Ints) -> Ints:
    """The newest person when an event is made."""
    return numbers // OF_ALL * PERSONS + np.minimum(numbers % OF_ALL, PERSONS - 1)


def last_auction(numbers: Ints) -> Ints:
    """The newest auction when an event is made."""
    epoch, offset = numbers // OF_ALL, numbers % OF_ALL
    place = np.minimum(np.where(offset < PERSONS, AUCTIONS - 1, offset - PERSONS), AUCTIONS - 1)
    return np.maximum(np.where(offset < PERSONS, epoch - 1, epoch) * AUCTIONS + place, 0)


def times(numbers: Ints) -> Ints:
    """When events are, in milliseconds."""
    return BASE_MS + numbers * 1000 // EVENTS_PER_S


def moments(milliseconds: Ints) -> pa.Array:
    """Milliseconds as timestamps without a time zone."""
    return pa.array(milliseconds * 1000).cast(pa.timestamp("us"))
