"""Worlds of tables and statements, run on both servers by several processes; the differences, reduced, sorted into
known and new.

1. A world is made from its seed alone ("S/N": the run's seed and the world's number), whatever ran before.
2. Every difference is reduced before it is looked up: what is documented is documented as a small statement.
3. When the time is over a world ends with its current batch; what is met half a minute later is told as it is.
"""

import collections
import json
import multiprocessing
import os
import random
import re
import signal
import sys
import time
import tomllib
from queue import Empty

import compare
import expressions
import queries
import reduce
import schema
import servers
import wire

HERE = os.path.dirname(os.path.abspath(__file__))
STATEMENTS, BATCH = 250, 25
# A statement that takes longer answers 57014; a server that does not answer even then hangs.
SETTINGS = "SET statement_timeout = '20s'"
PATIENCE = 40
# Of one kind, so many that are not documented are reduced in a world (wrong rows), or by a process (the same message);
# the others are counted with them.
ROWS_ALIKE, MESSAGES_ALIKE = 6, 3
# Of each documented difference, so many of each process are shown by EXAMPLES=1.
SAMPLES = 6


class Documented:
    """The list of what is known to differ: the first entry that matches takes the difference."""

    def __init__(self):
        with open(os.path.join(HERE, "documented.toml"), "rb") as file:
            self.entries = tomllib.load(file)["difference"]
        for entry in self.entries:
            for name in ("statement", "terrace", "postgres"):
                if name in entry:
                    entry[name] = re.compile(entry[name], re.I | re.S)

    def find(self, kind, statement, terrace, postgres, early=False):
        """The entry's name. `early`: before the statement is reduced, by what the answers alone tell."""
        given = {"statement": statement, "terrace": terrace, "postgres": postgres}
        for entry in self.entries:
            if early and not entry.get("early"):
                continue
            if kind not in entry["kinds"]:
                continue
            if all(entry[name].search(text) for name, text in given.items() if name in entry):
                return entry["name"]
        return None


class Pair:
    """Both servers, with the tables of one world."""

    def __init__(self, terrace, postgres):
        self.addresses = (terrace, postgres)
        self.terrace, self.postgres = (self.connect(address) for address in self.addresses)

    def connect(self, address):
        connection = wire.Connection(*address, timeout=PATIENCE)
        connection.send([wire.simple(SETTINGS)])
        if connection.receive().error:
            raise SystemExit(f"{SETTINGS} failed at port {address[0]}")
        return connection

    def both(self, requests):
        """Replies of both, or `Lost` in the place of Terrace's replies from the first that did not come."""
        self.postgres.send(requests)
        ours = []
        try:
            self.terrace.send(requests)
            for _ in requests:
                ours.append(self.terrace.receive())
        except wire.Lost as lost:
            ours.append(lost)
            self.terrace.close()
            self.reconnect()
        theirs = [self.postgres.receive() for _ in requests]
        return ours, theirs

    def reconnect(self):
        for _ in range(100):
            try:
                self.terrace = self.connect(self.addresses[0])
                return
            except (OSError, wire.Lost):
                time.sleep(0.2)
        raise SystemExit("Terrace does not come back")

    def compared(self, statement, before=()):
        """A statement by itself, after `before` in one transaction."""
        requests = compare.requests(statement)
        if before:
            inner = requests[1:-1] if statement.changes else requests
            requests = [wire.simple("BEGIN"), *map(wire.simple, before), *inner, wire.simple("ROLLBACK")]
        ours, theirs = self.both(requests)
        if isinstance(ours[-1], wire.Lost):
            self.postgres.send([wire.simple("ROLLBACK")])
            self.postgres.receive()
            return compare.Difference("lost", ours[-1].reason, "an answer", 0)
        if before:
            skip = len(before) + (0 if statement.changes else 1)
            ours, theirs = ours[skip:], theirs[skip:]
        return compare.difference(statement, ours, theirs)

    def tables(self, lines):
        requests = [wire.simple(line) for line in lines]
        ours, theirs = self.both(requests)
        for line, mine, its in zip(lines, ours, theirs):
            for name, reply in (("Terrace", mine), ("PostgreSQL", its)):
                if isinstance(reply, wire.Lost) or reply.error:
                    what = reply.error if isinstance(reply, wire.Reply) else reply
                    raise SystemExit(f"{name} refuses the tester's own statement:\n{line}\n{what}")


