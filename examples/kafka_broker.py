"""An Apache Kafka broker of one's own, on a free port of this machine, for as long as a block runs.

One node without ZooKeeper (KRaft), in a folder that goes with it. Its jars, and Spark's connector, come from Maven's
own repository once and stay in a cache: `$STREAMTIGHT_CACHE`, or `streamtight` in the user's cache folder.

    with running(partitions=2) as broker:
        spark.readStream.format("kafka").options(**broker.options).option("subscribe", "clicks").load()

The session needs Spark's connector: `connect(SparkSession.builder)` before it starts. What cannot be had here (no mvn,
no Java, no network) is an `Unavailable` that says so.

    python examples/kafka_broker.py fetch     the jars, and which versions were found
    python examples/kafka_broker.py start     a broker until Ctrl-C
"""

import argparse
import base64
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
MEMORY = "512m"
SECONDS_TO_START = 60.0
SECONDS_TO_STOP = 20.0
SECONDS_TO_FETCH = 600.0

BROKERS = ("4.3.0", "4.2.0", "4.1.1", "4.1.0")
# Spark's connector goes with one version of Spark. Where that one is not to be had, the one before it may do: that of
# 4.2.0 was seen at work on Spark 4.3.0, that of 4.0.0 was seen to fail there. So at most one minor version back.
CONNECTORS = ("4.3.0", "4.2.1", "4.2.0", "4.1.2", "4.1.1", "4.1.0", "4.0.2", "4.0.1", "4.0.0")
# Few lines that seldom change, and missing in some mirrors: any version of it serves the connectors above.
TOKEN_PROVIDER = "4.0.0"  # noqa: S105 (a version)

USER = "streamtight"


class Unavailable(RuntimeError):
    """What is needed is not here, and why: a reason to skip, not a failure."""


# Tests load this file without a place among the modules, where dataclasses would look up annotations that are texts.
@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker: where it answers, and what Spark must be told."""

    address: str
    password: str | None = field(default=None, repr=False)

    @property
    def options(self) -> dict[str, str]:
        """The options of Spark's Kafka source and sink."""
        found = {"kafka.bootstrap.servers": self.address}
        if self.password is not None:
            found["kafka.security.protocol"] = "SASL_PLAINTEXT"
            found["kafka.sasl.mechanism"] = "PLAIN"
            found["kafka.sasl.jaas.config"] = _login(USER, self.password)
        return found


@dataclass(frozen=True, slots=True)
class Jars:
    """Jars in the cache, and the version that was found."""

    version: str
    files: tuple[Path, ...]


def missing() -> str | None:
    """Why no broker can be had here; None if its jars can be fetched, or are in the cache."""
    try:
        _java()
        if _cached("kafka-", BROKERS) is None:
            _maven()
    except Unavailable as why:
        return str(why)
    return None


def broker_jars() -> Jars:
    """The jars of the newest broker of the known ones; from the cache, or else from Maven's repository."""
    found = _cached("kafka-", BROKERS)
    if found is not None:
        return found
    reasons = []
    for version in BROKERS:
        try:
            # Without something to log to, a broker that does not start would not say why.
            log = ("org.slf4j:slf4j-simple:1.7.36",)
            return _fetched(f"kafka-{version}", version, (f"org.apache.kafka:kafka_2.13:{version}", *log))
        except _NotFound as reason:
            reasons.append(str(reason))
    raise Unavailable(f"no broker among Kafka {', '.join(BROKERS)}: {reasons[0]}")


def connector_jars(spark_version: str | None = None) -> Jars:
    """Spark's Kafka connector and what it needs that Spark has not: for this Spark, or for the release before it."""
    wanted = spark_version or _installed_spark()
    versions = [wanted, *(v for v in CONNECTORS if _may_serve(v, wanted))]
    found = _cached("spark-kafka-", versions)
    if found is not None:
        return found
    reasons = []
    for version in versions:
        for provider in dict.fromkeys((version, TOKEN_PROVIDER)):
            try:
                return _fetched(f"spark-kafka-{version}", version, _connector(version, provider), only=_FOR_SPARK)
            except _NotFound as reason:
                reasons.append(str(reason))
                if "token-provider" not in str(reason):  # the connector itself is missing
                    break
    raise Unavailable(f"no Kafka connector for Spark {wanted}, tried {', '.join(versions)}: {reasons[0]}")


def connect(builder: "SparkSession.Builder", jars: Jars | None = None) -> "SparkSession.Builder":
    """The same builder, of sessions that have Spark's Kafka connector. Only for sessions that are not yet running."""
    taken = jars or connector_jars()
    return builder.config("spark.jars", ",".join(str(file) for file in taken.files))


