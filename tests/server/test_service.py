from __future__ import annotations

from pathlib import Path

import pytest
from service import MODEL_ID, build_service

from paceline.engine.config import EngineConfig
from paceline.engine.errors import ModelError, RequestError
from paceline.server.service import Service


def test_what_the_protocols_see(service: Service) -> None:
    assert service.model_id == MODEL_ID
    assert service.context_length == 256
    assert {"auto", "none", "ngram"} <= set(service.speculators)
    assert service.stop_ids == set(service.tokenizer.eos_ids)
    assert service.serves(MODEL_ID)
    assert service.serves("default")
    assert not service.serves("other")


def test_health_follows_the_engine(tmp_path: Path) -> None:
    service = build_service(tmp_path)
    assert not service.healthy
    service.start()
    assert service.healthy
    service.stop()
    assert not service.healthy


def test_a_dead_engine_thread_is_not_healthy(tmp_path: Path) -> None:
    service = build_service(tmp_path)
    service.start()
    service.loop.stop()  # as if the thread had ended by itself
    assert not service.healthy


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        Service.build(tmp_path / "nothing", tmp_path, EngineConfig(), "x")
    assert "\n" not in str(caught.value)


async def test_prompts_end_with_the_opening_of_the_reply(service: Service) -> None:
    ids = await service.prompt([{"role": "user", "content": "hi"}])
    text = service.tokenizer.decode(ids, skip_special=False)
    assert text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


async def test_long_prompts_give_the_same_tokens_off_the_loop(service: Service) -> None:
    from paceline.server import service as module

    text = "a" * (module._INLINE_CHARS + 1)
    with pytest.raises(RequestError) as caught:
        await service.prompt([{"role": "user", "content": text}])
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 256 tokens" in str(caught.value)
    assert str(len(service.template.encode([{"role": "user", "content": text}]))) in str(caught.value)


async def test_a_prompt_must_leave_room_for_one_token(service: Service) -> None:
    frame = len(await service.prompt([{"role": "user", "content": ""}]))
    most = service.context_length - 1 - frame
    assert len(await service.prompt([{"role": "user", "content": "z" * most}])) == service.context_length - 1
    with pytest.raises(RequestError, match="maximum context length"):
        await service.prompt([{"role": "user", "content": "z" * (most + 1)}])
