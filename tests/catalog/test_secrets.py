"""Secrets are taken from environment and files, and out of every text."""

from __future__ import annotations

import base64
import json
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_host.catalog.secrets import Redactor, SecretError, reference_problems, resolve

SECRET = 'p4ss/w+rd "ä"'


def test_references_are_followed_and_the_rest_is_copied(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("from file\n", encoding="utf-8")
    value = {"a": {"$env": "KEY"}, "b": [1, {"c": {"$file": "key.txt"}}], "d": "$env", "e": None}
    resolved, secrets = resolve(value, tmp_path, {"KEY": "from env"})
    assert resolved == {"a": "from env", "b": [1, {"c": "from file"}], "d": "$env", "e": None}
    assert secrets == {"from env", "from file"}
    assert value["a"] == {"$env": "KEY"}


@pytest.mark.parametrize(
    ("content", "secret"), [(b"x\r\n", "x"), (b"x\n\n", "x\n"), (b"x", "x"), (b" x ", " x "), (b"", "")]
)
def test_one_line_break_at_the_end_of_a_file_is_no_part_of_the_secret(
    tmp_path: Path, content: bytes, secret: str
) -> None:
    (tmp_path / "key").write_bytes(content)
    assert resolve({"$file": str(tmp_path / "key")}, Path("/"), {})[0] == secret


def test_every_reference_that_cannot_be_followed_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "big").write_bytes(b"x" * 65_537)
    value = {
        "a": {"$env": "GONE"},
        "b/c": [{"$file": "gone"}, {"$file": "binary"}, {"$file": "big"}, {"$file": "."}],
        "d": {"$env": "A", "x": 1},
    }
    with pytest.raises(SecretError) as caught:
        resolve(value, tmp_path, {}, plugin="weather", where="plugins.json line 3, /plugins/0/config")
    assert str(caught.value).split("\nplugin")[0] == (
        "plugin 'weather': the environment variable 'GONE' is not set\n"
        "  where: plugins.json line 3, /plugins/0/config/a\n"
        "  mend:  set it: export GONE=…"
    )
    assert [(fault.what, fault.where) for fault in caught.value.faults[1:]] == [
        (f"the secret file '{tmp_path / 'gone'}' cannot be read: No such file or directory", f"{_AT}/b~1c/0"),
        (f"the secret file '{tmp_path / 'binary'}' cannot be read: it is no UTF-8 text", f"{_AT}/b~1c/1"),
        (f"the secret file '{tmp_path / 'big'}' is larger than 65,536 bytes", f"{_AT}/b~1c/2"),
        (f"the secret file '{tmp_path}' cannot be read: Is a directory", f"{_AT}/b~1c/3"),
        ("a reference to a secret has no other key, but this has 'x'", f"{_AT}/d"),
    ]
    assert all(fault.plugin == "weather" and fault.mend for fault in caught.value.faults)


_AT = "plugins.json line 3, /plugins/0/config"


@pytest.mark.parametrize(
    ("value", "pointer", "what"),
    [
        ({"$env": "A", "$file": "b"}, "", "has no other key, but this has both '$env' and '$file'"),
        ({"a": [{"$file": 3}]}, "/a/0/$file", "'$file' must be a name, as a string that is not empty"),
        ({"$env": ""}, "/$env", "'$env' must be a name, as a string that is not empty"),
    ],
)
def test_a_malformed_reference_is_told_without_looking_anything_up(value: object, pointer: str, what: str) -> None:
    (problem,) = reference_problems(value)
    assert problem.pointer == pointer
    assert what in problem.what


def _spellings(secret: str) -> list[str]:
    raw = secret.encode()
    return [
        secret,
        json.dumps({"key": secret}),
        json.dumps({"key": secret}, ensure_ascii=False),
        urllib.parse.quote(secret),
        urllib.parse.quote(secret, safe=""),
        urllib.parse.urlencode({"key": secret}),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        *(base64.b64encode(b"u" * length + b":" + raw + b"@host").decode() for length in range(3)),
    ]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=40))
def test_no_spelling_of_a_secret_is_left_in_a_text(secret: str) -> None:
    redact = Redactor([secret]).redact
    for text in _spellings(secret):
        redacted = redact(f"before {text} after")
        assert "***" in redacted
        assert secret not in redacted


def test_a_text_keeps_everything_else() -> None:
    assert Redactor([SECRET]).redact(f"key={SECRET};") == "key=***;"
    basic = base64.b64encode(f"ada:{SECRET}".encode()).decode()
    redacted = Redactor([SECRET]).redact(f"Basic {basic}")
    assert redacted.startswith(f"Basic {base64.b64encode(b'ada').decode()}")
    assert len(redacted) < len("Basic ada:") + 12


def test_the_longer_of_two_secrets_is_replaced_whole() -> None:
    assert Redactor(["12345678", "1234567890"]).redact("1234567890 12345678") == "*** ***"


def test_a_short_secret_is_left_since_ordinary_words_hold_it() -> None:
    assert Redactor(["1234567"]).redact("1234567") == "1234567"
    assert Redactor([]).redact("anything") == "anything"
