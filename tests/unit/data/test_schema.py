from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.data.schema import Schema, parse_type, type_ddl
from headwater.errors import SchemaError

SIMPLE = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar(10)": pa.string(),
    "char(3)": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "interval": pa.duration("us"),
    "interval day to second": pa.duration("us"),
    "interval hour": pa.duration("us"),
    "void": pa.null(),
    "decimal": pa.decimal128(10, 0),
    "decimal(5)": pa.decimal128(5, 0),
    "decimal(38,18)": pa.decimal128(38, 18),
    "dec(4, 2)": pa.decimal128(4, 2),
    "numeric(4,4)": pa.decimal128(4, 4),
}


@pytest.mark.parametrize("ddl", SIMPLE)
def test_every_simple_type_is_read_in_any_case(ddl: str) -> None:
    assert parse_type(ddl) == SIMPLE[ddl]
    assert parse_type(ddl.upper()) == SIMPLE[ddl]


def test_nested_types_are_read() -> None:
    ddl = "map<string,array<struct<a:int,`b c`:map<bigint,decimal(10,2)>>>>"
    inner = pa.struct([("a", pa.int32()), ("b c", pa.map_(pa.int64(), pa.decimal128(10, 2)))])
    assert parse_type(ddl) == pa.map_(pa.string(), pa.list_(inner))
    assert type_ddl(parse_type(ddl)) == ddl


def test_fields_may_have_colons_comments_and_quoted_names() -> None:
    schema = Schema.of("a: int not null comment 'its', `b``c d` string COMMENT 'x', _e long")
    assert schema.names == ["a", "b`c d", "_e"]
    assert not schema.field("a").nullable
    assert schema.field("_e").nullable
    assert schema.ddl() == "a int not null, `b``c d` string, _e bigint"


simple_ddl = st.sampled_from(sorted({type_ddl(dtype) for dtype in SIMPLE.values()}))
key_ddl = simple_ddl.filter(lambda ddl: ddl != "void")
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=4)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    field = st.tuples(names, inner, st.sampled_from(["", " not null"])).map(
        lambda f: f if f[1] != "void" else (f[0], f[1], "")
    )
    fields = st.lists(field, min_size=1, max_size=3, unique_by=lambda f: f[0])
    return st.one_of(
        st.builds("array<{}>".format, inner),
        st.builds("map<{},{}>".format, key_ddl, inner),
        fields.map(lambda fs: "struct<" + ",".join(f"{quoted(n)}:{t}{null}" for n, t, null in fs) + ">"),
    )


@examples(100)
@given(st.recursive(simple_ddl, nested, max_leaves=6))
def test_a_type_written_as_ddl_reads_back_as_itself(ddl: str) -> None:
    dtype = parse_type(ddl)
    again = parse_type(type_ddl(dtype))
    assert again == dtype
    assert type_ddl(again) == type_ddl(dtype)


@pytest.mark.parametrize(
    ("ddl", "problem", "at"),
    [
        ("a", "expected a type, found 'the end'", 1),
        ("a int b int", "did not expect 'b'", 6),
        ("a int,, b int", "expected a field name, found ','", 6),
        ("1 int", "expected a field name, found '1'", 0),
        ("a   )", r"expected a type, found '\)'", 4),
        ("a array<int", "expected '>', found 'the end'", 11),
        ("a array int", "expected '<', found 'int'", 8),
        ("a map<string>", "expected ',', found '>'", 12),
        ("a struct<b:int", "expected '>', found 'the end'", 14),
        ("a decimal(39,0)", r"decimal\(39,0\) is out of range", 2),
        ("a decimal(3,4)", r"decimal\(3,4\) is out of range", 2),
        ("a decimal(x)", "expected a precision, found 'x'", 10),
        ("a varchar", r"expected '\(', found 'the end'", 9),
        ("a int not nil", "expected 'null', found 'nil'", 10),
        ("a int comment x", "expected a comment in quotes, found 'x'", 14),
        ("a interval year to month", "year-month intervals", 2),
        ("a int, b strin", "type 'strin' is not supported", 9),
        ("a void not null", "a void field holds nothing but nulls", 7),
        ("a map<void,int>", "a map's key cannot be void", 6),
        ("a map<array<int>,int>", "a map's key cannot be array<int>", 6),
        ("a map<struct<x:array<int>>,int>", "a map's key cannot be struct<x:array<int>>", 6),
        ("a array<datetime>", "type 'datetime' is not supported", 8),
    ],
)
def test_an_error_points_at_the_place(ddl: str, problem: str, at: int) -> None:
    with pytest.raises(SchemaError, match=problem) as refused:
        Schema.of(ddl)
    message = str(refused.value)
    assert f"at position {at}\n" in message
    assert message.endswith(f"  {ddl}\n  {' ' * at}^")


