"""Make the reference pages: ``python tests/support/reference.py`` writes them."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "pgcombine" / "docs" / "reference"
COMMON = {"help", "dsn", "as_json"}  # options that the page of commands leaves out
_CALL = re.compile(
    r"^create or replace (\w+) (pgcombine\.(\w+)\((?s:.*?)\))\n(?:returns ((?!void)[^\n]*)\n)?", re.MULTILINE
)
_COMMON = re.compile(r"PC001 unknown queue|those of components$|PC021|PC003 \(or 2D000\)|PC012 the database|42501")
_LISTED = re.compile(r"^--   (\w+(?:, \w+)*)  +(\S.*(?:\n--     +\S.*)*)", re.MULTILINE)
_ERRORS = re.compile(r"^-- Errors: ((?s:.*))", re.MULTILINE)
_REST = re.compile(r"^--   (?s:.*)|^-- Tables written(?s:.*)|^-- Errors: (?s:.*)", re.MULTILINE)


def sql() -> Iterator[str]:
    from pgcombine.database import sqlfiles

    files = dict(sorted(sqlfiles.repeatables(), key=lambda file: Path(file[0]).stem))
    yield "# SQL"
    yield (
        "All names are in the schema `pgcombine`. A procedure (`call`) commits, so call it outside of a transaction. "
        "Arguments can be named: `buckets => 8`. [Errors](python.md#errors) have a SQLSTATE, a message that names the "
        "value, and a hint. Any call may raise PC001 (no such queue), PC021 (no such export), PC003 or 2D000 (a "
        "procedure in a transaction), PC012 (a copied database in which `post_restore` has not run), and 42501 (the "
        "caller lacks the [right](../rights.md))."
    )
    yield "## Objects of a queue"
    yield "Name the columns in inserts, since the log has one more. COPY is cheapest for batches of fifty and more."
    relations = re.findall(r"^ +\('(_\w+)', '(.*)'\)", files["core/internal/queue/describe_queue.sql"], re.MULTILINE)
    functions = re.findall(
        r"queue \|\| '(_\w+)',.*?'((?:Appends|Returns) [^']*)'",
        files["core/internal/queue/queue_functions.sql"],
        re.DOTALL,
    )
    yield "\n".join(
        f"- `<queue>{name}`: {text.replace('queue %s', 'the queue').replace('%1$s_get', '`<queue>_get`')}"
        for name, text in relations + [(f"{name}(…)", text) for name, text in functions]
    )
    for title, part in (("Functions and procedures", "public"), ("Views", "views")):
        yield f"## {title}"
        for path, text in files.items():
            header = re.match(r"(?:--.*\n)+", text)
            if path.split("/")[1] == part and header and "\n-- The view has no rows" not in header[0]:
                yield from described(Path(path).stem, header[0], _CALL.search(text))
    yield "## Combiners"
    yield "A value column is defined by its name, its type and a combiner: `'n bigint sum'`."
    yield from combiners(files["core/combiners.sql"].partition("--\n-- Templates")[0])


def described(name: str, header: str, call: re.Match[str] | None) -> Iterator[str]:
    """Yield the paragraphs of the section on a view or a routine, from the header of its file."""
    yield f"### {name}"
    if call:
        kind, signature, _, returns = call.groups()
        parameters = " ".join(signature.split()).replace(" default ", " = ")
        result = f" → {returns}" if returns and " out " not in parameters else ""
        yield f"`{'call ' * (kind == 'procedure')}{parameters}{result}`"
    prose = re.sub(r"\A(?:-- (?:call )?pgcombine\..*\n|--   .*\n)+", "", header)
    sentences = re.split(r"(?<=\.) (?=[A-Z])", told(_REST.sub("", prose)))
    yield " ".join(sentences[: 2 if call else 1])
    bullets = [f"- {code(names.split(', '))}: {told(meaning)}" for names, meaning in _LISTED.findall(header)]
    errors = [one for one in told("".join(_ERRORS.findall(header))).rstrip(".").split("; ") if not _COMMON.match(one)]
    if any(errors):
        bullets.append(f"- Errors: {'; '.join(errors)}")
    if bullets:
        yield "\n".join(bullets)


def combiners(header: str) -> Iterator[str]:
    """Yield the table in a header as Markdown, and the paragraphs below the table.

    A column of the table begins at the place where its heading in the first line begins.
    """
    _, table, rest = header.split("--\n", 2)
    first, *lines = table.splitlines()
    places = [*map(first.index, ("combiner", "types", "result")), None]
    rows: list[list[str]] = []
    for line in lines:
        cells = [line[one:other].strip() for one, other in pairwise(places)]
        if all(cells[:2]):
            rows.append(cells)
        else:
            rows[-1] = [" ".join(filter(None, pair)) for pair in zip(rows[-1], cells, strict=True)]
    rows = [[re.sub(r"[a-z_.]+(?:\(at\))?", r"`\g<0>`", name), *map(told, cells)] for name, *cells in rows]
    head = ["| combiner | types | result; default of an update |", "|---|---|---|"]
    yield "\n".join([*head, *(f"| {' | '.join(cells)} |" for cells in rows)])
    for paragraph in re.split(r"(?=^-- [A-Z][\w ]+\. )", rest, flags=re.MULTILINE)[1:]:
        text = told(re.sub(r"^--     .*\n", "", paragraph, flags=re.MULTILINE))
        yield re.sub(r"^(.*?\.)", r"**\1**", text)
        if statements := re.findall(r"^--     (.*)", paragraph, re.MULTILINE):
            yield "\n".join(["```sql", *statements, "```"])


def commands() -> Iterator[str]:
    import typer

    from pgcombine.cli.app import PARTS, app
    from pgcombine.doctor.examine import CHECKS
    from pgcombine.doctor.findings import name_of

    root: Any = typer.main.get_command(app)
    yield "# Commands"
    yield "`--help` describes a command's options, with an example. Most commands also take `--dsn` and `--json`."
    for part, names in PARTS.items():
        yield f"## {part}"
        yield "\n".join(line for name in names for line in command(root.commands[name], name))
    yield "## Checks of doctor"
    yield "\n".join(f"- `{name_of(check)}`: {told(check.__doc__ or '')}" for check in CHECKS)


def command(found: Any, path: str) -> Iterator[str]:
    """Yield a line for each command at ``path`` and below it."""
    inner = getattr(found, "commands", {})
    if not inner or found.invoke_without_command:
        arguments = [one for one in found.params if one.param_type_name == "argument"]
        words = [f"{one.metavar or one.name.upper()}{'…' * (one.nargs == -1)}" for one in arguments]
        words = [word if one.required else f"[{word}]" for one, word in zip(arguments, words, strict=True)]
        flags = [max(one.opts, key=len) for one in found.params if one not in arguments and one.name not in COMMON]
        options = f" Options: {code(flags)}." if flags else ""
        yield f"- `{' '.join(['pgcombine', path, *words])}`: {found.help.splitlines()[0]}{options}"
    for name in sorted(inner):
        yield from command(inner[name], f"{path} {name}")


def python() -> Iterator[str]:
    import pgcombine
    from pgcombine import errors

    yield "# Python"
    yield told((pgcombine.__doc__ or "").partition("\n\n")[2])
    for name in pgcombine.__all__:
        found = getattr(pgcombine, name)
        if name.startswith("_") or found is errors.PgCombineError:
            continue
        yield f"## {name}"
        yield f"`{name}{signature(found)}`"
        yield first_paragraph(found)
        members = inspect.getmembers(found, lambda one: inspect.isfunction(one) or isinstance(one, property))
        public = [(one, member) for one, member in members if inspect.isclass(found) and not one.startswith("_")]
        if public:
            yield "\n".join(f"- `{one}{signature(member)}`: {first_paragraph(member)}" for one, member in public)
    yield "## Errors"
    yield "All are in `pgcombine.errors`. Functions in SQL raise the SQLSTATEs in brackets."
    yield "\n".join(tree(errors.PgCombineError, errors._BY_SQLSTATE))


def tree(kind: type, states: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield a line for an exception, then indented lines for the exceptions below it."""
    marks = [state for state, one in states.items() if one is kind]
    marks += [f"also `{base.__name__}`" for base in kind.__bases__[1:]]
    named = f"`{kind.__name__}`" + (f" ({', '.join(marks)})" if marks else "")
    yield f"{'  ' * depth}- {named}: {first_paragraph(kind)}"
    for one in kind.__subclasses__():
        if one.__bases__[0] is kind and one.__module__ == kind.__module__:
            yield from tree(one, states, depth + 1)


