"""Texts of others without their secrets: what Spark, Kafka, Redis or the user's code says may hold passwords and keys.

>>> without_secrets("no broker for kafka.ssl.key.password=sesame at redis://app:sesame@cache:6379/0")
'no broker for kafka.ssl.key.password=*** at redis://app:***@cache:6379/0'

Secrets are known by where they stand: in an address, in the login of JAAS, after a name that is a setting's. The value
of a column is the user's data, whatever the column is called: a text that shows rows is read less strictly than a
message.

>>> row = "Login(user='ann', token='t-1', password='sesame')"
>>> without_secrets(row) == row
True
>>> without_secrets(row, strict=True)
"Login(user='ann', token='t-1', password='***')"
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

# One look first, since most texts have nothing to hide.
_MAYBE = re.compile(
    r"pass|pwd|secret|token|cred|key|jaas|loginmodule|://|authorization|bearer|:thin:|sig|A[KS]IA|gh[pousr]_|xox|dapi|eyJ",
    re.IGNORECASE,
)


def without_secrets(text: str, *, strict: bool = False) -> str:
    """The text with *** for every secret in it.

    strict   for messages, which show no rows: there, password='...' is hidden too
    """
    if not _MAYBE.search(text):
        return text
    small = text.lower()
    for needed, pattern, instead in _SHAPES:
        if needed in small:
            text = pattern.sub(instead, text)
    return _without_values(text, strict)


def data_without_secrets(data: Any) -> Any:
    """The same lists, dicts and texts, without secrets in any text."""
    if isinstance(data, str):
        return without_secrets(data)
    if isinstance(data, Mapping):
        return {name: data_without_secrets(inner) for name, inner in data.items()}
    return [data_without_secrets(inner) for inner in data] if isinstance(data, list | tuple) else data


# -- by their shape --------------------------------------------------------------------------------------------------

# Possessive throughout (++, *+): a text of megabytes must not take minutes.
_DOUBLE, _SINGLE = r'"(?:[^"\\]|\\.)*+"?', r"'(?:[^'\\]|\\.)*+'?"
# What a text must have for a pattern to be tried; the pattern; what stands for the secret.
_SHAPES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # user:secret@ in an address, up to the last @ before its path
    ("@", re.compile(r"(?<=://)([^\s:/@?#\"'<>]*+):([^\s/?#\"'<>]*)@"), rf"\1:{HIDDEN}@"),
    # a token alone before the host; in other addresses a name stands there, as in abfss://container@account
    ("@", re.compile(r"(?<=https://)[^\s:/@?#\"'<>]++@"), f"{HIDDEN}@"),
    (":thin:", re.compile(r"(?<=:thin:)([^\s/@\"']++)/([^\s@\"']++)@"), rf"\1/{HIDDEN}@"),
    # Kafka's logins: all options of a login module
    (
        "loginmodule",
        re.compile(
            r"(LoginModule\s++(?:required|requisite|sufficient|optional))"
            rf"(?:\s++[\w.]++\s*+=\s*+(?:{_DOUBLE}|{_SINGLE}|[^\s;]++))++",
            re.DOTALL | re.IGNORECASE,
        ),
        rf"\1 {HIDDEN}",
    ),
    (
        "private key",
        re.compile(r"(-----BEGIN [A-Z ]*+PRIVATE KEY-----).*?(-----END [A-Z ]*+PRIVATE KEY-----|\Z)", re.DOTALL),
        rf"\1{HIDDEN}\2",
    ),
    (
        "authorization",
        re.compile(
            r"\b(authorization[\"']?\s*+[:=]\s*+[\"']?)((?:basic|bearer|digest|negotiate|token)\s++)?+[^\s\"',;*]++",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
    ("bearer", re.compile(r"\b(Bearer\s++)(?=[\w.~+/=-]*\d)[\w.~+/=-]{12,}", re.IGNORECASE), rf"\1{HIDDEN}"),
    # what clouds and services give out, which nothing else looks like
    ("ia", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), HIDDEN),
    ("_", re.compile(r"\b(?:gh[pousr]_\w{30,}|github_pat_\w{30,})\b"), HIDDEN),
    ("-", re.compile(r"\b(?:glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,})"), HIDDEN),
    ("dapi", re.compile(r"\bdapi[0-9a-f]{32}\b"), HIDDEN),
    ("eyj", re.compile(r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"), HIDDEN),
)


# -- by the names before them ----------------------------------------------------------------------------------------

_NAME = re.compile(
    r"(?<![\w.\-$])(?P<quote>\\?[\"']?)(?P<name>[A-Za-z_]\w*+(?:[.\-]\w++)*+)(?P=quote)(?P<between>\s*+(?:=|->|:|,)\s*+)"
)
_VALUE = re.compile(rf"{_DOUBLE}|{_SINGLE}|\\\"[^\"\\]*+\\?\"?|[^\s,;&)\]}}\"'<>|]++", re.DOTALL)
_JAAS_VALUE = re.compile(rf"{_DOUBLE}|{_SINGLE}|(?:{_DOUBLE}|{_SINGLE}|[^;\"'\n])++", re.DOTALL)
_NO_SECRETS = frozenset({"None", "null", "True", "False", "true", "false", "''", '""', HIDDEN})

_ALONE = frozenset({
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "credential", "credentials", "jaas",
    "apikey", "accesskey", "secretkey", "accountkey", "privatekey", "authtoken", "accesstoken", "refreshtoken",
    "sharedkey"
})  # fmt: skip
_BEFORE_KEY = frozenset({
    "access", "secret", "api", "account", "private", "shared", "encryption", "sas", "storage", "signing", "master"
})  # fmt: skip
_BEFORE_TOKEN = frozenset({
    "access", "auth", "refresh", "bearer", "session", "security", "api", "sas", "id", "oauth", "delegation", "user"
})  # fmt: skip
_IN_ADDRESSES = frozenset({"token", "sig", "signature", "auth", "key"})
# What tells about a secret and is none: kafka.ssl.truststore.location, token.endpoint.url, password_length.
_ABOUT = frozenset({
    "count", "counts", "length", "len", "size", "file", "files", "path", "location", "type", "class", "provider",
    "policy", "algorithm", "expiry", "expires", "ttl", "timeout", "interval", "lifetime", "enabled", "ms", "seconds",
    "max", "min", "renewal", "endpoint", "url", "uri", "format", "mode", "encoder", "service"
})  # fmt: skip
# What settings of systems begin with; anything else with dots may be a table and a column.
_SYSTEMS = frozenset({
    "spark", "kafka", "ssl", "sasl", "fs", "hadoop", "dfs", "hive", "javax", "aws", "azure", "google", "s3a",
    "redis", "jdbc", "producer", "consumer", "admin", "confluent", "schema"
})  # fmt: skip
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[._\-]+")


def _without_values(text: str, strict: bool) -> str:
    parts: list[str] = []
    done = 0
    for found in _NAME.finditer(text):
        if found.start() < done or not _is_setting(text, found, strict):
            continue
        is_jaas = "jaas" in found["name"].lower()
        if is_jaas and text.startswith(HIDDEN, found.end()):
            continue
        value = (_JAAS_VALUE if is_jaas else _VALUE).match(text, found.end())
        if value is None or value[0] in _NO_SECRETS or (not strict and not is_jaas and _is_column(found, value[0])):
            continue
        quote = value[0][0] if value[0][0] in "\"'" else ""
        closing = quote if len(value[0]) > 1 and value[0].endswith(quote) else ""
        parts += [text[done : found.end()], quote, HIDDEN, closing]
        done = value.end()
    return "".join([*parts, text[done:]])


def _is_setting(text: str, found: re.Match[str], strict: bool) -> bool:
    """Is what follows the value of a setting that is secret, by its name and by how it is written?"""
    name, between = found["name"], found["between"]
    before = text[found.start() - 1 : found.start()]
    sign, is_spaced = between.strip(), between != between.strip()
    words = [word for word in _CAMEL.sub(" ", name).lower().split() if word]
    if before in ("?", "&", ";") and between == "=" and not _IN_ADDRESSES.isdisjoint(words):
        return words[-1] not in _ABOUT
    if "." not in name and "-" not in name:
        if not _is_secret(words):
            return False
        if sign == ":":
            return bool(found["quote"])
        if sign == ",":  # .option("password", "...")
            return strict and before == "(" and bool(found["quote"])
        return sign == "->" or (sign == "=" and (strict or not is_spaced))
    if not _is_secret(words, of_system=True):
        return False
    of_system = words[0] in _SYSTEMS
    if sign == ",":
        return before == "(" and of_system
    if sign == ":":
        return bool(found["quote"]) or of_system
    # A condition of SQL has blanks around its sign: a.token = b.token.
    return sign == "->" or of_system or not is_spaced or (strict and _is_secret(words))


def _is_secret(words: list[str], *, of_system: bool = False) -> bool:
    if words[-1] in _ABOUT:
        return False
    if not _ALONE.isdisjoint(words) or (of_system and "token" in words):
        return True
    return any(
        (noun == "key" and which in _BEFORE_KEY) or (noun == "token" and which in _BEFORE_TOKEN)
        for which, noun in itertools.pairwise(words)
    )


def _is_column(found: re.Match[str], value: str) -> bool:
    """May this be a row as Python writes it, name='value'?"""
    return not found["quote"] and found["between"] == "=" and value.startswith("'") and "." not in found["name"]
