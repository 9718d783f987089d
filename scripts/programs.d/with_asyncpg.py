"""asyncpg, as its documentation uses it: prepared statements, transactions, cursors, COPY in binary, a pool, types."""
import asyncio
import datetime
import decimal
import io
import json
import uuid

import asyncpg

from checks import address, check, run, same

loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
db = loop.run_until_complete(asyncpg.connect(address()))


async def fails(error, waited):
    try:
        await asyncio.wait_for(waited, 10)
    except error as e:
        return e
    raise AssertionError(f"{error.__name__} expected")


@check
async def tables_and_parameters():
    await db.execute(
        "CREATE TABLE p (id serial PRIMARY KEY, b bool, i bigint, f float8, n numeric, t text, v varchar(10), d date, "
        "ts timestamp, tz timestamptz, u uuid, by bytea, s smallint, r real)"
    )
    row = (
        True, 2**62, 1.5, decimal.Decimal("12.34"), "it's", "v", datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc),
        uuid.UUID(int=5), b"\0\xff", 7, 0.5,
    )
    marks = ", ".join(f"${n}" for n in range(1, 14))
    same(await db.execute(f"INSERT INTO p (b, i, f, n, t, v, d, ts, tz, u, by, s, r) VALUES ({marks})", *row), "INSERT 0 1")
    found = await db.fetchrow("SELECT * FROM p")
    same(tuple(found.values())[1:], row)
    same(found["t"], "it's")


@check
async def values():
    same(await db.fetchval("SELECT $1::int + 1", 2), 3)
    same([r["g"] for r in await db.fetch("SELECT g FROM generate_series(1, 3) AS g")], [1, 2, 3])
    same(await db.fetchval("SELECT $1::text[]", ["a", None]), ["a", None])
    same(await db.fetchval("SELECT count(*) FROM p WHERE id = ANY($1::int[])", [1, 2]), 1)


@check
async def intervals_and_times():
    same(await db.fetchval("SELECT $1::interval", datetime.timedelta(days=1)), datetime.timedelta(days=1))
    same(await db.fetchval("SELECT $1::time", datetime.time(12, 30)), datetime.time(12, 30))


@check
async def json_codec():
    await db.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    same(await db.fetchval("SELECT $1::jsonb", {"a": [1, 2]}), {"a": [1, 2]})


@check
async def errors():
    await fails(asyncpg.PostgresSyntaxError, db.fetch("SELEKT 1"))
    await fails(asyncpg.UndefinedTableError, db.fetch("SELECT * FROM nothing"))
    e = await fails(asyncpg.UniqueViolationError, db.execute("INSERT INTO p (id) VALUES (1)"))
    same((e.constraint_name, e.table_name), ("p_pkey", "p"))
    await fails(asyncpg.DataError, db.fetch("SELECT $1::int", "text"))


@check
async def transactions():
    async with db.transaction():
        await db.execute("UPDATE p SET i = 1")
        try:
            async with db.transaction():
                await db.execute("UPDATE p SET i = 2")
                raise KeyError
        except KeyError:
            pass
    same(await db.fetchval("SELECT i FROM p"), 1)
    async with db.transaction(isolation="repeatable_read", readonly=True):
        await fails(asyncpg.ReadOnlySQLTransactionError, db.execute("DELETE FROM p"))


@check
async def serializable():
    async with db.transaction(isolation="serializable", readonly=True, deferrable=True):
        same(await db.fetchval("SELECT 1"), 1)


@check
async def executemany():
    await db.execute("CREATE TABLE m (id int PRIMARY KEY, t text)")
    await db.executemany("INSERT INTO m VALUES ($1, $2)", [(n, f"t{n}") for n in range(100)])
    await fails(asyncpg.UniqueViolationError, db.executemany("INSERT INTO m VALUES ($1, $2)", [(200, ""), (5, "")]))
    # All of executemany happens, or nothing.
    same(await db.fetchval("SELECT count(*) FROM m"), 100)


@check
async def cursors():
    async with db.transaction():
        same([r["id"] async for r in db.cursor("SELECT id FROM m ORDER BY id", prefetch=7)], list(range(100)))
        cursor = await db.cursor("SELECT id FROM m ORDER BY id")
        await cursor.forward(10)
        same((await cursor.fetchrow())["id"], 10)


@check
async def prepared_statements():
    statement = await db.prepare("SELECT t, id FROM m WHERE id = $1")
    same((await statement.fetchrow(5))["t"], "t5")
    same([p.name for p in statement.get_parameters()], ["int4"])
    same([(a.name, a.type.name) for a in statement.get_attributes()], [("t", "text"), ("id", "int4")])


@check
async def prepared_after_ddl():
    same(len(await db.fetchrow("SELECT * FROM m WHERE id = $1", 1)), 2)
    await db.execute("ALTER TABLE m ADD COLUMN more int")
    same(len(await db.fetchrow("SELECT * FROM m WHERE id = $1", 1)), 3)


@check
async def copy_of_records():
    await db.execute("CREATE TABLE c (id int, t text, at timestamptz)")
    now = datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)
    same(await db.copy_records_to_table("c", records=[(n, None if n % 2 else "é", now) for n in range(1000)]), "COPY 1000")
    same(await db.fetchval("SELECT count(t) FROM c WHERE at = $1", now), 500)


@check
async def copy_text():
    out = io.BytesIO()
    same(await db.copy_from_query("SELECT id, t FROM m WHERE id < $1 ORDER BY id", 2, output=out, format="csv"), "COPY 2")
    same(out.getvalue(), b"0,t0\n1,t1\n")
    same(await db.copy_to_table("m", source=io.BytesIO(b"500,x\n"), columns=["id", "t"], format="csv"), "COPY 1")


@check
async def pool():
    async with asyncpg.create_pool(address(), min_size=2, max_size=4) as pool:
        async def one(n):
            async with pool.acquire() as c, c.transaction():
                return await c.fetchval("SELECT $1::int", n)

        same(await asyncio.gather(*(one(n) for n in range(20))), list(range(20)))


@check
async def notifications():
    heard = loop.create_future()
    await db.add_listener("news", lambda _c, _pid, channel, payload: heard.set_result((channel, payload)))
    await db.execute("NOTIFY news, 'hello'")
    same(await asyncio.wait_for(heard, 5), ("news", "hello"))


@check
async def timeouts():
    await fails(asyncio.TimeoutError, db.fetch("SELECT pg_sleep(20)", timeout=0.3))
    same(await db.fetchval("SELECT 1"), 1)


@check
async def introspection_of_types():
    await db.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    same(await db.fetchval("SELECT $1::mood", "ok"), "ok")


@check
async def closes():
    await db.close()


run(asyncpg.__version__)
