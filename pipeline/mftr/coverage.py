"""How much of the four fields is filled, and how much of one standardization another recovers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.mftr.schema import Field, StandardizedTool


@dataclass(frozen=True)
class FieldCoverage:
    """Counts over the tools of one corpus.

    Attributes:
        tools: how many there are.
        filled: field → tools in which it is not empty.
        parameters: of all tools together; ``required`` of them are required.
        examples: of all tools together.
    """

    tools: int
    filled: Mapping[Field, int]
    parameters: int
    required: int
    examples: int

    def share(self, field: Field) -> float:
        """The share of tools in which the field is not empty; 0 without tools."""
        return self.filled[field] / self.tools if self.tools else 0.0


def field_coverage(tools: Iterable[StandardizedTool]) -> FieldCoverage:
    """Count what is filled."""
    filled = dict.fromkeys(Field, 0)
    count = parameters = required = examples = 0
    for tool in tools:
        count += 1
        for field, content in zip(
            Field, (tool.description, tool.parameters, tool.response, tool.examples), strict=True
        ):
            filled[field] += bool(content)
        parameters += len(tool.parameters)
        required += sum(parameter.required for parameter in tool.parameters)
        examples += len(tool.examples)
    return FieldCoverage(count, filled, parameters, required, examples)


@dataclass(frozen=True)
class ParameterRecovery:
    """Parameters of a reference that another standardization has too, by tool and name.

    Attributes:
        reference: parameters of the reference.
        recovered: those that the other has too; ``same_flag`` of them agree on being required.
        extra: parameters of the other that the reference lacks.
        optional: optional parameters of the reference; ``optional_found`` of them are optional in the other.
    """

    reference: int
    recovered: int
    same_flag: int
    extra: int
    optional: int
    optional_found: int


def parameter_recovery(tools: Iterable[StandardizedTool], reference: Iterable[StandardizedTool]) -> ParameterRecovery:
    """Compare the parameters of the tools that a reference has, by tool id and parameter name."""
    ours = {tool.tool_id: {parameter.name: parameter.required for parameter in tool.parameters} for tool in tools}
    total = recovered = same = extra = optional = found = 0
    for tool in reference:
        flags = ours.get(tool.tool_id, {})
        wanted = {parameter.name: parameter.required for parameter in tool.parameters}
        total += len(wanted)
        recovered += len(wanted.keys() & flags.keys())
        same += sum(flags.get(name) is required for name, required in wanted.items())
        extra += len(flags.keys() - wanted.keys())
        optional += sum(not required for required in wanted.values())
        found += sum(not required and flags.get(name) is False for name, required in wanted.items())
    return ParameterRecovery(total, recovered, same, extra, optional, found)
