"""A small corpus with every kind of this release, written into a folder: two repositories' worth of pages and code that know each other."""

from __future__ import annotations

from pathlib import Path

FILES: dict[str, str] = {
    "pages/index.html": """<!doctype html><html><head><title>Pump manual</title></head><body><nav>Home</nav><main>
<h1>Pump manual</h1><p>The pump stops when the tank is full.</p><h2>Restart</h2><p>Press the green key twice to restart the pump.</p>
<table><tr><th>Key</th><th>Meaning</th></tr><tr><td>green</td><td>restart</td></tr></table></main></body></html>
""",
    "pages/design.md": "# Pump design\n\nThe controller reads the level every second.\n\n## Limits\n\n- high: 90 %\n- low: 10 %\n",
    "pages/notes.txt": "First note about valves.\n\nSecond note about the tank sensor.\n",
    "code/pump/__init__.py": "from .control import Controller\n",
    "code/pump/control.py": '''"""Controls the pump."""
from .sensor import read_level
from . import alarm


class Controller:
    """Keeps the level between the limits."""

    def __init__(self, high):
        self.high = high

    def step(self):
        level = read_level()
        if level > self.high:
            self.stop()
        return level

    def stop(self):
        alarm.ring("stopped")


def run(high):
    controller = Controller(high)
    return controller.step()
''',
    "code/pump/sensor.py": '''def read_level():
    """Level of the tank in percent."""
    return _raw() / 10


def _raw():
    return 420
''',
    "code/pump/alarm.py": "def ring(text):\n    print(text)\n",
    "code/pump/broken.py": "def good():\n    return 1\n\ndef bad(:\n",
    "code/client/api.ts": """export interface Level { percent: number }
export async function fetchLevel(base: string): Promise<Level> {
  const answer = await fetch(`${base}/level`);
  return parse(await answer.text());
}
function parse(text: string): Level { return JSON.parse(text); }
""",
    "code/client/main.ts": 'import { fetchLevel } from "./api";\nexport function show(base: string) { return fetchLevel(base); }\n',
    "data/levels.json5": '{"levels": [1, 2, 3]}\n',
    "data/levels.sql": "time,level\n1,2\n",
}


def write_corpus(folder: Path) -> Path:
    """Writes FILES and a two-page PDF below `folder`."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    write_pdf(folder / "pages" / "sheet.pdf", ["Pump data sheet", "Power 200 W"], 2)
    return folder


def write_pdf(path: Path, lines: list[str], pages: int) -> None:
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    for page in range(1, pages + 1):
        for at, line in enumerate(lines):
            canvas.drawString(72, 770 - 20 * at, f"{line}, page {page}")
        canvas.showPage()
    canvas.save()
