"""How families of models write tool calls: one module each, one common type."""

from .detect import tool_format_of
from .tool_format import ToolFormat

__all__ = ["ToolFormat", "tool_format_of"]
