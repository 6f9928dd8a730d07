"""All messages that pgcombine raises, logs or warns with are in ``messages.txt``, so a diff shows a new wording.

Other tests assert the SQLSTATE, the exception's class, and the values that a message names, not its wording.

With ``PGCOMBINE_TEST_WRITE_MESSAGES=1`` the test writes the file. A line has the file, the SQLSTATE, the class or the
level, the message, and after ``|`` the hint or the values' texts. ``…`` stands for a value.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from pgcombine.errors import from_sqlstate

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).with_name("messages.txt")
TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|[eE]?'(?P<text>(?:[^']|'')*)'|\$\w*\$|[(),;]|:=|[\w.]+|\s+|.", re.DOTALL)
LEVELS = {"debug", "info", "notice", "warning", "error", "exception", "critical"}
# A statement that makes the text which a later statement raises.
MADE = re.compile(r"\b_?(?:problem|hint|error)\s*:=|\binto\b[^;]*\b_(?:problem|hint)\b")


def statements(text: str) -> Iterator[list[tuple[str, str | None]]]:
    """The statements of a file without comments: of each the tokens, each with its text if it is a literal."""
    found: list[tuple[str, str | None]] = []
    for token in TOKEN.finditer(text):
        if token[0].startswith(("--", "/*")):
            continue
        if token[0] == ";" or (token[0].startswith("$") and len(token[0]) > 1):
            yield found
            found = []
        elif token["text"] is None:
            found.append((" " if token[0].isspace() else token[0], None))
        else:
            literal = re.sub(r"%[sIL]?", "…", re.sub(r"\s*\n\s*", " ", token["text"].replace("''", "'")))
            if len(found) > 1 and found[-1][0] == " " and found[-2][1] is not None:
                literal = found[-2][1] + literal  # the same literal, continued on the next line
                del found[-2:]
            found.append((token[0], literal))
    yield found


def arguments(tokens: list[tuple[str, str | None]]) -> list[str]:
    """The arguments' texts: the literals of each, with … for what isn't one."""
    found, depth = [""], 0
    for token, literal in tokens:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token, 0)
        if depth < 0:
            break
        if token == "," and depth == 0:
            found.append("")
        elif literal is not None:
            found[-1] += literal
        elif re.fullmatch(r"[\w.]+", token) and not found[-1].endswith("…"):
            found[-1] += "…"
    return [text.strip("…") or text for text in found]


def of_sql(text: str) -> Iterator[tuple[str, str, str]]:
    """The messages of an SQL file: the SQLSTATE or the level, the message, the hint."""
    for tokens in statements(text):
        words = [token.lower() for token, _ in tokens]
        whole = "".join(token for token, _ in tokens)
        if "pgcombine_internal.require" in words and "function" not in words:
            for at in (number for number, word in enumerate(words) if word == "pgcombine_internal.require"):
                _, state, message, hint = arguments(tokens[at + 2 :])
                yield state.strip(), message, hint
        elif "raise" in words:
            rest = tokens[words.index("raise") + 1 :]
            parts: dict[str, list[tuple[str, str | None]]] = {"": []}
            into = ""
            for number, token in enumerate(rest):
                named = token[0].lower() in ("errcode", "message", "hint", "detail") and "=" in [
                    one for one, _ in rest[number + 1 : number + 3]
                ]
                if named or token[0].lower() == "using":
                    into = token[0].lower()
                    parts[into] = []
                elif token[0] != "=" or into in ("", "using"):
                    parts[into].append(token)
            level = next((one.lower() for one, _ in parts[""] if one.lower() in LEVELS), "exception")
            first = [token for token in parts[""] if token[0].lower() not in LEVELS]
            message, *values = arguments(first)
            if "message" in parts:
                message = arguments(parts["message"])[0]
            condition = next(
                (one for one, literal in first if literal is None and re.fullmatch(r"[a-z]+_[a-z_]+", one)), ""
            )
            state = arguments(parts["errcode"])[0] if "errcode" in parts else condition or level
            hint = arguments(parts["hint"])[0] if "hint" in parts else ""
            texts = "".join(f" [{value}]" for value in values if re.search(r"\w{2} \w", value))
            yield state, message + texts, hint
        elif MADE.search(whole):
            yield from (("text", literal, "") for _, literal in tokens if literal and re.search(r"\w{2} \w", literal))


def rendered(node: ast.expr) -> str:
    """A message's text, with … for each value."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(rendered, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        return rendered(node.left) + (rendered(node.right) if isinstance(node.op, ast.Add) else "")
    if isinstance(node, ast.IfExp):
        return f"{rendered(node.body)} / {rendered(node.orelse)}"
    return "…"


def of_python(text: str) -> Iterator[tuple[str, str, str]]:
    """The messages of a module: the exception's class or the level, the message, the hint or the exception's values."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        log = re.fullmatch(r"(?:_?log|logger|warnings)\.(\w+)", ast.unparse(node.func))
        error = re.search(r"(Error|Exception|BadParameter|NotConnected|Refused)$", name)
        printed = name == "echo" and any(keyword.arg == "err" for keyword in node.keywords)
        if not (error or printed or (log and log[1] in LEVELS | {"warn"})):
            continue
        shown = node.args[1] if name == "HTTPException" and len(node.args) > 1 else node.args[0]
        hint = next((rendered(keyword.value) for keyword in node.keywords if keyword.arg in ("hint", "detail")), "")
        if (message := rendered(shown)).strip("…") or hint:
            yield name, message, hint


def found() -> Iterator[str]:
    for folder, suffix, of in (("sql", "sql", of_sql), ("migrations", "sql", of_sql), ("pgcombine", "py", of_python)):
        for path in sorted((ROOT / folder).rglob(f"*.{suffix}")):
            for kind, message, hint in of(path.read_text(encoding="utf-8")):
                if not re.search("[a-z]{2}", message + hint):
                    continue  # passes an error on
                shown = f"{message} | {hint}" if hint else message
                yield f"{path.relative_to(ROOT)}: {kind}: {shown}".replace("\n", "\\n").rstrip()


def test_messages_equal_the_file() -> None:
    messages = [*found()]
    if "PGCOMBINE_TEST_WRITE_MESSAGES" in os.environ:
        GOLDEN.write_text("".join(f"{line}\n" for line in messages), encoding="utf-8")
    assert messages == GOLDEN.read_text(encoding="utf-8").splitlines()


def test_errors_of_the_server_have_a_class_and_a_hint() -> None:
    for path in sorted((ROOT / "sql").rglob("*.sql")):
        for state, message, hint in of_sql(path.read_text(encoding="utf-8")):
            if re.fullmatch("PC0[0-8].", state):
                assert from_sqlstate(state, message, hint) is not None, f"{path.name}: {state} has no class"
                assert hint, f"{path.name}: the error has no hint: {message}"
