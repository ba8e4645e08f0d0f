from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from pipeline.errors import ModelError
from pipeline.retrieval.encoder import load_encoder
from pipeline.retrieval.models import Permissions, folder_hash, model_folder, resolve_model
from pipeline.retrieval.registry import REGISTRY_FILE, load_registry

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def folder(tmp_path: Path, **files: str) -> Path:
    made = tmp_path / "my-model"
    made.mkdir()
    for name, content in {"config_json": "{}", "modules_json": "[]", **files}.items():
        (made / name.replace("_", ".", 1)).write_text(content, encoding="utf-8")
    return made


def test_the_packaged_weights_are_those_of_the_registry() -> None:
    assert (model_folder(resolve_model("minilm")) / "model.safetensors").is_file()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    text = REGISTRY_FILE.read_text(encoding="utf-8").replace("53aa51172d14", "53aa51172d15")
    (tmp_path / "r.toml").write_text(text, encoding="utf-8")
    model = resolve_model("minilm", registry=load_registry(tmp_path / "r.toml"))
    with pytest.raises(ModelError, match=r"are not those of the registry.*53aa51172d142c.*expected 53aa51172d15"):
        model_folder(model)


def test_without_the_hub_a_missing_model_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match=r"the hub cannot be reached.*HF_HUB_OFFLINE is set.*choose minilm-l6"):
        load_encoder(resolve_model(f"owner/model@{COMMIT}"), resolve_model(f"owner/model@{COMMIT}").contract())


def test_a_folder_is_known_by_its_content(tmp_path: Path) -> None:
    made = folder(tmp_path)
    first = resolve_model(str(made)).entry
    assert (first.key, first.revision) == ("my-model", folder_hash(made))
    (made / "config.json").write_text('{"a": 1}', encoding="utf-8")
    assert resolve_model(str(made)).contract().hash != first.revision
    assert resolve_model(str(made)).entry.revision != first.revision


@pytest.mark.parametrize(
    "files",
    [
        {"modules_json": json.dumps([{"idx": 0, "name": "0", "path": "", "type": "custom.Module"}])},
        {"config_json": json.dumps({"auto_map": {"AutoModel": "modeling.Model"}})},
        {"tokenizer_config_json": json.dumps({"auto_map": {"AutoTokenizer": ["t.T", None]}})},
    ],
)
def test_code_in_a_folder_needs_permission(tmp_path: Path, files: dict[str, str]) -> None:
    name = {k: v for k, v in files.items() if k != "tokenizer_config_json"}
    made = folder(tmp_path, **name)
    if "tokenizer_config_json" in files:
        (made / "tokenizer_config.json").write_text(files["tokenizer_config_json"], encoding="utf-8")
    with pytest.raises(ModelError, match="runs Python code"):
        resolve_model(str(made))
    assert resolve_model(str(made), permissions=Permissions(remote_code=True)).entry.remote_code


def test_pickled_weights_need_permission(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="pickle"):
        resolve_model(str(made))
    (made / "model.safetensors").write_bytes(b"")
    assert not resolve_model(str(made)).entry.pickle


def test_a_folder_that_is_no_model_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"neither modules.json nor config.json"):
        resolve_model(str(tmp_path))
    made = folder(tmp_path, modules_json="not json")
    with pytest.raises(ModelError, match="cannot be read as JSON"):
        resolve_model(str(made))
    (made / "modules.json").unlink()
    model = resolve_model(str(made))
    with pytest.raises(ModelError, match="my-model cannot be loaded"):
        load_encoder(model, model.contract())
