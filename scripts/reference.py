"""The reference, generated when the site is built: a section for every public name, from its signature and docstring.

A hook of mkdocs (`hooks:` in mkdocs.yml). Docstrings of this project have a form of their own, two columns for
parameters and doctests for examples, which other generators show as loose text; so this one is ours, and short.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import streamtight
from streamtight.findings import MEANINGS

# Which page has the names of which module, in the order of the pages. A home that is missing here is an error.
PAGES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "streams": (
        "Streams and order",
        "What data is: kinds and events, which of them keep their order, schemas, traces, schedules.",
        ("stream.event", "stream.dependence", "stream.equality", "stream.schema", "stream.trace", "stream.schedule"),
    ),
    "verdicts": (
        "Verdicts",
        "What every question answers; reports; what is raised where a question was wrong.",
        ("verdict", "report.write", "errors"),
    ),
    "compare": (
        "compare and laws",
        "Two jobs, two recorded outputs, two running streams; one job against itself.",
        (
            "spark.compare",
            "method.compare.oracle",
            "spark.recorded",
            "method.compare.matcher",
            "spark.live",
            "spark.live_book",
        ),
    ),
    "check": (
        "check: promises over time",
        "Temporal formulas, tests of rows, and the question whether a job keeps them.",
        (
            "spark.check",
            "properties.temporal",
            "properties.records",
            "properties.parse",
            "properties.judge",
            "properties.explain",
            "program.letter",
        ),
    ),
    "prove": (
        "prove",
        "Are two programs equal on every input? What inputs are, and functions that merge.",
        ("spark.prove", "method.prove.inputs", "method.prove.monoid"),
    ),
    "typecheck": (
        "typecheck, graphs, transformers",
        "Does a result depend on an order that nobody promised? Programs that say which order they rely on.",
        ("spark.typecheck", "program.operators", "spark.graph", "program.transformer", "program.transformer_forms"),
    ),
    "parallelize": (
        "parallelize",
        "A sequential program, its dependences, and plans for many workers.",
        (
            "spark.parallelize",
            "method.parallelize.consistency",
            "method.parallelize.optimize",
            "program.fork_join",
            "program.tags",
            "program.plan",
        ),
    ),
    "watch": (
        "watch",
        "Queries on running streams, and the machines that they become.",
        (
            "spark.watch",
            "spark.watch_formula",
            "spark.watch_metrics",
            "properties.transducer",
            "properties.queries",
            "properties.transducers",
        ),
    ),
    "explore": (
        "explore and pipelines",
        "Pipelines, claims about them, and systems that they watch.",
        (
            "spark.explore",
            "program.pipeline",
            "program.pipes",
            "spark.pipelines",
            "properties.claims",
            "properties.branching",
            "program.limits",
            "method.explore.queues",
            "method.explore.dead",
            "method.explore.export",
            "program.kripke",
            "program.watched",
            "program.machine",
        ),
    ),
    "sources": (
        "Sources",
        "Where inputs come from: generated, listed, streams with a shape over time.",
        ("source.generate", "source.gen", "method.check.satisfying", "source.shrink"),
    ),
    "spark": (
        "Jobs on Spark",
        "Exact micro-batches and partitions; what a run gives.",
        ("spark.session", "spark.ship", "spark.run", "spark.pack", "program.run", "spark.rows"),
    ),
}


def pages() -> dict[str, str]:
    """Every page of the reference by its path, as markdown."""
    made = {f"reference/{name}.md": page(name) for name in PAGES}
    made["reference/cli.md"] = command_line()
    return made


def page(name: str) -> str:
    """One page: a list of its names, and a section for each."""
    title, about, homes = PAGES[name]
    listed = [public for home in homes for public in names_of(home)]
    table = [f"| [`{each}`](#{each}) | {_cell(_first_line(public_value(each)))} |" for each in listed]
    sections = [section(each) for each in listed]
    return "\n".join([f"# {title}", "", about, "", "| name | |", "|---|---|", *table, "", *sections])


def names_of(home: str) -> list[str]:
    """The public names that live in a module: those of `streamtight`, and the module itself if it is one of these."""
    whole = f"streamtight.{home}"
    modules = [name for name, module in streamtight._MODULES.items() if module == whole]
    return [*streamtight._HOMES.get(whole, []), *modules]


def public_value(name: str) -> Any:
    """What `streamtight.name` is."""
    return getattr(streamtight, name)


def section(name: str) -> str:
    """What the reference says of `streamtight.name`."""
    value = public_value(name)
    if isinstance(value, ModuleType):
        return _module_section(name, value)
    return "\n".join(_told(f"tight.{name}", name, value, level=2))


def _module_section(name: str, module: ModuleType) -> str:
    lines = [f"## tight.{name} {{ #{name} }}", "", docstring(module), ""]
    for part, value in _members_of(module):
        if isinstance(value, ModuleType):
            continue
        lines += _told(f"{name}.{part}", f"{name}.{part}", value, level=3)
    return "\n".join(lines)


def _members_of(module: ModuleType) -> Iterator[tuple[str, Any]]:
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    for name in listed:
        yield name, getattr(module, name)


def _told(title: str, anchor: str, value: Any, *, level: int) -> list[str]:
    lines = [f"{'#' * level} {title} {{ #{anchor} }}", ""]
    if isinstance(value, type):
        lines += _class(title, value, level)
    elif callable(value) and not hasattr(value, "_is_value"):
        lines += [_code(signature(title.removeprefix("tight."), value)), "", docstring(value), ""]
    else:
        shown = docstring(value) if _is_explained(value) else f"A `{type(value).__name__}`: `{value!r}`"
        lines += [shown, ""]
    return lines


def _is_explained(value: Any) -> bool:
    """Whether its docstring is ours, and not that of a type of Python's."""
    return bool(value.__doc__) and type(value).__module__.startswith("streamtight")


