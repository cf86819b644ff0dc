"""The commands that ask: the seven verbs, laws and lint."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from streamtight.cli.answers import HOLDS, UNDECIDED, Answers, answering
from streamtight.cli.options import (
    Format,
    Inputs,
    JobPlace,
    Keep,
    Keys,
    Limit,
    Mode,
    On,
    Outputs,
    Promise,
    Quiet,
    Runs,
    Samples,
    Seconds,
    Seed,
    Upto,
    functions_in_files,
    place,
)
from streamtight.cli.serving import serve_page
from streamtight.errors import SourceError
from streamtight.source.kept import FOLDER

_PLACE = re.compile(r"[\w./\\-]+\.py:[\w.]+|[\w.]+:[\w.]+")


def compare(
    context: typer.Context,
    reference: Annotated[str, place("What is right: file.py:function; or a recorded output, a folder or a file.")],
    candidate: Annotated[str, place("What should give the same.")],
    inputs: Inputs = [],  # noqa: B006 - typer reads it only
    samples: Samples = [],  # noqa: B006
    on: On = "",
    promise: Promise = "",
    upto: Upto = "",
    mode: Mode = "append",
    keys: Keys = [],  # noqa: B006
    flush: Annotated[bool, typer.Option(help="Close every window at the end.")] = True,
    runs: Runs = 50,
    seed: Seed = 0,
    limit: Limit = 120.0,
    format_: Format = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
    keep: Keep = FOLDER,
) -> None:
    """Do two jobs, or two recorded outputs, give the same?

    Up to the order that matters to whoever reads it.

    Example: streamtight compare old.py:totals new.py:totals --input 'table[shop: str, amount: int]' --mode batch

    Example: streamtight compare out/old out/new --upto 'same(user)'
    """
    with answering(context) as answers:
        from streamtight.spark.compare import compare as asked
        from streamtight.spark.given import given_to, relation_given
        from streamtight.spark.load import load_function, place_of
        from streamtight.spark.recorded import recorded

        order = relation_given(upto, "--upto")
        if not _PLACE.fullmatch(reference) and not _PLACE.fullmatch(candidate):
            files = [recorded(str(_existing(one).resolve())) for one in (reference, candidate)]
            answers.add(asked(*files, upto=order, limit=max(limit, 3600.0)))
            return
        jobs = [load_function(reference), load_function(candidate)]
        answers.place = place_of(jobs[1])
        given = given_to(jobs, inputs=inputs, samples=samples, on=on, promise=promise)
        _tell_notes(answers, given.notes)
        more: dict[str, Any] = {} if given.takes is None else {"takes": given.takes}
        more |= {"key": tuple(keys)} if keys else {}
        answers.add(
            asked(*jobs, on=given.source, upto=order, mode=mode, flush=flush, runs=runs, seed=seed, limit=limit, **more)
        )


def laws(
    context: typer.Context,
    job: JobPlace,
    inputs: Inputs = [],  # noqa: B006
    samples: Samples = [],  # noqa: B006
    on: On = "",
    promise: Promise = "",
    upto: Upto = "",
    mode: Annotated[
        str, typer.Option(help="append, update, complete; auto takes the first that Spark permits.")
    ] = "auto",
    keys: Keys = [],  # noqa: B006
    only: Annotated[
        str, typer.Option(help="Some of cuts, partitions, order, restarts, batch, with commas between them.")
    ] = "",
    runs: Runs = 20,
    seed: Seed = 0,
    limit: Limit = 120.0,
    format_: Format = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
    keep: Keep = FOLDER,
) -> None:
    """Does a job mean the same however it is run? Begin here.

    It needs a function and its columns, or a sample of its rows. It tries whether the result depends on how the input
    is cut into micro-batches, spread over partitions and ordered, on restarts, and on being a stream; reads the plan
    for what depends on luck; and says what it did not look at.

    Example: streamtight laws jobs.py:sessions --sample clicks.csv

    Example: streamtight laws jobs.py:totals --input 'table[shop: str, amount: int?, at: timestamp]'
    """
    with answering(context) as answers:
        from streamtight.method.compare.jobs import LAWS
        from streamtight.spark.first_look import AUTO, STREAMING, FirstLook, first_look
        from streamtight.spark.given import given_to, relation_given
        from streamtight.spark.load import load_function, place_of

        wanted = [law.strip() for law in only.split(",") if law.strip()] or LAWS
        _require_known("--only", wanted, LAWS)
        _require_known("--mode", [mode], (AUTO, *STREAMING, "batch"))
        function = load_function(job)
        answers.place = place_of(function)
        given = given_to([function], inputs=inputs, samples=samples, on=on, promise=promise)
        _tell_notes(answers, given.notes)
        look = FirstLook()
        first_look(
            function,
            given,
            mode=mode,
            only=wanted,
            upto=relation_given(upto, "--upto"),
            key=tuple(keys),
            runs=runs,
            seed=seed,
            limit=limit,
            look=look,
            tell=answers.add,
        )
        for finding in look.findings:
            answers.note(f"lint: {finding}")
        if look.weighty and not any(verdict.fails for verdict in answers.verdicts):
            answers.end_with(UNDECIDED)
            answers.note("note: it ends with 2, since what the lint found was not shown by runs")
        for note in look.notes:
            answers.note(f"note: {note}")
        for unseen in look.not_looked_at():
            answers.note(f"not looked at: {unseen}")


def check(
    context: typer.Context,
    job: JobPlace,
    formula: Annotated[
        str,
        place(
            "What must hold: file.py:name; or a text over names of the job's file: 'always(bad >> banned, during=5)'."
        ),
    ],
    inputs: Inputs = [],  # noqa: B006
    samples: Samples = [],  # noqa: B006
    on: On = "",
    promise: Promise = "",
    mode: Mode = "append",
    length: Annotated[int, typer.Option(help="How many batches a case has; 0: as many as the formula needs.")] = 0,
    flush: Annotated[bool, typer.Option(help="Close every window at the end.")] = False,
    runs: Runs = 50,
    seed: Seed = 0,
    limit: Limit = 120.0,
    format_: Format = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
    keep: Keep = FOLDER,
) -> None:
    """Does every run of a job keep a promise over time?

    Example: streamtight check jobs.py:bans 'always(bad >> always(banned, during=5), during=9)' --on jobs.py:users
    """
    with answering(context) as answers:
        from streamtight.properties.parse import parse
        from streamtight.spark.check import check as asked
        from streamtight.spark.given import given_to
        from streamtight.spark.load import load_function, load_object, names_beside, place_of

        function = load_function(job)
        answers.place = place_of(function)
        if _PLACE.fullmatch(formula):
            wanted = load_object(formula)
        else:
            words = set(re.findall(r"\w+", formula))
            wanted = parse(formula, {name: one for name, one in names_beside(job).items() if name in words})
        given = given_to([function], inputs=inputs, samples=samples, on=on, promise=promise)
        _tell_notes(answers, given.notes)
        more: dict[str, Any] = {} if given.takes is None else {"takes": given.takes}
        more |= {"length": length} if length else {}
        answers.add(
            asked(function, wanted, on=given.source, mode=mode, flush=flush, runs=runs, seed=seed, limit=limit, **more)
        )


def prove(
    context: typer.Context,
    left: Annotated[str, place("A program: file.py:function, or module:function.")],
    right: Annotated[str, place("The program that should be equal to it.")],
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input", help="What an input holds, one for each parameter: 'rdd[int]', 'table[k: int, v: int?]'."
        ),
    ] = [],  # noqa: B006
    samples: Samples = [],  # noqa: B006
    seconds: Seconds = 10.0,
    seed: Seed = 0,
    overflow: Annotated[bool, typer.Option(help="Also ask whether both raise where a number grows too large.")] = False,
    format_: Format = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
    keep: Keep = FOLDER,
) -> None:
    """Are two programs equal on every input?

    Example: streamtight prove old.py:clean new.py:clean --input 'table[k: int, v: int?]'
    """
    with answering(context, searches=False) as answers:
        from streamtight.spark.given import tables_given
        from streamtight.spark.load import load_function, place_of
        from streamtight.spark.prove import prove_places

        given = tables_given(inputs=inputs, samples=samples)
        answers.place = place_of(load_function(right))
        answers.add(prove_places(left, right, inputs=given, overflow=overflow, seconds=seconds, seed=seed))


def typecheck(
    context: typer.Context,
    program: Annotated[str, place("A job, file.py:function; or a typed graph, operator or transformer, file.py:name.")],
    inputs: Inputs = [],  # noqa: B006
    samples: Samples = [],  # noqa: B006
    gives: Annotated[
        str, typer.Option(help="The order that the result must have: 'ordered', or 'same(user)'. Any, if not given.")
    ] = "",
    mode: Mode = "batch",
    confirm: Annotated[bool, typer.Option(help="Run the job on Spark, to show what was found.")] = True,
    runs: Runs = 12,
    seed: Seed = 0,
    format_: Format = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
    keep: Keep = FOLDER,
) -> None:
    """Does a result depend on an order that nobody fixes?

    Or on a choice. Of a job, its plan is read, and what is found is shown by runs; the functions of typed graphs are
    proved, or tried.

    Example: streamtight typecheck jobs.py:newest --input "table[user: str, at: timestamp].key('user')"
    """
    with answering(context, searches=False) as answers:
        from streamtight.method.typecheck.parse_order import parse_order
        from streamtight.program.operators import Graph, Operator
        from streamtight.program.transformer import Transformer
        from streamtight.spark.given import tables_given
        from streamtight.spark.load import load_object, place_of
        from streamtight.spark.typecheck import typecheck as asked

        found = load_object(program)
        answers.place = place_of(found)
        if isinstance(found, Graph | Operator | Transformer):
            answers.add(asked(found, seed=seed))
            return
        takes: Any = tables_given(inputs=inputs, samples=samples)
        order = parse_order(gives)
        answers.add(asked(found, takes=takes, gives=order, mode=mode, confirm=confirm, runs=runs, seed=seed))


def parallelize(
    context: typer.Context,
    program: Annotated[str, place("A ForkJoin program: file.py:name of its class or of one made of it.")],
    streams: Annotated[
        str,
        typer.Option(
            help="Your list of InputStreams, file.py:name; by default one for each kind, as fast as the others.",
            autocompletion=functions_in_files,
        ),
    ] = "",
    workers: Annotated[int, typer.Option(min=0, help="How many workers the plan has; 0: as many as can be alone.")] = 0,
    cases: Annotated[int, typer.Option(min=1, help="How many inputs are tried.")] = 100,
    seconds: Seconds = 10.0,
    seed: Seed = 0,
    format_: Format = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
    keep: Keep = FOLDER,
) -> None:
    """Does a program give the same on any number of workers?

    And which plan is best for its streams?

    Example: streamtight parallelize windows.py:Windows --workers 4
    """
    with answering(context, searches=False) as answers:
        from streamtight.method.parallelize.consistency import consistent
        from streamtight.method.parallelize.optimize import plan
        from streamtight.program.fork_join import ForkJoin
        from streamtight.program.plan import InputStream
        from streamtight.spark.load import load_object, place_of
        from streamtight.spark.progress import clear, saying

        found = load_object(program)
        answers.place = place_of(found)
        made = found() if isinstance(found, type) and issubclass(found, ForkJoin) else found
        verdict = consistent(made, cases=cases, seconds=seconds, seed=seed, progress=saying)
        clear()
        answers.add(verdict)
        given = load_object(streams) if streams else [InputStream(kind.name, kind) for kind in made.takes]
        best = plan(made, given, workers=workers or None, seed=seed)
        answers.pictures[0] = best.picture()
        answers.note(f"plan\n{best.show()}")
        for remark in best.remarks:
            answers.note(f"note: {remark}")


def watch(
    context: typer.Context,
    query: Annotated[
        str, place("A query, file.py:name; or its text: 'count() > 3'. With --serve: the board, a folder.")
    ] = "",
    data: Annotated[
        Path | None, typer.Argument(help="The rows: a Parquet, CSV or JSON file, or a folder of Parquet files.")
    ] = None,
    keys: Annotated[
        list[str], typer.Option("--key", help="A column that tells one stream from another. Once for each.")
    ] = [],  # noqa: B006
    order_by: Annotated[list[str], typer.Option(help="A column that orders the rows of a stream. Once for each.")] = [],  # noqa: B006
    value: Annotated[str, typer.Option(help="The column that is `cur`.")] = "",
    tags: Annotated[str, typer.Option(help="The column with the tag of a row.")] = "",
    answers_of: Annotated[
        str,
        typer.Option(
            "--outputs",
            help="values: an answer for each row; changes; alarms: is it true all the time? That is a verdict.",
        ),
    ] = "values",
    others: Annotated[str, typer.Option(help="Rows without a tag of the query: refuse, ignore or pass.")] = "refuse",
    ties: Annotated[str, typer.Option(help="Different rows of equal order: refuse, or any.")] = "refuse",
    rows: Annotated[int, typer.Option(min=1, help="How many rows are shown at most.")] = 20,
    format_: Annotated[
        str, typer.Option("--format", help="text, or json (a line for each row); of alarms also junit, sarif and html.")
    ] = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the jobs that run, on a page: those that were started with board=.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="With --serve: where the page is. Another address than 127.0.0.1 needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve: 0 for any that is free.")] = 8765,
    token: Annotated[
        str,
        typer.Option(
            envvar="STREAMTIGHT_TOKEN",
            help="With --serve: what must be known to see the page. Made and printed where one is needed.",
        ),
    ] = "",
) -> None:
    """What is the value of a query after every row of a file?

    Or is a property still true? With --outputs alarms, that is a verdict. With --serve, a page that shows running jobs.

    Example: streamtight watch 'sum(cur)' readings.csv --key sensor --order-by at --value degrees

    Example: streamtight watch jobs.py:never_too_fast trips.parquet --key taxi --order-by at --outputs alarms

    Example: streamtight watch --serve
    """
    if serve:
        serve_page(query, more=data, host=host, port=port, token=token)
        return
    if not query or data is None:
        raise typer.BadParameter("needed: a query and the rows it is asked of; or --serve", context)
    is_verdict = answers_of == "alarms"
    with answering(context, searches=False, **({} if is_verdict else {"formats": ("text", "json")})) as answers:
        from streamtight.properties.query_parse import parse_query
        from streamtight.spark.load import load_object, place_of
        from streamtight.spark.watch_files import alarms_of, values_of

        asked = load_object(query) if _PLACE.fullmatch(query) else parse_query(query)
        answers.place = place_of(asked)
        options: dict[str, Any] = {"key": keys, "order_by": order_by, "value": value or None, "tags": tags or None}
        options |= {"others": others, "ties": ties}
        if is_verdict:
            answers.add(alarms_of(asked, data, options, told=query, rows=rows))
            return
        found = values_of(asked, data, {**options, "outputs": answers_of}, rows=rows, as_json=answers.format == "json")
        answers.say(found.text)
        answers.end_with(HOLDS)
        if found.left_out:
            answers.note(
                f"{found.left_out} more rows are not shown: --rows {rows + found.left_out} shows all", aside=True
            )


def explore(
    context: typer.Context,
    program: Annotated[str, place("A pipeline, or stateful code: file.py:name.")],
    claim: Annotated[
        str,
        place(
            "live, live(within=3), no_full_queues, never_stops, same_steps(other), ...; 'AG EF out'; or file.py:name."
        ),
    ],
    queue: Annotated[int, typer.Option(min=1, help="How many events a queue holds.")] = 3,
    domain: Annotated[str, typer.Option(help="Which whole numbers: 4, 'modulo(4)', 'whole(0, 9)'.")] = "4",
    full: Annotated[str, typer.Option(help="An event that comes to a full queue: stop, or drop.")] = "stop",
    pauses: Annotated[bool, typer.Option(help="A push may bring nothing.")] = False,
    together: Annotated[bool, typer.Option(help="A push brings events on all inputs.")] = False,
    ends: Annotated[bool, typer.Option(help="The streams may end.")] = False,
    resets: Annotated[bool, typer.Option(help="The pipeline may start anew.")] = False,
    leaks: Annotated[bool, typer.Option(help="Events may be lost in the pipes.")] = False,
    on: Annotated[
        str,
        typer.Option(
            help="For stateful code: the events that can come, file.py:name.", autocompletion=functions_in_files
        ),
    ] = "",
    keys: Annotated[list[str], typer.Option("--key", help="For a StatefulProcessor: a column of its key.")] = [],  # noqa: B006
    job: Annotated[
        str, typer.Option(help="A streaming job that uses the code, to run a counterexample on Spark.")
    ] = "",
    states: Annotated[int, typer.Option(min=1, help="How many states may be looked at.")] = 1_000_000,
    seconds: Seconds = 60.0,
    engine: Annotated[str, typer.Option(help="auto, symbols, search or sat.")] = "auto",
    format_: Format = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
    keep: Keep = FOLDER,
) -> None:
    """What can this pipeline do, whatever comes in?

    Example: streamtight explore pipelines.py:sums live --domain 4

    Example: streamtight explore pipelines.py:sums 'G (in -> F out)' --queue 5
    """
    with answering(context, searches=False) as answers:
        from streamtight.program.limits import parse_integers
        from streamtight.properties.parse_claim import parse_claim
        from streamtight.spark.explore import explore as asked
        from streamtight.spark.load import load_function, load_object, names_beside, place_of

        found = load_object(program)
        answers.place = place_of(found)
        wanted = load_object(claim) if _PLACE.fullmatch(claim) else parse_claim(claim, names_beside(program))
        options: dict[str, Any] = {"states": states, "seconds": seconds, "engine": engine}
        options |= {"queue": queue, "domain": parse_integers(domain), "full": full, "pauses": pauses}
        options |= {"together": together, "ends": ends, "resets": resets, "leaks": leaks}
        options |= {"on": load_object(on)} if on else {}
        options |= {"key": keys} if keys else {}
        options |= {"job": load_function(job)} if job else {}
        answers.add(asked(found, wanted, **options))


def lint(
    context: typer.Context,
    place: Annotated[str, place("A function, file.py:function; or a script, file.py.")],
    inputs: Annotated[
        list[str],
        typer.Option("--input", help="The columns of each table: \"table[k: int, v: int?].key('k')\"."),
    ] = [],  # noqa: B006
    samples: Samples = [],  # noqa: B006
    gives: Annotated[
        str, typer.Option(help="The order that the result must have: 'ordered', or 'same(user)'. Any, if not given.")
    ] = "",
    mode: Annotated[str, typer.Option(help="batch; or of a stream: append, update, complete.")] = "batch",
    confirm: Annotated[bool, typer.Option(help="Run the function on Spark, to show what was found.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Inputs that --confirm tries for each finding.")] = 12,
    seed: Annotated[int, typer.Option(help="Of these inputs.")] = 0,
    format_: Format = "",
    outputs: Outputs = [],  # noqa: B006
    quiet: Quiet = False,
) -> None:
    """Where does a job depend on luck: on an order, on a choice?

    A script without a function is run: it reads, shows, collects and counts; it does not write, and starts no stream.

    Ends with 0 if nothing was found, 1 if it was shown, 2 if it was found but not shown or not all could be read, 3 if
    the question was wrong.

    Example: streamtight lint jobs.py:latest --input 'table[user: str, at: timestamp]' --confirm
    """
    with answering(context, searches=False) as answers:
        from streamtight.method.typecheck.parse_order import parse_order
        from streamtight.report.sarif import as_sarif, findings_json
        from streamtight.spark.given import tables_given
        from streamtight.spark.lint_script import lint as asked

        given = tables_given(inputs=inputs, samples=samples, needs=not place.endswith(".py"))
        order = parse_order(gives)
        found = asked(place, inputs=given, gives=order, mode=mode, confirm=confirm, runs=runs, seed=seed)
        if answers.format == "sarif":
            answers.say(as_sarif(found.findings))
        elif answers.format == "json":
            answers.say(findings_json(found.findings, found.unknown))
        elif answers.format == "text":
            for line in [*map(str, found.findings), *found.unknown]:
                answers.say(line)
        else:
            for verdict in found.verdicts(place):
                answers.add(verdict)
        answers.note(found.told, aside=True)
        answers.end_with(found.exit_code)


def _require_known(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Raise before Spark starts, and in words of the command line."""
    for one in given:
        if one not in known:
            near = difflib.get_close_matches(one, known, cutoff=0.4) or known
            raise SourceError(
                f"{option} {one}", needed="one of " + ", ".join(known), came=one, hint=f"{option} {near[0]}"
            )


def _existing(path: str) -> Path:
    if not Path(path).exists():
        raise SourceError(
            path,
            needed="a recorded output that is there, or a job",
            came="no such file or folder",
            hint="out/old out/new, or jobs.py:old jobs.py:new",
        )
    return Path(path)


def _tell_notes(answers: Answers, notes: tuple[str, ...]) -> None:
    for note in notes:
        answers.note(f"note: {note}")


COMMANDS = (compare, laws, check, prove, typecheck, parallelize, watch, explore, lint)