@contextlib.contextmanager
def running(
    *, partitions: int = 1, password: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Broker]:
    """A broker without topics; the first message to a topic makes it, with this many partitions.

    With a password it wants a login (SASL/PLAIN). `settings` are further lines of server.properties, for example
    `{"log.retention.ms": "600000"}`. At the end of the block the broker is stopped and all that it kept is gone.
    """
    java, jars = _java(), broker_jars()
    folder = Path(tempfile.mkdtemp(prefix="streamtight-kafka-"))  # nobody else may read it: it may have a password
    try:
        server, address = _started(java, jars, folder, partitions, password, settings or {})
        try:
            yield Broker(address, password)
        finally:
            _stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# What Spark brings itself (Scala, Hadoop, logging) must not come a second time, in other versions.
_FOR_SPARK = re.compile(r"spark-sql-kafka|spark-token-provider-kafka|kafka-clients|commons-pool2")


class _NotFound(Exception):
    """Maven answered that there is no such artifact."""


def _connector(version: str, provider: str) -> tuple[str, str]:
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{provider}",
    )


def _installed_spark() -> str:
    try:
        import pyspark
    except ImportError:
        raise Unavailable("PySpark is not installed, so there is no Spark to find a connector for") from None
    return re.sub(r"[^0-9.].*", "", pyspark.__version__)


def _may_serve(version: str, wanted: str) -> bool:
    (major, minor, patch), (of_major, of_minor, of_patch) = (
        (int(part) for part in (*text.split("."), "0", "0")[:3]) for text in (version, wanted)
    )
    return major == of_major and (minor == of_minor - 1 or (minor == of_minor and patch < of_patch))


def _cache() -> Path:
    chosen = os.environ.get("STREAMTIGHT_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamtight"


def _cached(prefix: str, versions: Iterable[str]) -> Jars | None:
    for version in versions:
        files = tuple(sorted((_cache() / f"{prefix}{version}").glob("*.jar")))
        if files:
            return Jars(version, files)
    return None


def _fetched(name: str, version: str, artifacts: Iterable[str], only: re.Pattern[str] | None = None) -> Jars:
    """The artifacts and what they need, in the cache. Raises _NotFound if Maven knows them not."""
    maven = _maven()
    try:
        _cache().mkdir(parents=True, exist_ok=True)
        # Beside its place, and moved there when whole: another process may be at it, and mvn may be interrupted.
        folder = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=_cache()))
    except OSError as why:
        raise Unavailable(f"the jars need a place, and {_cache()} cannot be written: {why}") from why
    try:
        (folder / "pom.xml").write_text(_pom(artifacts))
        command = [maven, "-B", "-q", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={folder / 'jars'}", "-DincludeScope=runtime", "-Dstyle.color=never"]
        try:
            told = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS_TO_FETCH, check=False
            )
        except subprocess.TimeoutExpired as why:
            raise Unavailable(f"mvn did not fetch {name} within {SECONDS_TO_FETCH:.0f} s") from why
        if told.returncode != 0:
            raise _reason(name, told.stdout + told.stderr)
        for file in (folder / "jars").glob("*.jar"):
            if only is not None and not only.search(file.name):
                file.unlink()
        with contextlib.suppress(OSError):  # somebody else was quicker
            (folder / "jars").rename(_cache() / name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = _cached(name.removesuffix(version), (version,))
    if found is None:
        raise Unavailable(f"mvn fetched {name} without an error, but there are no jars in {_cache() / name}")
    return found


def _pom(artifacts: Iterable[str]) -> str:
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in (artifact.split(":") for artifact in artifacts)
    )
    # Spark's own pom names a mirror that is asked first and is not reached from everywhere. A repository of the same
    # name that has nothing takes its place; what is left is what this machine's Maven is set up to use.
    no_mirror = (
        "<repository><id>gcs-maven-central-mirror</id><url>file:///none</url>"
        "<releases><enabled>false</enabled></releases><snapshots><enabled>false</enabled></snapshots></repository>"
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>streamtight</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
        f"<repositories>{no_mirror}</repositories><dependencies>{wanted}</dependencies></project>\n"
    )


def _reason(name: str, told: str) -> Exception:
    line = next((text for text in told.splitlines() if "[ERROR]" in text), told.strip() or "mvn said nothing")
    line = line.split("[ERROR]")[-1].strip()[:500]
    # A network that does not answer will not answer for the next version either.
    if re.search(r"Unknown host|Could not transfer|Connection|timed out|offline", line):
        return Unavailable(f"mvn cannot reach its repository for {name}: {line}")
    return _NotFound(line)


def _maven() -> str:
    found = shutil.which("mvn")
    if found is None:
        raise Unavailable("there is no mvn here to fetch jars with: apt install maven")
    return found


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise Unavailable("there is no java here to run Kafka with: apt install openjdk-17-jre-headless")
    return found