def _class(title: str, cls: type, level: int) -> list[str]:
    lines = []
    if issubclass(cls, enum.Enum):
        names = ", ".join(f"`{member.name}`" for member in cls)
        return [docstring(cls), "", f"Values: {names}", ""]
    if not issubclass(cls, BaseException):
        made = signature(title.removeprefix("tight."), cls)
        if made:
            lines += [_code(made), ""]
    lines += [docstring(cls), ""]
    rows = [f"| `.{name}` | {_cell(text)} |" for name, text in members(cls)]
    if rows:
        lines += ["| member | |", "|---|---|", *rows, ""]
    return lines


def members(cls: type) -> Iterator[tuple[str, str]]:
    """The public attributes, properties and methods of a class, each with the first line of what is said of it."""
    notes = {name: text for each in reversed(cls.__mro__) for name, text in _attribute_notes(each).items()}
    seen = set()
    for each in cls.__mro__:
        if not each.__module__.startswith("streamtight"):
            continue
        for name, value in vars(each).items():
            if name.startswith("_") or name in seen:
                continue
            plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if isinstance(plain, property) or (callable(plain) and not isinstance(plain, type)):
                said = inspect.getdoc(plain) or inspect.getdoc(getattr(cls, name, None)) or notes.get(name, "")
                if not said:
                    continue
                seen.add(name)
                shown = name if isinstance(plain, property) else f"{name}{_parameters(plain)}"
                yield shown, _inline(said.split("\n\n")[0])
    for name, text in notes.items():
        if name not in seen and not name.startswith("_"):
            yield name, _inline(text.split("\n\n")[0])


def _attribute_notes(cls: type) -> dict[str, str]:
    """The strings that stand below the attributes of a class."""
    if not cls.__module__.startswith("streamtight"):
        return {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    notes = {}
    body = getattr(tree, "body", [])
    for one, following in itertools.pairwise(body):
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and is_text:
            notes[one.target.id] = inspect.cleandoc(str(following.value.value))
    return notes


def signature(name: str, value: Any) -> str:
    """How it is called, on several lines if it is long."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    taken = [each for each in found.parameters.values() if each.name not in ("self", "cls")]
    kinds = [each.kind for each in taken]
    parts = [_parameter(each) for each in taken]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    has_result = not isinstance(value, type) and found.return_annotation is not found.empty
    gives = f" -> {_type(found.return_annotation)}" if has_result else ""
    line = f"{name}({', '.join(parts)}){gives}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){gives}"


def _parameter(each: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(each.kind, "")
    has_type = each.annotation is not each.empty
    told = f"{stars}{each.name}{f': {_type(each.annotation)}' if has_type else ''}"
    if each.default is each.empty:
        return told
    default = repr(each.default)
    if " at 0x" in default or default.startswith("<"):
        default = getattr(each.default, "__name__", "...")
    return f"{told} = {default}" if has_type else f"{told}={default}"


def _type(annotation: Any) -> str:
    """A type as it is written, without the modules."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])", "", text)


