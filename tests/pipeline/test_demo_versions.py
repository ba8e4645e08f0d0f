"""A stored benchmark version never changes, so the shipped demos must not change under the same version."""

from __future__ import annotations

import pytest

from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.jobs.first_start import demo_folder

#: Content of every demo version that was ever shipped; whoever changes a demo adds a version here.
SHIPPED = {
    "demo-tools@1": "4ac5e45f5205104b3a11e901f7b4d26c1a8be8020f301032dc3d5cbe732cf721",
    "demo-skills@1": "68321aea634eba528c8cc62fd50eb96a2df148afcfec5de91940d2c7a1ddd330",
}


@pytest.mark.parametrize("name", ["tools", "skills"])
def test_demo_content_belongs_to_its_version(name: str) -> None:
    benchmark = read_benchmark_folder(demo_folder(name))
    version = f"{benchmark.info.slug}@{benchmark.info.version}"
    assert benchmark.content_hash == SHIPPED.get(version), f"{version} changed: raise its version in benchmark.toml"