def _login(user: str, password: str) -> str:
    if re.search(r"""["\\\s]""", password):
        raise ValueError("the password of a broker: without quotes, backslashes and blanks, please")
    return (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{user}" password="{password}" user_{user}="{password}";'
    )


def _properties(
    folder: Path, ports: tuple[int, int], partitions: int, password: str | None, settings: Mapping[str, str]
) -> str:
    broker, controller = ports
    protocol = "PLAINTEXT" if password is None else "SASL_PLAINTEXT"
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"CLIENTS://{HOST}:{broker},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"CLIENTS://{HOST}:{broker}",
        "inter.broker.listener.name": "CLIENTS",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,CLIENTS:{protocol}",
        "log.dirs": str(folder / "log"),
        "num.partitions": str(partitions),
        "group.initial.rebalance.delay.ms": "0",
        # One node cannot have the three copies that are usual.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    if password is not None:
        lines["sasl.enabled.mechanisms"] = "PLAIN"
        lines["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
        lines["listener.name.clients.plain.sasl.jaas.config"] = _login(USER, password)
    return "".join(f"{key}={value}\n" for key, value in {**lines, **settings}.items())


def _started(
    java: str, jars: Jars, folder: Path, partitions: int, password: str | None, settings: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], str]:
    """The server and its address. A port that is free may be taken before the server has it: then once more."""
    told = ""
    for attempt in range(3):
        place = folder / str(attempt)
        place.mkdir()
        ports = _free_ports()
        (place / "server.properties").write_text(_properties(place, ports, partitions, password, settings))
        # A name that begins with "-" would be taken for an option; with this first byte it begins with "A".
        cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        options = ["-cp", os.pathsep.join(str(file) for file in jars.files), f"-Xmx{MEMORY}", "-XX:+UseSerialGC"]
        options += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        form = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(place / "server.properties")]
        with (place / "output").open("wb") as output:
            formatted = subprocess.run(  # noqa: S603
                [java, *options, *form], stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
            )
            if formatted.returncode != 0:
                raise Unavailable(f"Kafka {jars.version} did not format its storage: {_tail(place, password)}")
            server = subprocess.Popen(  # noqa: S603
                [java, *options, "kafka.Kafka", str(place / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we stop the server when nobody needs it any more
            )
        try:
            if _answers(server, ports[0]):
                return server, f"{HOST}:{ports[0]}"
        except BaseException:
            _stop(server)
            raise
        _stop(server)
        told = _tail(place, password)
    raise Unavailable(f"Kafka {jars.version} did not start: {told}")


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind((HOST, 0))
        other.bind((HOST, 0))
        return int(one.getsockname()[1]), int(other.getsockname()[1])


def _answers(server: subprocess.Popen[bytes], port: int) -> bool:
    """Does the server answer in Kafka's words before it ends? An open port alone comes too early."""
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError, struct.error):
            if _api_versions(port):
                return True
        time.sleep(0.1)
    return False


def _api_versions(port: int) -> bool:
    # Request 18 (ApiVersions) of version 0, number 7, without a client's name: the one request before any login.
    request = struct.pack(">hhih", 18, 0, 7, -1)
    with socket.create_connection((HOST, port), timeout=2) as asked:
        asked.settimeout(2)
        asked.sendall(struct.pack(">i", len(request)) + request)
        with asked.makefile("rb") as answer:
            _, number, error = struct.unpack(">iih", answer.read(10))
    return bool(number == 7 and error == 0)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _tail(place: Path, password: str | None) -> str:
    text = (place / "output").read_text(errors="replace").strip()[-1500:] or "it said nothing"
    return text if password is None else text.replace(password, "***")


def _main() -> int:
    parser = argparse.ArgumentParser(description="An Apache Kafka broker of one's own on this machine.")
    parser.add_argument("do", choices=("fetch", "start"), help="fetch the jars; or start a broker until Ctrl-C")
    parser.add_argument("--partitions", type=int, default=1, help="of the topics that are made")
    arguments = parser.parse_args()
    ended = threading.Event()

    def end(number: int, frame: "FrameType | None") -> None:
        ended.set()

    try:
        broker, connector = broker_jars(), connector_jars()
        print(f"broker: Kafka {broker.version}, {len(broker.files)} jars in {broker.files[0].parent}")
        print(f"connector: Spark's of {connector.version} (here is Spark {_installed_spark()}), as")
        print(f"  spark.jars={','.join(str(file) for file in connector.files)}", flush=True)
        if arguments.do == "start":
            # Before the server starts: a signal in between must not leave it behind.
            signal.signal(signal.SIGINT, end)
            signal.signal(signal.SIGTERM, end)
            with running(partitions=arguments.partitions) as started:
                print(f"Kafka answers at {started.address}; Ctrl-C ends it", flush=True)
                ended.wait()
    except Unavailable as why:
        print(why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
