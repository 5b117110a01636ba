"""Every number, text and list of a specification has an upper bound, and what is beyond it is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from ferret_core import catalog
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec

Schema = dict[str, Any]

KINDS: tuple[catalog.Kind, ...] = ("algorithms", "datasets", "partitions", "models")
SCHEMAS = {
    "specification": ExperimentSpec.model_json_schema(),
    **{f"{kind}.{entry.name}": entry.options for kind in KINDS for entry in catalog.entries(kind)},
}
ONE_SIDED = {
    "integer": ({"maximum", "exclusiveMaximum"}, {"minimum", "exclusiveMinimum"}),
    "number": ({"maximum", "exclusiveMaximum"}, {"minimum", "exclusiveMinimum"}),
    "string": ({"maxLength", "enum", "const"},),
    "array": ({"maxItems"},),
}
"""For each JSON type, sets of keywords of which it must have one each."""


def unbounded(schema: Schema, root: Schema, place: str) -> Iterator[str]:
    """The places in ``schema`` that may hold any amount."""
    if reference := schema.get("$ref"):
        yield from unbounded(root["$defs"][reference.rsplit("/", 1)[1]], root, place)
        return
    for choice in cast(list[Schema], schema.get("anyOf", [])):
        yield from unbounded(choice, root, place)
    for wanted in ONE_SIDED.get(schema.get("type", ""), ()):
        if not (wanted | {"enum", "const"}) & schema.keys():
            yield f"{place}: {schema['type']} without {min(wanted)}"
    for name, inner in cast(Schema, schema.get("properties", {})).items():
        yield from unbounded(inner, root, f"{place}.{name}")
    for inner in (schema.get("items"), schema.get("propertyNames"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from unbounded(cast(Schema, inner), root, f"{place}[]")
    if isinstance(schema.get("additionalProperties"), dict) and "maxProperties" not in schema:
        yield f"{place}: object without maxProperties"


@pytest.mark.parametrize("name", SCHEMAS)
def test_everything_that_can_be_asked_for_has_an_upper_bound(name: str) -> None:
    assert list(unbounded(SCHEMAS[name], SCHEMAS[name], name)) == []


@pytest.mark.parametrize(
    ("section", "options", "field", "value", "limit"),
    [
        ("algorithm", {"local": {"batch_size": 10**12}}, "algorithm.local.batch_size", 10**12, "65536"),
        ("algorithm", {"local": {"steps": 10**400}}, "algorithm.local.steps", "a number of 1329 bits", "1000000"),
        ("dataset", {"train_limit": 10**12}, "dataset.train_limit", 10**12, "1000000000"),
        ("partition", {"name": "shards", "shards_per_client": 10**10}, "partition.shards_per_client", 10**10, "10000"),
    ],
)
def test_what_is_beyond_a_bound_is_refused_with_field_value_and_limit(
    toy_spec: Callable[..., ExperimentSpec], section: str, options: dict[str, Any], field: str, value: Any, limit: str
) -> None:
    spec = toy_spec()
    given = getattr(spec, section).model_dump()
    spec = ExperimentSpec.model_validate({**spec.model_dump(), section: given | options})
    with pytest.raises(FerretError) as caught:
        catalog.resolve(spec)
    assert caught.value.code == "spec.invalid"
    (error,) = caught.value.errors
    assert (error.field, error.value) == (field, value)
    assert limit in error.message
