"""What one realtime client has set up and said so far, for every part of its session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from .conversation import Conversation
from .fields import Fields, JsonObject
from .ids import NewId
from .items import Item, chat_messages
from .parameters import Limits, Parameters
from .tool_use import ToolUse


@dataclass(slots=True, kw_only=True)
class SessionState:
    """pending: the user's text that is not committed yet."""

    id: str
    conversation_id: str
    model: str
    limits: Limits
    conversation: Conversation
    new_id: NewId
    instructions: str = ""
    pending: str = ""
    parameters: Parameters = field(default_factory=lambda: Parameters(priority="interactive"))

    def messages(self, instructions: str | None = None, items: Iterable[Item] | None = None) -> list[JsonObject]:
        """The conversation with its instructions, or others in their place, as a chat template takes it."""
        own = self.instructions if instructions is None else instructions
        head: list[JsonObject] = [{"role": "system", "content": own}] if own else []
        return head + chat_messages(self.conversation if items is None else items)

    def named_item(self, fields: Fields, key: str = "item_id") -> Item:
        """The item that `fields` names. Raises RequestError."""
        item_id = fields.string(key)
        if item_id is None:
            fields.refuse(key, "is missing; name the item.")
        return self.conversation.find(item_id, fields.name(key))

    def body(self) -> JsonObject:
        """The session as clients see it."""
        parameters, spec = self.parameters, self.parameters.speculation
        return {
            "id": self.id,
            "object": "realtime.session",
            "type": "realtime",
            "model": self.model,
            "output_modalities": ["text"],
            "instructions": self.instructions,
            "max_output_tokens": parameters.max_tokens or "inf",
            **_tools_body(parameters.tools),
            "temperature": parameters.sampling.temperature,
            "truncation": "disabled",
            "tracing": None,
            "seed": parameters.seed,
            "priority": parameters.priority,
            "voice": asdict(parameters.voice),
            "speculation": {"mode": spec.mode, "max_nodes": min(spec.max_nodes, self.limits.max_nodes)},
        }


def _tools_body(use: ToolUse) -> JsonObject:
    """Tools in the flat spelling of this interface."""
    return {
        "tools": [{"type": "function", **tool.body()["function"]} for tool in use.tools],
        "tool_choice": use.flat_choice(),
        "parallel_tool_calls": use.parallel,
    }