def metrics() -> Iterator[str]:
    import yaml

    from pgcombine.metrics import names

    yield "# Metrics and alerts"
    database = (names.FIGURES_READ, *names.OF_THE_DATABASE)
    for title, metrics in (("Of a process", names.OF_A_PROCESS), ("Of the database", database)):
        yield f"## {title}"
        yield "\n".join(
            f"- `{one.name}` ({one.kind}{' by ' * bool(one.labels)}{', '.join(one.labels)}): {one.help}"
            for one in metrics
        )
    yield "## Alerts"
    rules = yaml.safe_load((ROOT / "pgcombine" / "metrics" / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
    shown = "- `{alert}` ({labels[severity]}, {for}): `{expr}`"
    yield "\n".join(" ".join(shown.format_map(rule).split()) for rule in rules)


def first_paragraph(thing: Any) -> str:
    return told((inspect.getdoc(thing) or "").partition("\n\n")[0])


def signature(thing: Any) -> str:
    """The parameters in parentheses, without ``self`` and types. Empty for properties and protocols."""
    if isinstance(thing, property) or getattr(thing, "_is_protocol", False):
        return ""
    found = inspect.signature(thing)
    kept = [one.replace(annotation=one.empty) for one in found.parameters.values() if one.name != "self"]
    return str(found.replace(parameters=kept, return_annotation=found.empty))


def code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def told(text: str) -> str:
    """The text of a comment or docstring as one line of Markdown, without references such as ``(see …)``."""
    text = " ".join(line.removeprefix("--").strip() for line in text.splitlines()).strip()
    text = re.sub(r" \(see [^()]*\)|[:;,] see \w+(?=$|\.)", "", text)
    text = re.sub(r":meth:`~?(?:[\w.]*\.)?(\w+)(?: <[^>]*>)?`", r"`\1()`", text)
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return re.sub(r"(?<![`\w])(?:\w*<\w+>\w*|'\*')", r"`\g<0>`", text)


WRITERS = {f"{writer.__name__}.md": writer for writer in (sql, commands, python, metrics)}


def page(name: str) -> str:
    title, *blocks = WRITERS[name]()
    return "\n\n".join([title, "<!-- made by tests/support/reference.py -->", *blocks]) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for name in WRITERS:
        (PAGES / name).write_text(page(name), encoding="utf-8")
