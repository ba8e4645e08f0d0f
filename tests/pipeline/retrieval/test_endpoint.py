"""Embeddings endpoints, against a server on this machine that speaks OpenAI's protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from pipeline.errors import ModelError
from pipeline.retrieval.dense import encode_texts
from pipeline.retrieval.encoder import load_encoder
from pipeline.retrieval.models import ModelSpec, resolve_model
from pipeline.retrieval.probe import probe_model

pytest.importorskip("litellm", reason="litellm is not installed")

Answer = Callable[[str, int], list[object]]


def honest(text: str, place: int) -> list[object]:
    return [float(len(text)), 3.0, float(text.count("e")), -1.0]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[..., ModelSpec]]:
    servers = []
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")

    def start(answer: Answer, status: int = 200) -> ModelSpec:
        class Handler(BaseHTTPRequestHandler):
            calls = 0

            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
                Handler.calls += 1
                data = [{"object": "embedding", "index": i, "embedding": answer(t, i)} for i, t in enumerate(texts)]
                body = {
                    "object": "list",
                    "data": data[::-1],
                    "model": "m",
                    "usage": {"prompt_tokens": 1, "total_tokens": 1},
                }
                content = json.dumps(body if status == 200 else {"error": {"message": "no such key"}}).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return resolve_model("litellm/openai/m", endpoint_url=f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_embeddings_come_in_the_order_of_the_texts_and_normalised(serve: Callable[..., ModelSpec]) -> None:
    model = serve(honest)
    contract = model.contract()
    texts = [contract.document(text) for text in ("three", "", "ee")]
    found = encode_texts(texts, contract, lambda: load_encoder(model, contract))
    expected = np.array([honest(text, 0) for text in ("three", " ", "ee")])
    np.testing.assert_allclose(found.embeddings, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)
    assert found.devices == ("endpoint",)
    assert probe_model(model).dimension == 4


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda text, place: [float("nan"), 1.0], "NaN or infinite"),
        (lambda text, place: [0.0, 0.0], "embedding of zeros"),
        (lambda text, place: [1.0] * (2 + place % 2), "not rows of numbers of equal length"),
        (lambda text, place: [1.0, 2.0], "same embedding for different texts"),
    ],
)
def test_answers_that_cannot_be_used(serve: Callable[..., ModelSpec], answer: Answer, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        probe_model(serve(answer))


def test_an_endpoint_that_changes_its_dimension_or_its_mind(serve: Callable[..., ModelSpec]) -> None:
    calls = iter(range(100))
    with pytest.raises(ModelError, match="3 dimensions where it gave 2 before"):
        probe_model(serve(lambda text, place: [1.0 + len(text)] * (2 if next(calls) < 3 else 3)))
    turns = iter(range(100))
    with pytest.raises(ModelError, match="not deterministic"):
        probe_model(serve(lambda text, place: [1.0, float(len(text)), 90.0 * (next(turns) // 3)]))


def test_an_endpoint_that_refuses(serve: Callable[..., ModelSpec]) -> None:
    with pytest.raises(ModelError, match=r"did not answer.*AuthenticationError.*Check its name"):
        probe_model(serve(honest, status=401))
