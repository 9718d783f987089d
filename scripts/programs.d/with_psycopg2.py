"""psycopg2, as its documentation uses it: parameters, adaptation, COPY, named cursors, errors, notifications."""
import datetime
import decimal
import io
import select
import uuid

import psycopg2
import psycopg2.extensions
import psycopg2.extras
from psycopg2 import errors as pg_errors

from checks import check, fails, run, same

db = psycopg2.connect("")
psycopg2.extras.register_uuid()


@check
def rows():
    with db, db.cursor() as c:
        c.execute("CREATE TABLE p (id serial PRIMARY KEY, n numeric, t text, d date, by bytea, u uuid, b bool, j jsonb)")
        row = (decimal.Decimal("1.5"), "it's \\ ü", datetime.date(2024, 2, 29), b"\0\\", uuid.UUID(int=1), True)
        c.execute("INSERT INTO p (n, t, d, by, u, b, j) VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING id",
                  (*row, psycopg2.extras.Json({"a": 1})))
        same(c.fetchone(), (1,))
        c.execute("SELECT n, t, d, by, u, b, j FROM p")
        found = list(c.fetchone())
        found[3] = bytes(found[3])
        same(found, [*row, {"a": 1}])


@check
def sequences_as_arrays():
    with db, db.cursor() as c:
        c.execute("SELECT %s, %s", ([1, 2], ["a", None]))
        same(c.fetchone(), ([1, 2], ["a", None]))
        c.execute("SELECT count(*) FROM p WHERE id IN %s AND id = ANY(%s)", ((1, 2), [1]))
        same(c.fetchone(), (1,))


@check
def intervals_and_times():
    with db, db.cursor() as c:
        c.execute("SELECT %s, %s", (datetime.timedelta(days=1, hours=2), datetime.time(12, 30)))
        same(c.fetchone(), (datetime.timedelta(days=1, hours=2), datetime.time(12, 30)))


@check
def execute_values_and_batch():
    with db, db.cursor() as c:
        found = psycopg2.extras.execute_values(
            c, "INSERT INTO p (t, n) VALUES %s RETURNING id", [(f"t{n}", n) for n in range(500)], fetch=True)
        same(len(found), 500)
        psycopg2.extras.execute_batch(c, "UPDATE p SET n = %s WHERE id = %s", [(n, n) for n in range(2, 300)])
        c.execute("UPDATE p SET b = v.b FROM (VALUES (2, true), (3, false)) AS v (id, b) WHERE p.id = v.id")
        same(c.rowcount, 2)


@check
def named_cursor():
    with db, db.cursor("named") as c:
        c.execute("SELECT id FROM p ORDER BY id")
        same(sum(1 for _ in c), 501)
    with db, db.cursor("scrolls", scrollable=True) as c:
        c.execute("SELECT id FROM p ORDER BY id")
        c.fetchmany(5)
        c.scroll(-3)
        same(c.fetchone(), (3,))


@check
def cursor_with_hold():
    with db, db.cursor("held", withhold=True) as c:
        c.execute("SELECT id FROM p ORDER BY id")
        db.commit()
        same(c.fetchone(), (1,))


@check
def copies():
    with db, db.cursor() as c:
        c.copy_from(io.StringIO("a\\nb\t\\N\nc\t3\n"), "p", columns=("t", "n"))
        same(c.rowcount, 2)
        out = io.StringIO()
        c.copy_expert("COPY (SELECT t, n FROM p WHERE n IS NULL ORDER BY id) TO STDOUT WITH CSV HEADER", out)
        same(out.getvalue(), 't,n\n"a\nb",\n')


@check
def errors():
    def said(error, text):
        with db.cursor() as c:
            e = fails(error, lambda: c.execute(text))
        db.rollback()
        return e

    same(said(pg_errors.UniqueViolation, "INSERT INTO p (id) VALUES (1)").diag.constraint_name, "p_pkey")
    same(said(pg_errors.SyntaxError, "SELECT 1 FRO p").pgcode, "42601")
    assert "LINE 1: SELECT x FROM p" in str(said(pg_errors.UndefinedColumn, "SELECT x FROM p"))
    said(pg_errors.InvalidTextRepresentation, "SELECT 'x'::int")
    said(pg_errors.NumericValueOutOfRange, "SELECT 2147483647 + 1")


@check
def isolation_levels():
    other = psycopg2.connect("")
    for level in (1, 2, 3):
        other.set_session(isolation_level=level, readonly=True)
        with other, other.cursor() as c:
            c.execute("SELECT 1")
    other.set_session(isolation_level="SERIALIZABLE", readonly=True, deferrable=True)
    with other, other.cursor() as c:
        c.execute("SELECT 1")
    other.close()


@check
def notifications():
    other = psycopg2.connect("")
    other.set_isolation_level(psycopg2.extensions.ISOLATION_LEVEL_AUTOCOMMIT)
    with other.cursor() as c:
        c.execute("LISTEN news")
    with db, db.cursor() as c:
        c.execute("NOTIFY news, 'hello'")
    select.select([other], [], [], 5)
    other.poll()
    same([(n.channel, n.payload) for n in other.notifies], [("news", "hello")])


@check
def notices():
    with db, db.cursor() as c:
        c.execute("DROP TABLE IF EXISTS nothing")
    same(db.notices[-1], 'NOTICE:  table "nothing" does not exist, skipping\n')


@check
def encodings():
    other = psycopg2.connect("")
    other.set_client_encoding("LATIN1")
    with other.cursor() as c:
        c.execute("SELECT %s", ("ü",))
        same(c.fetchone(), ("ü",))


@check
def composites_and_ranges():
    with db, db.cursor() as c:
        c.execute("SELECT '[1,5)'::int4range")
        same(c.fetchone()[0].lower, 1)


@check
def large_objects():
    with db:
        lo = db.lobject(0, "wb")
        lo.write(b"data")
        lo.close()


run(psycopg2.__version__.split()[0], after=lambda: db.rollback())
