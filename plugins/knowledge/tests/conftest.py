"""Documents on disk, and the plugin with a data folder of its own."""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from cyrene_knowledge import KnowledgePlugin
from cyrene_sdk import PluginConfig


def pdf_of(pages: Sequence[str]) -> bytes:
    """Return a PDF with a line of ASCII text on each page."""
    objects = {1: b"<< /Type /Catalog /Pages 2 0 R >>", 3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"}
    for number, text in enumerate(pages):
        page, stream = 4 + 2 * number, 5 + 2 * number
        drawn = zlib.compress(f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode())
        objects[page] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % stream
        )
        head = b"<< /Length %d /Filter /FlateDecode >>" % len(drawn)
        objects[stream] = head + b"\nstream\n" + drawn + b"\nendstream"
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    objects[2] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids)
    written, places = b"%PDF-1.4\n", []
    for number in sorted(objects):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, objects[number])
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(written))
    return written + start + trailer


@pytest.fixture
def pdf() -> Callable[[Sequence[str]], bytes]:
    """Return a function that makes a PDF of the texts of its pages."""
    return pdf_of


@pytest.fixture(scope="session")
def slow() -> Callable[[float], float]:
    """Return a function that stretches a time limit by `CYRENE_SLOW`, as in the host's tests."""
    factor = float(os.environ.get("CYRENE_SLOW", "1"))
    return lambda seconds: seconds * factor


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with one document of each kind, in two languages."""
    docs = tmp_path / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "guide.md").write_text(
        "# Guide\n\nWelcome.\n\n## Restarts\n\nA crashed worker is restarted.\n\n"
        "## 插件\n\n怎么给插件写测试：先写断言。\n",
        encoding="utf-8",
    )
    (docs / "deep" / "notes.txt").write_text("Timeouts are counted in milliseconds.\n", encoding="utf-8")
    head = "<html><head><meta charset=gb2312><title>报销制度</title></head>"
    page = f"{head}<body><p>差旅费在三十天内报销。</p></body></html>"
    (docs / "policy.html").write_bytes(page.encode("gb18030"))
    (docs / "manual.pdf").write_bytes(pdf_of(["The first page is about engines.", "The second page is about brakes."]))
    return docs


@pytest.fixture
def plugin(tmp_path: Path, docs: Path) -> KnowledgePlugin:
    """The started plugin, which may index `docs`."""
    plugin = KnowledgePlugin()
    plugin.init(PluginConfig({"folders": ["docs"]}, name="knowledge", folder=tmp_path))
    (tmp_path / "data").mkdir()
    host = SimpleNamespace(data_dir=tmp_path / "data", logger=logging.getLogger("knowledge"))  # all that it needs
    plugin.start(host)
    return plugin