class World:
    def __init__(self, seed, pair, documented, report, until):
        self.seed, self.pair, self.documented, self.report, self.until = seed, pair, documented, report, until
        self.rng = random.Random(seed)
        features = expressions.Features(self.rng)
        self.tables, types = schema.make(self.rng, features)
        self.generator = queries.Generator(self.rng, features, self.tables, types)
        self.alike = collections.Counter()

    def run(self, count):
        lines = [f"DROP TABLE IF EXISTS {name}{key}" for name in ("ta", "tb", "tc") for key in ("", "_k")]
        for table in self.tables:
            lines += table.create()
        self.pair.tables(lines)
        done = 0
        while done < count and time.monotonic() < self.until:
            batch = [self.generator.statement() for _ in range(min(BATCH, count - done))]
            done += len(batch)
            self.batch(batch)

    def batch(self, statements):
        while statements:
            requests = [compare.requests(statement) for statement in statements]
            ours, theirs = self.pair.both([request for each in requests for request in each])
            at, finished = 0, 0
            for statement, each in zip(statements, requests):
                mine = ours[at : at + len(each)]
                finished += 1
                if len(mine) < len(each) or isinstance(mine[-1], wire.Lost):
                    reason = next(reply.reason for reply in mine if isinstance(reply, wire.Lost))
                    self.judge(statement, compare.Difference("lost", reason, "an answer", 0))
                    break
                self.judge(
                    statement,
                    compare.difference(statement, mine, theirs[at : at + len(each)]),
                    theirs[at : at + len(each)],
                )
                at += len(each)
            statements = statements[finished:]

    def judge(self, statement, found, theirs=()):
        self.report.count(statement, found, any(reply.error for reply in theirs))
        if not isinstance(found, compare.Difference):
            return
        known = self.documented.find(found.kind, compare.text_of(statement), found.terrace, found.postgres, early=True)
        if known is not None:
            self.report.know(known, compare.text_of(statement), found)
            return
        key = found.key()
        if self.report.survey is not None:
            self.report.survey.setdefault((found.kind, *key), []).append(
                (compare.text_of(statement), found.terrace, found.postgres)
            )
            return
        alike, most = (
            (self.alike, ROWS_ALIKE) if found.kind in ("rows", "order") else (self.report.alike, MESSAGES_ALIKE)
        )
        # The run fails for one of them already.
        if alike[key] >= most:
            self.report.unreduced += 1
            return
        slow = found.kind == "lost" and "no answer" in found.terrace or "57014" in found.terrace
        fixed = slow or statement.kind == "volatile" or time.monotonic() > self.until + 30
        small = None if fixed else self.smaller(statement)
        if small is None and not fixed:
            # Seen among others only: cached plans or an earlier statement have a part in it.
            found.kind += " (not again)" if self.pair.compared(statement) is None else ""
        if small is not None:
            statement, found = small, self.pair.compared(small)
            if not isinstance(found, compare.Difference):
                return
        text = compare.text_of(statement)
        name = self.documented.find(found.kind, text, found.terrace, found.postgres)
        tables = self.rows(statement, found) if name is None and small is not None else ""
        if name is None and small is not None and found.kind == "accepted" and "INSERT INTO" not in tables:
            # There is no row at all that would need the value.
            name = self.documented.find("unneeded", text, found.terrace, found.postgres)
        self.report.add(self.seed, statement, found, text, name, tables)
        alike[key] += name is None

    def smaller(self, statement):
        def differs(trial):
            found = self.pair.compared(trial)
            return found.key() if isinstance(found, compare.Difference) else None

        return reduce.Reducer(differs).reduce(statement)

    def rows(self, statement, found):
        """The tables that the statement names, with the rows that matter."""
        text = statement.main.sql()
        named = {t.name: t for t in self.tables if re.search(rf"\b{t.name}\b", text)}

        def differs(kept):
            before = []
            for name, table in named.items():
                gone = [row[0] for row in table.rows if row not in kept[name]]
                before += [f"DELETE FROM {name} WHERE id = {number}" for number in gone]
            again = self.pair.compared(statement, before or ["SELECT 1"])
            return isinstance(again, compare.Difference) and again.key() == found.key()

        kept = {name: list(table.rows) for name, table in named.items()}
        if differs(kept):
            kept = reduce.fewer_rows(named, differs)
        return reduce.script(named, kept)


class Report:
    """What a process met, counted; what is new it tells at once."""

    def __init__(self):
        self.tell = None
        self.statements, self.failing, self.unreduced = 0, 0, 0
        self.refusals, self.known, self.new = collections.Counter(), collections.Counter(), []
        self.kinds = collections.Counter()
        self.alike = collections.Counter()
        self.examples, self.samples, self.rng = {}, {}, random.Random(1)
        self.survey = {} if os.environ.get("SURVEY") else None

    def count(self, statement, found, failed):
        self.statements += 1
        self.kinds[statement.kind] += 1
        if isinstance(found, str):
            self.refusals[found] += 1
            self.examples.setdefault(found, compare.text_of(statement)[:600])
        elif failed:
            self.failing += 1

    def know(self, name, text, found):
        """Counts what is documented; some, chosen by chance, are kept to be read."""
        self.known[name] += 1
        kept = self.samples.setdefault(name, [])
        at = len(kept) if len(kept) < SAMPLES else self.rng.randrange(self.known[name])
        kept[at : at + 1] = [(text, found.terrace, found.postgres)] if at < SAMPLES else kept[at : at + 1]

    def add(self, seed, statement, found, text, name, tables):
        if name is not None:
            self.know(name, text, found)
        else:
            self.tell(
                {
                    "world": seed,
                    "kind": found.kind,
                    "statement": text,
                    "terrace": found.terrace,
                    "postgres": found.postgres,
                    "tables": tables,
                    "after": statement.after,
                }
            )

    def merge(self, other):
        self.statements += other.statements
        self.failing += other.failing
        self.unreduced += other.unreduced
        for name in ("refusals", "known", "kinds"):
            getattr(self, name).update(getattr(other, name))
        self.examples.update(other.examples)
        for name, kept in other.samples.items():
            self.samples.setdefault(name, []).extend(kept)
        for key, found in (other.survey or {}).items():
            self.survey.setdefault(key, []).extend(found)


