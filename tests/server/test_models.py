from __future__ import annotations

from service import MODEL_ID
from starlette.testclient import TestClient


def test_the_list_and_the_one_in_it_agree(client: TestClient) -> None:
    (model,) = client.get("/v1/models").json()["data"]
    assert (model["id"], model["object"], model["max_model_len"]) == (MODEL_ID, "model", 256)
    assert "none" in model["speculators"]
    assert client.get(f"/v1/models/{MODEL_ID}").json() == model
    assert client.get("/v1/models/default").json() == model


def test_another_model_is_a_404(client: TestClient) -> None:
    answer = client.get("/v1/models/some/other")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
