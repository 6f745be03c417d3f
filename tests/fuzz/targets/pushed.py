"""Bodies of push requests: what is accepted is what was sent, to the last digit."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.json_rows import ROWS, SCHEMA, judge, said
from tests.fuzz.target import Target

from headwater.push.rows import LINES, batches
from headwater.serving.refused import Refused


class PushedBodies(Target):
    name = "push"
    refusals = (Refused,)
    subjects = ("the body", "row ")

    def whole(self) -> tuple[str, bytes]:
        return "application/json", json.dumps(ROWS).encode()

    def mutant(self, random: Random) -> tuple[str, bytes]:
        is_lines = random.random() < 0.5
        rows: Any = [random.choice(ROWS) for _ in range(random.randint(1, 4))]
        if random.random() < 0.5:
            at = random.randrange(len(rows))
            texts = [json.dumps(row, ensure_ascii=False) for row in rows]
            texts[at] = mutated_json(random, rows[at], ROWS)
            text = "\n".join(texts) if is_lines else f"[{', '.join(texts)}]"
            return (LINES[0] if is_lines else "application/json"), text.encode(errors="surrogatepass")
        texts = [json.dumps(row, ensure_ascii=random.random() < 0.5) for row in rows]
        body = ("\n".join(texts) if is_lines else f"[{', '.join(texts)}]").encode()
        return (LINES[0] if is_lines else "application/json"), mutated(random, body)

    def read(self, artefact: tuple[str, bytes]) -> None:
        kind, body = artefact
        found = [row for batch in batches(body, kind, SCHEMA) for row in batch.to_pylist()]
        if kind in LINES:
            given = [row for line in body.splitlines() if line.strip() for row in said(line.decode())]
        else:
            given = said(body.decode())
        judge(found, given, "the body")