def _parameters(value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    named = []
    for each in found.parameters.values():
        if each.name in ("self", "cls"):
            continue
        prefix = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(each.kind, "")
        is_option = each.default is not each.empty or each.kind is inspect.Parameter.KEYWORD_ONLY
        named.append(f"{prefix}{each.name}{'=' if is_option and not prefix else ''}")
    return f"({', '.join(named)})"


def docstring(value: Any) -> str:
    """A docstring as markdown: two columns as a table, doctests and indented code as code."""
    return "\n\n".join(_block(block) for block in _blocks(inspect.getdoc(value) or ""))


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in text.splitlines():
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


_TWO_COLUMNS = re.compile(r"^(\S.*?) {2,}(\S.*)$")


def _block(lines: list[str]) -> str:
    if lines[0].lstrip().startswith(">>>"):
        return _code("\n".join(textwrap.dedent("\n".join(lines)).splitlines()), "pycon")
    if all(line.startswith("    ") for line in lines) or lines[0].startswith("@"):
        return _code(textwrap.dedent("\n".join(lines)))
    if _TWO_COLUMNS.match(lines[0]) and all(_TWO_COLUMNS.match(line) or line.startswith("  ") for line in lines):
        return _table(lines)
    for place, line in enumerate(lines):  # a sentence, and right below it a table or an example
        if place and line.lstrip().startswith(">>>"):
            return _block(lines[:place]) + "\n\n" + _block(lines[place:])
    return _inline("\n".join(lines))


def _table(lines: list[str]) -> str:
    rows: list[list[str]] = []
    for line in lines:
        found = _TWO_COLUMNS.match(line)
        if found and not line.startswith("  "):
            rows.append([found[1], found[2]])
        else:
            rows[-1][1] += f" {line.strip()}"
    cells = [f"| {_names(name)} | {_cell(re.sub(r' {2,}', '; ', text))} |" for name, text in rows]
    return "\n".join(["| | |", "|---|---|", *cells])


def _names(text: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in text.replace("|", "\\|").split(","))


def _inline(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text) if "\n" in text else text


def _cell(text: str) -> str:
    return _inline(text).replace("|", "\\|")


def _first_line(value: Any) -> str:
    if not isinstance(value, (type, ModuleType)) and not callable(value) and not _is_explained(value):
        return f"a `{type(value).__name__}`"
    return _inline((inspect.getdoc(value) or "").split("\n\n")[0])


def _code(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}\n```"


# -- the command line ------------------------------------------------------------------------------------------------


def command_line() -> str:
    """Every command with its arguments and options, read off the app."""
    import typer.main

    app = importlib.import_module("streamtight.cli.app").app
    command = typer.main.get_command(app)
    lines = ["# Command line", "", _help(command.help), ""]
    commands = {name: each for name, each in sorted(command.commands.items()) if not each.hidden}  # type: ignore[attr-defined]
    lines += ["| command | |", "|---|---|"]
    lines += [
        f"| [`{name}`](#{name}) | {_cell((each.help or '').split(chr(10))[0])} |" for name, each in commands.items()
    ]
    for name, each in commands.items():
        context = importlib.import_module("typer").Context(each, info_name=f"streamtight {name}")
        usage = " ".join(each.collect_usage_pieces(context)).replace("{", "").replace("}", "").upper()
        lines += [
            "",
            f"## {name} {{ #{name} }}",
            "",
            _code(f"streamtight {name} {usage}", "text"),
            "",
            _help(each.help),
            "",
        ]
        rows = [row for parameter in each.params if (row := _option(parameter))]
        if rows:
            lines += ["| | |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _help(text: str | None) -> str:
    shown = inspect.cleandoc(text or "").replace("\b", "")
    return re.sub(r"^(Examples?: )(streamtight .*)$", r"\1`\2`", shown, flags=re.MULTILINE)


def _option(parameter: Any) -> str:
    said = getattr(parameter, "help", None) or ""
    if getattr(parameter, "hidden", False) or parameter.name == "help":
        return ""
    names = (
        parameter.opts + parameter.secondary_opts if parameter.param_type_name == "option" else [parameter.name.upper()]
    )
    default = parameter.default
    is_told = default not in (None, "", False, ()) and not callable(default) and default != []
    more = f" By default {default}." if is_told else ""
    return f"| {', '.join(f'`{name}`' for name in names)} | {_cell(said)}{more} |"


# -- mkdocs ----------------------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages to those of the site."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
_FINDING = re.compile(rf"(?<![\[\w`])`?({'|'.join(sorted(MEANINGS, key=len, reverse=True))})`?(?![\w`\]])")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Makes the name of a finding a link to its page."""
    here = page.file.src_uri
    return linked(markdown, here)


def linked(markdown: str, here: str) -> str:
    """The text with every name of a finding as a link, outside of code and titles."""
    up = "../" * here.count("/")

    def link(found: re.Match[str]) -> str:
        name = found[1]
        is_own = here == f"findings/{name}.md"
        return f"`{name}`" if is_own else f"[`{name}`]({up}findings/{name}.md)"

    def line(text: str) -> str:
        return text if text.startswith(("#", "    ")) else _FINDING.sub(link, text)

    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else "\n".join(map(line, part.split("\n"))) for part in parts)
