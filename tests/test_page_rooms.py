"""The shape of the page: which room of web/src may use which, and what has a test."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "web" / "src"
TESTS = ROOT / "web" / "tests"

# A room may use those of the lines above its own, and itself; those of one line do not know each other.
ORDER: tuple[tuple[str, ...], ...] = (
    ("styles",),
    ("wire", "settings", "offline"),
    ("shell",),
    ("markdown", "spec"),
    ("chat", "race", "dashboard", "voice"),
    ("app",),  # the files that lie in web/src itself
)
LEVELS = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

_IMPORT = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*)["'](\.[^"']*)["']""")
_CODE = re.compile(r"^(export )?(default )?(async )?(function|class) |^(export )?const \w+.* = .*=>", re.MULTILINE)
_PLACE = re.compile(r"(?:web/)?tests/[\w./-]+")

IN_THE_VIEW = "drawn in the whole view, in web/tests/spec/view.test.tsx"
IN_CHAT = "as people use it, in tests/e2e/test_chat.py"
IN_THE_CHAT_SESSION = "in whole conversations, in web/tests/chat/conversation.test.ts"
IN_DASHBOARD = "against the real server's figures, in tests/e2e/test_dashboard.py"
IN_RACE = "as people use it, in tests/e2e/test_race.py"
IN_VOICE = "as people use it, in tests/e2e/test_voice_page.py"
IN_OFFLINE = "in a browser that has lost its server, in tests/e2e/test_offline.py"

# path, or a room with a slash -> where it is tested instead
TESTED_ELSEWHERE: dict[str, str] = {
    "app.tsx": "as people go from view to view, in tests/e2e/test_race.py and tests/e2e/test_accessibility.py",
    "markdown/": "one parser in many files, which takes texts and makes nodes: all that lies in web/tests/markdown",
    **dict.fromkeys(("chat/bars.tsx", "chat/list.tsx", "chat/log.tsx", "chat/reply.tsx", "chat/view.tsx"), IN_CHAT),
    "chat/help.tsx": "as people use it, in tests/e2e/test_chat_controls.py",
    **dict.fromkeys(("chat/outcome.ts", "chat/session.ts"), IN_THE_CHAT_SESSION),
    **dict.fromkeys(("dashboard/chart.tsx", "dashboard/choices.tsx", "dashboard/controls.tsx"), IN_DASHBOARD),
    **dict.fromkeys(("dashboard/counts.tsx", "dashboard/histogram.tsx"), IN_DASHBOARD),
    **dict.fromkeys(("offline/register.ts", "offline/worker.ts"), IN_OFFLINE),
    **dict.fromkeys(("race/chart.ts", "race/difference.tsx", "race/lanecard.tsx"), IN_RACE),
    **dict.fromkeys(("race/plot.tsx", "race/table.tsx", "race/view.tsx"), IN_RACE),
    "shell/browser.ts": "with the browser's clipboard and files, in tests/e2e/test_chat_controls.py and test_chat.py",
    "shell/canvas.ts": "by the pixels of a canvas, in tests/e2e/test_dashboard.py",
    "shell/swatch.tsx": "in the tables of tests/e2e/test_dashboard.py",
    **dict.fromkeys(("spec/bars.tsx", "spec/card.tsx", "spec/forest.tsx", "spec/listing.tsx"), IN_THE_VIEW),
    **dict.fromkeys(("spec/panel.tsx", "spec/slider.tsx", "spec/stream.tsx", "spec/tables.tsx"), IN_THE_VIEW),
    "spec/drawing.tsx": "against what a real server told, in tests/e2e/test_speculation.py",
    **dict.fromkeys(("voice/speaking.tsx", "voice/turns.tsx", "voice/view.tsx"), IN_VOICE),
    "voice/session.ts": "by what the loop sends, in web/tests/voice/loop.test.ts and reconnecting.test.ts",
    "voice/transcripts.ts": "as they are replayed, in web/tests/voice/replay.test.ts",
}


def sources() -> list[str]:
    """All modules of the page, relative to web/src."""
    return sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.ts*"))


def text_of(path: str) -> str:
    return (SOURCES / path).read_text(encoding="utf-8")


def room_of(path: str) -> str:
    return path.partition("/")[0] if "/" in path else "app"


def imports_of(path: str, text: str) -> set[str]:
    """The page's own files that a module imports in any way, types and styles too, relative to web/src."""
    return {posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) for name in _IMPORT.findall(text)}


@pytest.mark.parametrize("path", sources())
def test_rooms_import_in_one_order(path: str) -> None:
    room = room_of(path)
    assert room in LEVELS, f"{room} has no place in ORDER"
    wrong = []
    for imported in sorted(imports_of(path, text_of(path))):
        other = room_of(imported)
        assert other in LEVELS, f"{path} imports {imported}, which is no room of the page"
        if other != room and LEVELS[other] >= LEVELS[room]:
            wrong.append(imported)
    assert not wrong, f"{path} imports {', '.join(wrong)}, which stands beside or above {room}"


def test_the_reader_of_imports_sees_every_form() -> None:
    """The check above is as good as that function."""
    text = """
import "./chat.css";
import { render } from "preact";
import { a } from '../wire/link';
import type { B } from "./turns";
import { c, d } from
  "../settings/parse";
export { e } from "./records";
const view = { load: () => import("../race/view") };
"""
    found = {"chat/chat.css", "wire/link", "chat/turns", "settings/parse", "chat/records", "race/view"}
    assert imports_of("chat/view.tsx", text) == found
    assert [room_of(path) for path in ("app.tsx", "chat/view.tsx")] == ["app", "chat"]


def test_every_module_has_a_test_file() -> None:
    """room/module.ts is tested in web/tests/room/module.test.ts; types alone need no test."""
    needy = {path for path in sources() if _CODE.search(text_of(path)) and not _has_test(path)}
    missing = sorted(path for path in needy if not {path, f"{room_of(path)}/"} & set(TESTED_ELSEWHERE))
    assert not missing
    stale = [path for path in TESTED_ELSEWHERE if not path.endswith("/") and path not in needy]
    assert not stale, f"{stale} need no exception any more"


def test_what_is_tested_elsewhere_says_where() -> None:
    for path, reason in TESTED_ELSEWHERE.items():
        places = _PLACE.findall(reason)
        assert places, f"{path} does not say where"
        assert all((ROOT / place).exists() for place in places), f"{path} is said to be tested in {places}"


def _has_test(path: str) -> bool:
    own = TESTS / path
    return any(own.with_suffix(f".test{kind}").is_file() for kind in (".ts", ".tsx"))
