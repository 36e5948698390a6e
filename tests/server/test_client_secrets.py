from __future__ import annotations

import pytest

from paceline.server import client_secrets
from paceline.server.api_errors import ApiError
from paceline.server.client_secrets import Secrets
from paceline.server.limits import Allowance, Holder


class Clock:
    now = 1_000_000.5

    def __call__(self) -> float:
        return self.now


def caller(name: str) -> Holder:
    return Holder(name, name, Allowance())


def test_a_secret_lives_for_its_seconds() -> None:
    clock = Clock()
    secrets = Secrets(clock)
    anna = caller("anna")
    value, expires_at = secrets.make(anna, 10, {"instructions": "Be brief."})
    assert value.startswith("ek_")
    assert expires_at == 1_000_010
    secret = secrets.find(value)
    assert secret is not None
    assert (secret.caller, secret.session) == (anna, {"instructions": "Be brief."})
    assert secrets.find(value[:-1]) is None
    clock.now = 1_000_010.0
    assert secrets.find(value) is None
    secrets.make(anna, 10, {})
    assert len(secrets) == 1  # what has expired is forgotten


def test_a_secret_ends_with_its_key() -> None:
    secrets = Secrets(Clock())
    anna = caller("anna")
    value, _ = secrets.make(anna, 600, {})
    anna.removed = True
    assert secrets.find(value) is None


def test_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_secrets, "_PER_CALLER", 3)
    monkeypatch.setattr(client_secrets, "_IN_ALL", 4)
    clock = Clock()
    secrets = Secrets(clock)
    anna, bert = caller("anna"), caller("bert")
    for seconds in (50, 20, 30):
        secrets.make(anna, seconds, {})
    with pytest.raises(ApiError) as caught:
        secrets.make(anna, 10, {})
    assert (caught.value.status, caught.value.code) == (429, "too_many_client_secrets")
    assert caught.value.headers["retry-after"] == "20"
    secrets.make(bert, 10, {})
    with pytest.raises(ApiError) as caught:
        secrets.make(bert, 10, {})
    assert caught.value.headers["retry-after"] == "10"
    clock.now += 20
    secrets.make(anna, 10, {})
