"""Secrets in texts of others are hidden; everything else stays as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtight.errors import JobError, RowError
from streamtight.redaction import HIDDEN, data_without_secrets, without_secrets
from streamtight.report.write import FORMATS, render
from streamtight.source.kept import Kept
from streamtight.stream.event import Kind
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

ROOT = Path(__file__).parents[1]
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"

# {} is the secret, {url} the same as an address has it.
PLACES = [
    'kafka.sasl.jaas.config={login} username="ann" password="{}";',
    "{{'kafka.sasl.jaas.config': '{login} username=\"ann\" password=\"{}\";', 'subscribe': 'a'}}",
    'Map(kafka.sasl.jaas.config -> {login} username="ann" password="{}" user_ann="{}";, subscribe -> a)',
    '{login} username="ann"\n    password="{}";',
    'KafkaAdminClient({login} password={} serviceName="kafka") failed',
    "Map(kafka.bootstrap.servers -> h:9092, kafka.ssl.key.password -> {}, subscribe -> t)",
    "kafka.ssl.truststore.password={}",
    "CaseInsensitiveStringMap[kafka.ssl.keystore.password={}, path=/a]",
    "{{'kafka.ssl.key.password': '{}'}}",
    '{{"kafka.ssl.key.password": "{}", "topic": "t"}}',
    '.option("kafka.ssl.key.password", "{}")',
    "redis://ann:{url}@cache:6379/0",
    "redis://:{url}@cache:6379/0",
    "rediss://ann:{url}@cache:6379?db=1",
    "amqp://ann:{url}@mq",
    "https://{url}@git.example/x.git",
    "jdbc:postgresql://db/shop?user=ann&password={url}&ssl=true",
    "jdbc:mysql://ann:{url}@db:3306/shop",
    "jdbc:sqlserver://db:1433;user=ann;password={url};encrypt=true",
    "jdbc:oracle:thin:ann/{url}@db:1521/shop",
    "https://api.example/x?access_token={url}&n=1",
    "https://api.example/x?token={url}",
    "https://bucket.example/k?X-Amz-Signature={url}&X-Amz-Date=1",
    "https://lake.example/k?sv=2024&sig={url}",
    "spark.hadoop.fs.s3a.secret.key={}",
    "(spark.hadoop.fs.s3a.secret.key,{})",
    "spark.hadoop.fs.s3a.session.token -> {}",
    "fs.azure.account.key.lake.dfs.core.windows.net: {}",
    "AccountName=lake;AccountKey={};EndpointSuffix=x",
    "AWS_SECRET_ACCESS_KEY={}",
    "STREAMTIGHT_KEY and DB_PASSWORD={}",
    '"client_secret": "{}"',
    "{{'api_key': '{}', 'n': 1}}",
    "Authorization: Bearer {}",
    "'Authorization': 'Basic {}'",
    "dsn was host=db user=ann password={} dbname=shop",
]
# In messages, which show no rows, these too.
MESSAGE_PLACES = [
    "Redis(host='cache', password='{}')",
    "password = '{}'",
    '.option("password", "{}")',
    "db.password = {}",
]

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SECRETS = st.text(LETTERS + "+/=!$%^~_-.:@#", min_size=6, max_size=40).map(lambda some: f"Zq{some}7")


def with_secret(place: str, secret: str) -> str:
    return place.format(secret, secret, url=quote(secret, safe=""), login=LOGIN)


def shows(text: str, secret: str) -> bool:
    return secret in text or quote(secret, safe="") in text


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=30, deadline=None)
@given(secret=SECRETS, before=st.sampled_from(["", "it failed: ", "x="]), strict=st.booleans())
def test_a_secret_is_hidden_wherever_it_stands(place: str, secret: str, before: str, strict: bool) -> None:
    told = without_secrets(before + with_secret(place, secret), strict=strict)

    assert not shows(told, secret)
    assert HIDDEN in told
    assert without_secrets(told, strict=strict) == told


@pytest.mark.parametrize("place", [*PLACES, *MESSAGE_PLACES])
@settings(max_examples=20, deadline=None)
@given(secret=SECRETS)
def test_what_a_job_raised_shows_no_secret(place: str, secret: str) -> None:
    text = with_secret(place, secret)

    error = JobError("the job", needed="no exception", came=text, hint="x", batch=0, raised=text)

    assert not shows(str(error) + error.came + error.raised, secret)


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=5, deadline=None)
@given(secret=SECRETS)
def test_no_report_and_no_kept_file_shows_a_secret(place: str, secret: str) -> None:
    text = with_secret(place, secret)
    found = Counterexample("RAISED", text, replay=f"job() # {text}", reruns=1, failing_reruns=1)
    verdicts = [
        Verdict("a", Outcome.FAILS, Scope.proved(), found),
        Verdict(f"b {text}", Outcome.UNDECIDED, Scope.proved(), reason=text),
    ]
    data = [verdict.as_data() for verdict in verdicts]

    reports = [render(data, name, "t", [text]) for name in FORMATS]
    kept = Kept.of(verdicts[0], {"test": "x"})

    for report in (*reports, kept.code, kept.explanation, verdicts[0].reason or "", str(verdicts[1].reason)):
        assert not shows(report, secret)


ORDINARY = [
    "Login(user='ann', token='t-1', password='sesame')",
    "Row(token='abc', key='k', secret=None)",
    "Kind Login(password: str | None, token: str)",
    "Login.password: needed str; came None. Try: declare the field as str | None if it may be missing",
    "(a.token#1 = b.token#2) AND (a.password = b.password)",
    "SELECT a.token = b.token FROM a",
    "unexpected token='x', at token=5",
    "same('token'), PartitionBy('api_key')",
    "secretary=bob, passenger=7, compass=N, tokenize=on, keyword=k, monkey=1",
    "http://127.0.0.1:8080/path@v1, hdfs://name:8020/a, s3a://bucket/k, abfss://lake@account.dfs.core",
    "write to ann@example.org: passwords expire",
    "kafka.bootstrap.servers -> h:9092, kafka.ssl.truststore.location=/a/b, subscribe -> tokens",
    "kafka.sasl.oauthbearer.token.endpoint.url=https://login.example/t",
    "max.token.count=3, password_length=12, token -> x, password=None",
    "file:///a/b?c=d&e=f;g=h",
    "a:b@c, 12:30@home, ://, ://@, =, ->, \x00, 'password': ",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_stay_as_they_are(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("text", [text for text in ORDINARY if "sesame" not in text and "token='" not in text])
def test_ordinary_messages_stay_as_they_are_too(text: str) -> None:
    without_sql = text.replace("(a.password = b.password)", "")

    assert without_secrets(without_sql, strict=True) == without_sql


def test_the_texts_that_we_write_ourselves_stay_as_they_are() -> None:
    """The goldens of all reports and stories, the pages of all findings: thousands of lines that hold no secret."""
    files = [*(ROOT / "tests" / "golden").rglob("*.*"), *(ROOT / "docs" / "findings").glob("*.md")]
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in (".txt", ".md", ".json", ".xml")]

    assert len(texts) > 50
    for text in texts:
        assert without_secrets(text) == text


@settings(max_examples=300, deadline=None)
@given(st.text(LETTERS + " \n.,:;(){}[]'\"#-+*/\\<>|é€", max_size=200))
def test_texts_without_settings_and_addresses_stay_as_they_are(text: str) -> None:
    assert without_secrets(text) == text


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(["password", "=", "'", '"', "\\", ";", "://", "a:b@", "jaas.config", " ", "\n", "->", "x"])
    )
)
def test_any_text_is_read_and_hiding_twice_hides_no_more(parts: list[str]) -> None:
    told = without_secrets("".join(parts), strict=True)

    assert without_secrets(told, strict=True) == told


def test_rows_are_left_as_they_are_in_errors_and_reports() -> None:
    Login = Kind("Login", user=str, password=str, site=str)  # noqa: N806
    row = Login("ann", "sesame", "https://ann:sesame@x.example/")
    found = Counterexample("MISSING_ROWS", "a row is missing", expected=(row,), actual=())
    verdict = Verdict("a", Outcome.FAILS, Scope.proved(), found)

    data = json.loads(render([verdict.as_data()], "json"))["verdicts"][0]

    assert data["counterexample"]["expected"][0]["fields"] == row.as_dict()
    assert "password='sesame'" in str(RowError(repr(row.replace(site="")), needed="a", came="b", hint="c"))


def test_all_texts_in_data_are_read() -> None:
    data = {"a": ["password=sesame", 7, None], "password": "sesame", "n": ({"b": "redis://:sesame@h"},)}

    told = data_without_secrets(data)

    assert told == {"a": ["password=***", 7, None], "password": "sesame", "n": [{"b": "redis://:***@h"}]}


@pytest.mark.parametrize(
    "part", ["a", "password=", "://a:", '"', "LoginModule required x=", "password='", "Bearer ", "\\"]
)
def test_long_texts_take_time_in_proportion(part: str) -> None:
    def seconds(letters: int) -> float:
        text = (part * letters)[:letters]
        begin = time.process_time()
        without_secrets(text, strict=True)
        return time.process_time() - begin

    few, many = min(seconds(50_000) for _ in range(3)), min(seconds(400_000) for _ in range(2))

    assert many < 8 * 4 * few + 0.2  # 64 times as much if it were quadratic


def test_doctor_shows_no_secret_of_the_environment() -> None:
    secret = "Zq-geheim-77"  # noqa: S105
    settings = {"AWS_SECRET_ACCESS_KEY": secret, "DB_PASSWORD": secret, "JAVA_HOME": f"/x?password={secret}"}
    settings |= {
        "SPARK_CONF_DIR": f"redis://ann:{secret}@h/",
        "PYSPARK_SUBMIT_ARGS": f"--conf spark.x.password={secret}",
    }

    told = subprocess.run(
        [sys.executable, "-m", "streamtight", "doctor"],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "JAVA_HOME" in told.stdout
    assert secret not in told.stdout + told.stderr