def test_an_unknown_type_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SchemaError, match=r"'datetime' is not supported; use one of .*bigint.*timestamp"):
        parse_type("datetime")


@pytest.mark.parametrize("empty", ["", "   ", pa.schema([])])
def test_a_schema_has_a_field(empty: object) -> None:
    with pytest.raises(SchemaError, match="at least one field"):
        Schema.of(empty)  # type: ignore[arg-type]


@pytest.mark.parametrize("twice", ["a int, a string", pa.schema([("a", pa.int32()), ("a", pa.string())])])
def test_field_names_are_unique(twice: object) -> None:
    with pytest.raises(SchemaError, match="'a' appears twice"):
        Schema.of(twice)  # type: ignore[arg-type]


@pytest.mark.parametrize("reserved", ["__ts long", pa.schema([("__ts", pa.int64())])])
def test_names_of_the_runtime_are_refused(reserved: object) -> None:
    with pytest.raises(SchemaError, match="two underscores"):
        Schema.of(reserved)  # type: ignore[arg-type]


def test_an_arrow_schema_is_taken_without_its_metadata() -> None:
    given = pa.schema([pa.field("a", pa.int64(), nullable=False)], metadata={"x": "y"})
    assert Schema.of(given).ddl() == "a bigint not null"
    assert Schema.of(given).arrow.metadata is None


@pytest.mark.parametrize(
    "dtype", [pa.uint8(), pa.timestamp("ms"), pa.large_string(), pa.timestamp("us", "Europe/Paris")]
)
def test_an_arrow_type_that_spark_lacks_is_refused(dtype: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="is not supported"):
        Schema.of(pa.schema([("a", dtype)]))


@pytest.mark.parametrize("bad", [None, 5, ["a int"], {"a": "int"}])
def test_other_things_are_no_schema(bad: object) -> None:
    with pytest.raises(SchemaError, match=f"got {type(bad).__name__}"):
        Schema.of(bad)  # type: ignore[arg-type]


def test_a_missing_field_is_answered_with_the_fields() -> None:
    with pytest.raises(SchemaError, match="no field 'c'; the fields are a, b"):
        Schema.of("a int, b int").field("c")


def test_rows_of_equal_names_are_of_one_class() -> None:
    assert Schema.of("a int, b int").row is Schema.of("a string, b long").row


def test_equal_schemas_are_equal_and_hash_alike() -> None:
    assert Schema.of("a int, b array<long>") == Schema.of("a  integer, b ARRAY<bigint>")
    assert hash(Schema.of("a int")) == hash(Schema.of("a integer"))
    assert Schema.of("a int") != Schema.of("a int not null")


def test_maps_that_are_no_dicts_are_refused_in_arrow_schemas_too() -> None:
    inner = pa.map_(pa.list_(pa.int64()), pa.int64())
    with pytest.raises(SchemaError, match="a map's key cannot be array<bigint>"):
        Schema.of(pa.schema([("a", pa.list_(inner))]))