def work(job, options, terrace, postgres, until, queue):
    report, documented = Report(), Documented()
    report.tell = lambda found: queue.put(("new", found))
    try:
        pair = Pair(terrace, postgres)
        worlds = [options.world] if options.world else None
        number, seed = job, "none yet"
        while time.monotonic() < until and (options.statements is None or number * STATEMENTS < options.statements):
            seed = worlds[0] if worlds else f"{options.seed}/{number}"
            left = (
                STATEMENTS
                if options.statements is None or worlds
                else min(STATEMENTS, options.statements - number * STATEMENTS)
            )
            World(seed, pair, documented, report, until).run(left)
            if worlds:
                break
            number += options.jobs
    except BaseException as e:
        queue.put(("failed", f"world {seed}: {type(e).__name__}: {e}"))
        raise
    report.tell = None
    queue.put(("done", report))


def described(found):
    lines = [f"## {found['kind']} (world {found['world']})", "", "```sql"]
    lines += [found["tables"]] if found["tables"] else []
    lines += [found["statement"] + (";" if found["statement"].count("--") == 0 else "")]
    lines += [line + ";" for line in found["after"]]
    return "\n".join([*lines, "```", f"- Terrace: {found['terrace']}", f"- PostgreSQL: {found['postgres']}", ""])


def main(options):
    began = time.monotonic()
    port = int(os.environ.get("PORT", "5640"))
    if options.world:
        options.jobs = 1
    # The servers end with the tester, also where it is told to.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    running = []
    try:
        postgres = servers.Postgres(port)
        running.append(postgres)
        addresses = []
        for job in range(options.jobs):
            terrace = servers.Terrace(port + 1 + job)
            running.append(terrace)
            admin = wire.Connection(port, "postgres", "postgres")
            admin.send([wire.simple(f"CREATE DATABASE w{job}")])
            admin.receive()
            admin.close()
            addresses.append(((terrace.port, terrace.user, terrace.database), (port, "postgres", f"w{job}")))
        until = time.monotonic() + (options.seconds or 10**9)
        code, failed = conduct(options, addresses, until, began)
        for server in running[1:] if failed else []:
            print(server.state())
        return code
    finally:
        for server in running:
            server.stop()


def conduct(options, addresses, until, began):
    queue = multiprocessing.Queue()
    jobs = [
        multiprocessing.Process(target=work, args=(job, options, *pair, until, queue), daemon=True)
        for job, pair in enumerate(addresses)
    ]
    for job in jobs:
        job.start()
    report, failed, left = Report(), [], len(jobs)
    file = open(options.report, "a") if options.report else None
    while left:
        try:
            kind, what = queue.get(timeout=5)
        except Empty:
            # A process that was killed says nothing.
            if not any(job.is_alive() for job in jobs):
                failed.append("it was killed")
                break
            continue
        if kind == "new":
            report.new.append(what)
            print(described(what), flush=True)
            if file:
                print(described(what), file=file, flush=True)
        elif kind == "failed":
            failed.append(what)
            left -= 1
        else:
            report.merge(what)
            left -= 1
    for job in jobs:
        job.join()
    return summary(report, failed, time.monotonic() - began), failed


def summary(report, failed, seconds):
    kinds = json.dumps(report.kinds)
    print(f"{report.statements} statements in {seconds:.0f} s ({kinds}); {report.failing} fail in both alike")
    print(f"{sum(report.refusals.values())} refused by Terrace:")
    for message, count in report.refusals.most_common(40):
        print(f"  {count:6} {message[:150]}")
        if os.environ.get("EXAMPLES"):
            print(f"         {report.examples[message]}")
    known = sum(report.known.values())
    print(f"{known} documented differences (and {report.unreduced} like some that are reported):")
    for name, count in report.known.most_common():
        print(f"  {count:6} {name}")
        for text, mine, its in report.samples[name] if os.environ.get("EXAMPLES") else []:
            print(f"         {text[:500]}\n           T {mine[:200]}\n           P {its[:200]}")
    print(f"{len(report.new)} differences that are not documented")
    for key, found in sorted((report.survey or {}).items(), key=lambda item: -len(item[1])):
        print(f"{len(found):6} {key}")
        for text, mine, its in sorted(found, key=lambda f: len(f[0]))[: int(os.environ["SURVEY"]) * 3]:
            print(f"        {text[:700]}\n          T {mine[:200]}\n          P {its[:200]}")
    for what in failed:
        print(f"a process failed: {what}")
    return 1 if failed or report.new else 0
