"""Every code block of README and docs runs; `docs/dev/docs.md` has the rules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^( *)(`{3,})([\w-]*)[^`]*$")
REMARK = re.compile(r"<!--\s*([a-z ]+):\s*(.+?)\s*-->")
FILE_COMMENT = re.compile(r"#\s*file:\s*(\S+)\s*\n")
EXIT_COMMENT = re.compile(r"\s# exit (\d+)$")
NOT_CODE = {"text", "markdown", "mermaid"}


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


# A changelog tells of the past; the commands of benchmarks/README.md take minutes and make environments of their own.
NOT_RUN = ("CHANGELOG.md", "benchmarks/README.md")
PAGES = sorted(name for name in _tracked() if name.endswith(".md") and name not in NOT_RUN)


@dataclass
class Block:
    """One fenced block: its language, its text, the line of its first fence, and the remark on the line before."""

    language: str
    line: int
    remark: tuple[str, str] | None
    rows: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(row + "\n" for row in self.rows)

    @property
    def file(self) -> str | None:
        """The file that this block is, if a remark or its first line says so."""
        if self.remark and self.remark[0] == "file":
            return self.remark[1]
        first = FILE_COMMENT.match(self.text)
        return first[1] if first else None


def _blocks(page: str) -> Iterator[Block]:
    block, closing, indent = None, "", 0
    before = ""
    for number, row in enumerate(page.splitlines(), 1):
        fence = FENCE.match(row)
        if block is None and fence:
            remark = REMARK.search(before)
            block = Block(fence[3], number, (remark[1].strip(), remark[2]) if remark else None)
            indent, closing = len(fence[1]), fence[2]
        elif block is not None and row.strip() == closing:
            yield block
            block = None
        elif block is not None:
            block.rows.append(row[indent:])
        before = row if row.strip() else before
    assert block is None, f"the block at line {block.line} has no end" if block else ""


@dataclass(frozen=True)
class Command:
    """A shell command with the exit status and the output that the page promises (None: any)."""

    text: str
    status: int
    output: str | None


def _commands(block: Block) -> Iterator[Command]:
    if block.language == "sh":
        yield Command(block.text, 0, None)
        return
    assert block.rows, f"line {block.line}: an empty block"
    assert block.rows[0].startswith("$ "), f"line {block.line}: a console block begins with '$ '"
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        rows = part.splitlines()
        typed = 1
        while rows[typed - 1].endswith("\\") or (typed < len(rows) and rows[typed].startswith("> ")):
            typed += 1
        text = "\n".join(row.removeprefix("> ") for row in rows[:typed])
        status = EXIT_COMMENT.search(text)
        output = "\n".join(rows[typed:]).strip("\n")
        yield Command(text, int(status[1]) if status else 0, output or None)


def _fits(expected: str, printed: str) -> bool:
    """Compare line by line; `...` in a line stands for any text, alone on a line for any lines."""
    pattern = re.escape("\n".join(row.rstrip() for row in expected.splitlines()))
    pattern = re.sub(r"(?:(?<=\n)|^)\\\.\\\.\\\.(?:\n|\\\n|$)", r"(?s:.*)", pattern)
    pattern = pattern.replace(r"\.\.\.", "[^\n]*")
    return re.fullmatch(pattern, "\n".join(row.rstrip() for row in printed.strip("\n").splitlines())) is not None


@dataclass
class Reader:
    """Someone who follows a page from top to bottom in a folder of their own."""

    folder: Path
    home: Path
    limit_s: float

    def __post_init__(self) -> None:
        self.cwd = self.folder

    def follow(self, block: Block) -> None:
        """Write, read or run one block, and fail with its line where it does not hold."""
        if block.language in NOT_CODE or (block.remark and block.remark[0] == "not run"):
            return
        if block.file:
            self._write(block.file, block.text)
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.file:
            return
        elif block.language == "python":
            self._expect(block, Command(block.text, 0, None), [sys.executable, "-c", block.text])
        elif block.language in ("console", "sh"):
            for command in _commands(block):
                script = f'set -e\n{command.text}\npwd > "$WHERE"'
                self._expect(block, command, ["bash", "-c", script])
                self.cwd = Path((self.home / "where").read_text(encoding="utf-8").strip())
        else:
            pytest.fail(f"line {block.line}: no rule for the language '{block.language}'; see docs/dev/docs.md")

    def _write(self, name: str, text: str) -> None:
        path = (self.cwd / name).resolve()
        assert path.is_relative_to(self.folder.resolve()), f"'{name}' is outside the page's folder"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _expect(self, block: Block, command: Command, arguments: list[str]) -> None:
        (self.home / "where").write_text(str(self.cwd), encoding="utf-8")
        ended = subprocess.run(
            arguments,
            cwd=self.cwd, env=self._surroundings(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8",
            timeout=self.limit_s, check=False,
        )  # fmt: skip
        shown = f"line {block.line}: {command.text}\n{ended.stdout}"
        assert ended.returncode == command.status, f"exit {ended.returncode} instead of {command.status}\n{shown}"
        if command.output is not None:
            assert _fits(command.output, ended.stdout), f"{shown}\n--- the page promises ---\n{command.output}"

    def _surroundings(self) -> dict[str, str]:
        ours = ("CYRENE_", "COVERAGE_", "MAKE", "MFLAGS")  # `make test` runs these tests
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        programs = [str(self.folder / ".venv" / "bin"), str(Path(sys.executable).parent), kept.get("PATH", "")]
        kept.setdefault("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))
        places = {"PATH": os.pathsep.join(programs), "HOME": str(self.home), "WHERE": str(self.home / "where")}
        return kept | places | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}


@pytest.fixture
def reader(tmp_path: Path, slow: Callable[[float], float]) -> Reader:
    """A reader in an empty folder."""
    folder, home = tmp_path / "page", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    return Reader(folder, home, slow(60))


def _copy_checkout(folder: Path) -> None:
    for name in _tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Start"]):
        author = ["-c", "user.name=Reader", "-c", "user.email=reader@example.org"]
        subprocess.run(["git", *author, *command], cwd=folder, timeout=30, check=True)
    (folder / ".uv").symlink_to(ROOT / ".uv")  # `make setup` makes a .venv of the copy's own, from uv's cache


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, reader: Reader) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if "<!-- starts in: checkout -->" in text:
        _copy_checkout(reader.folder)
    for block in _blocks(text):
        reader.follow(block)


def _page(*rows: str) -> list[Block]:
    return list(_blocks("\n".join(rows)))


def test_files_and_the_folder_carry_over_from_block_to_block(reader: Reader) -> None:
    blocks = _page(
        "```python", "# file: sub/greeting.py", "text = 'hi'", "```",
        "```console", "$ cd sub", "```",
        "```python", "import greeting", "assert greeting.text == 'hi'", "```",
    )  # fmt: skip
    for block in blocks:
        reader.follow(block)
    assert reader.cwd == reader.folder / "sub"


@pytest.mark.parametrize(
    "rows",
    [
        ["```console", "$ echo one", "two", "```"],
        ["```console", "$ printf 'a\\nb\\nc\\n'", "a", "...", "b", "```"],
        ["```console", "$ exit 3", "```"],
        ["```console", "$ true  # exit 3", "```"],
        ["```sh", "false", "true", "```"],
        ["```python", "assert 1 == 2", "```"],
        ["```json", "{'a': 1}", "```"],
        ["<!-- file: ../outside.json -->", "```json", "{}", "```"],
    ],
)
def test_a_block_that_does_not_hold_is_found(rows: list[str], reader: Reader) -> None:
    (block,) = _page(*rows)
    with pytest.raises((AssertionError, ValueError)):
        reader.follow(block)


@pytest.mark.parametrize("rows", [["```", "x", "```"], ["```ruby", "x", "```"]])
def test_a_block_of_an_unknown_language_is_found(rows: list[str], reader: Reader) -> None:
    with pytest.raises(pytest.fail.Exception, match="line 1: no rule"):
        reader.follow(*_page(*rows))


@pytest.mark.parametrize(
    "rows",
    [
        ["```console", "$ printf 'a\\nb\\nc\\n'", "a", "...", "c", "```"],
        ["```console", "$ printf 'a\\nb\\nc\\n'", "...", "c", "```"],
        ["```console", "$ printf 'a\\nb\\nc\\n'", "a", "...", "```"],
        ["```console", "$ echo took 12 ms", "took ... ms", "```"],
        ["```console", "$ echo a \\", "  b", "a b", "$ echo c", "c", "```"],
        ["```console", "$ (exit 2)  # exit 2", "```"],
        ["<!-- not run: it has no end -->", "```sh", "false", "```"],
        ["````markdown", "```sh", "false", "```", "````"],
    ],
)
def test_a_block_that_holds_passes(rows: list[str], reader: Reader) -> None:
    (block,) = _page(*rows)
    reader.follow(block)
