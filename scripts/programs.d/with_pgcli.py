"""pgcli, by its own executor: what it asks for completion, its commands that describe, statements, errors, and the
program itself."""
import importlib.metadata
import os
import subprocess
import sys

import pgcli.pgexecute
from pgspecial.main import PGSpecial

from checks import address, check, run, same

db = pgcli.pgexecute.PGExecute(
    os.environ["PGDATABASE"], os.environ["PGUSER"], "", os.environ["PGHOST"], os.environ["PGPORT"]
)
special = PGSpecial()
SCHEMA = """
    CREATE TABLE author (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name varchar(50) NOT NULL UNIQUE);
    CREATE TABLE book (id bigint PRIMARY KEY, author_id int REFERENCES author (id), price numeric(8, 2) DEFAULT 0 CHECK (price >= 0));
    CREATE INDEX by_price ON book (price);
    CREATE VIEW dear AS SELECT id, price FROM book WHERE price > 10;
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE DOMAIN positive AS int CHECK (VALUE > 0);
    CREATE SCHEMA other;
    COMMENT ON TABLE book IS 'what is sold';
    INSERT INTO author (name) VALUES ('Ann');
"""


def asked(text):
    """The rows, the titles and the status of each statement."""
    return [(list(rows or []), titles, status) for _, rows, titles, status, *_ in db.run(text, special)]


@check
def connects():
    same((db.dbname, db.user, db.superuser, db.valid_transaction()), ("terrace", "terrace", True, False))


@check
def statements():
    asked(SCHEMA)
    same(asked("SELECT name, 1 + 1 AS two FROM author; SELECT 'x'")[0], ([("Ann", 2)], ["name", "two"], "SELECT 1"))


@check
def schemas_and_paths():
    same({"public", "other", "pg_catalog", "information_schema"} <= set(db.schemata()), True)
    same(db.search_path()[-1], "public")


@check
def tables_and_views():
    same(sorted(t for t in db.tables() if t[0] == "public"), [("public", "author"), ("public", "book")])
    same([v for v in db.views() if v[0] == "public"], [("public", "dear")])


@check
def columns():
    own = [c for c in db.table_columns() if c[0] == "public"]
    same([(c[1], c[2], c[3]) for c in own if c[2] in ("id", "price")], [
        ("author", "id", "integer"), ("book", "id", "bigint"), ("book", "price", "numeric"),
    ])
    same([c[2] for c in db.view_columns() if c[0] == "public"], ["id", "price"])


@check
def foreign_keys():
    same([tuple(key) for key in db.foreignkeys()], [("public", "author", "id", "public", "book", "author_id")])


@check
def types():
    same({("public", "mood"), ("public", "positive")} <= set(db.datatypes()), True)


@check
def functions():
    found = {(f.func_name, f.return_type) for f in db.functions()}
    same({("lower", "text"), ("now", "timestamp with time zone"), ("count", "bigint")} <= found, True)


@check
def casing():
    same(list(db.casing()), [])


@check
def definition_of_a_view():
    same("CREATE OR REPLACE VIEW \"public\".\"dear\" AS" in db.view_definition("dear"), True)


@check
def databases():
    same("terrace" in db.databases(), True)


@check
def commands():
    commands = "d dt dt+ dv dv+ ds ds+ di di+ dn dn+ du du+ dp ddp db db+ dx df dT dT+ dD dD+ dm dE l l+".split()
    failed = []
    for command in commands:
        try:
            asked(f"\\{command}")
        except Exception as e:  # noqa: BLE001
            failed.append(f"{command}: {e}")
    same(failed, [])


@check
def describes_tables():
    for name in ("book", "author", "dear", "author_id_seq", "by_price", "author_pkey"):
        asked(f"\\d {name}")
        asked(f"\\d+ {name}")
    status = asked("\\d book")[0][2]
    same(all(part in status for part in ("by_price", "book_price_check", "book_author_id_fkey")), True)


@check
def lists_what_matches():
    same(asked("\\dt b*")[0][0][0][:3], ("public", "book", "table"))


@check
def errors():
    told = [r[3] for r in db.run("SELECT nothing FROM book; SELECT 1", special, exception_formatter=str, on_error_resume=True)]
    same((told[0].startswith('column "nothing" does not exist'), told[1]), (True, "SELECT 1"))


@check
def transactions():
    asked("BEGIN; INSERT INTO author (name) VALUES ('Bob')")
    same(db.valid_transaction(), True)
    list(db.run("SELECT nothing", special, exception_formatter=str))
    same(db.failed_transaction(), True)
    asked("ROLLBACK")
    same(asked("SELECT count(*) FROM author")[0][0], [(1,)])


@check
def explains():
    rows = [row for r in db.run("SELECT * FROM book WHERE id = 1", special, explain_mode=True) for row in r[1]]
    same(len(rows) > 0, True)


@check
def by_the_program():
    home = {**os.environ, "HOME": os.environ.get("TMPDIR", "/tmp"), "PAGER": "cat"}
    asks = [sys.executable, "-m", "pgcli", "-t", "-c", "SELECT name FROM author", "-c", "\\dt book", address()]
    told = subprocess.run(asks, capture_output=True, text=True, env=home, timeout=60)
    same((told.returncode, "Ann" in told.stdout, "book" in told.stdout), (0, True, True))


def tidy():
    if db.failed_transaction() or db.valid_transaction():
        asked("ROLLBACK")


run(importlib.metadata.version("pgcli"), after=tidy)
