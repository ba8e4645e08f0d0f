"""Parameters of requests: declared once as pydantic models, for checking and for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dashboard.api.problems import ApiProblem

#: A name, id or text of one line; control characters are in no id, and PostgreSQL refuses NUL.
Word = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+$")]
#: The same, or nothing.
Line = Annotated[str, Field(max_length=1024, pattern=r"^[^\x00-\x1f\x7f]*$")]

P = TypeVar("P", bound="Parameters")


class Parameters(BaseModel):
    """Base of all: frozen, and a name that is not declared is an error, so that a slip is not passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Formatted(Parameters):
    """With the format by name, for clients that cannot set a header."""

    format: Word | None = Field(None, description="The format, in the place of the header `Accept`.")


class Paged(Formatted):
    """A part of a longer list; the header `Link` names its neighbours."""

    limit: int = Field(100, ge=1, le=10_000, description="Rows in the answer at most.")
    offset: int = Field(0, ge=0, le=1_000_000_000, description="Rows left out before them.")


def read_parameters(model: type[P], path: Mapping[str, str], query: Iterable[tuple[str, str]]) -> P:
    """Check what a request says.

    Args:
        model: what may be said.
        path: values from the address.
        query: names and values in order; only lists may be repeated.

    Raises:
        ApiProblem: 400, with one entry a parameter that is wrong.
    """
    values: dict[str, Any] = {}
    problems: list[dict[str, str]] = []
    for name, value in query:
        field = model.model_fields.get(name)
        if field is None or name in path:
            known = ", ".join(sorted(set(model.model_fields) - set(path)))
            problems.append({"parameter": name[:100], "message": f"there is no such parameter; there are: {known}"})
        elif get_origin(field.annotation) is list:
            values.setdefault(name, []).append(value)
        elif name in values:
            problems.append({"parameter": name, "message": "given more than once"})
        else:
            values[name] = value
    if not problems:
        try:
            return model.model_validate({**values, **path})
        except ValidationError as error:
            for found in error.errors(include_url=False, include_context=False):
                where = ".".join(str(part) for part in found["loc"][:1]) or "request"
                message = found["msg"].removeprefix("Value error, ")
                problems.append({"parameter": where, "message": message[:1].lower() + message[1:]})
    said = "; ".join(f"{problem['parameter']}: {problem['message']}" for problem in problems[:5])
    raise ApiProblem(400, said, more={"problems": problems[:20]})
