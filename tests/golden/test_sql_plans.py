"""The plan, the state and the changes of a query for each construct of SQL, as texts that must not change by accident.

`sql/constructs.yaml` has the queries. After a change on purpose, write `sql/plans.txt` anew with
`HEADWATER_WRITE_GOLDEN=1 pytest tests/golden` and read the difference in the commit.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import yaml
from tests.golden.test_golden import matches_golden

import headwater as hw

CONSTRUCTS = yaml.safe_load((Path(__file__).parent / "sql/constructs.yaml").read_text())
RANKED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY ts DESC) AS r FROM {}"


def env() -> hw.Environment:
    made = hw.Environment("constructs", engine="local", parallelism=4)
    for name in "ab":
        made.execute_sql(f"""
            CREATE TABLE {name} (id BIGINT, k STRING, n INT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts)
            WITH ('connector' = 'generator')
        """)
    made.create_view("p", made.sql("SELECT id, k, n, PROCTIME() AS pt FROM a"))
    made.create_view("u", made.sql(f"SELECT id, k, n FROM ({RANKED.format('id', 'a')}) WHERE r = 1"))
    made.create_view("v", made.sql(f"SELECT k, n, ts FROM ({RANKED.format('k', 'b')}) WHERE r = 1"))
    made.create_table("t", pa.table({"k": ["a"], "city": ["Rome"], "least": pa.array([0], pa.int32())}))
    return made


def test_the_plans_of_all_constructs() -> None:
    made, texts = env(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name, query in CONSTRUCTS.items():
            table = made.sql(query)
            told = [table.explain("plan"), table.explain("state"), table.explain("changelog")]
            texts.append("\n\n".join([f"# {name}\n{query}", *told]))
    matches_golden("sql/plans.txt", "\n\n\n".join(texts))
