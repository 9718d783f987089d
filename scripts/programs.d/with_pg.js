// node-postgres, as its documentation uses it: parameters, types, transactions, a pool, cursors, COPY, notifications.
"use strict";
const { address, assert, fails, run, same } = require("./checks.js");
const { Client, Pool } = require("pg");
const Cursor = require("pg-cursor");
const QueryStream = require("pg-query-stream");
const copy = require("pg-copy-streams");
const { pipeline } = require("node:stream/promises");
const { Readable } = require("node:stream");

const db = new Client(address);
const one = async (text, values) => Object.values((await db.query(text, values)).rows[0])[0];

run(require("pg/package.json").version, {
  async connects() {
    await db.connect();
    same(await one("SELECT $1::text AS message", ["Hello"]), "Hello");
  },
  async tables_and_parameters() {
    await db.query(
      "CREATE TABLE p (id serial PRIMARY KEY, b bool, i int, big bigint, f float8, n numeric(10, 2), t text, d date, " +
        "tz timestamptz, u uuid, by bytea, j json, jb jsonb)",
    );
    const tz = new Date("2024-02-29T12:30:15.123Z");
    const row = [true, 7, "4611686018427387904", 1.5, "12.30", "it's \\", tz, "00000000-0000-0000-0000-000000000005",
      Buffer.from([0, 255]), { a: [1, null] }, { b: 2 }];
    const found = await db.query(
      "INSERT INTO p (b, i, big, f, n, t, tz, u, by, j, jb) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING *", row);
    same([found.rowCount, found.command, found.rows[0].id], [1, "INSERT", 1]);
    const { id, d, ...rest } = found.rows[0];
    same(Object.values(rest), row);
    same(found.fields.map((f) => f.dataTypeID), [23, 16, 23, 20, 701, 1700, 25, 1082, 1184, 2950, 17, 114, 3802]);
  },
  async arrays() {
    same(await one("SELECT $1::int[]", [[1, 2]]), [1, 2]);
    same(await one("SELECT count(*)::int FROM p WHERE id = ANY($1)", [[1, 7]]), 1);
    await db.query("INSERT INTO p (t) SELECT * FROM unnest($1::text[])", [["x", "y"]]);
    same(await one("SELECT count(*)::int FROM p"), 3);
  },
  async table_of_the_columns() {
    const found = await db.query("SELECT id, t AS x, 1 AS y FROM p");
    const oid = await one("SELECT 'p'::regclass::oid::int");
    same(found.fields.map((f) => [f.tableID, f.columnID]), [[oid, 1], [oid, 7], [0, 0]]);
  },
  async prepared_statements() {
    for (const id of [1, 2]) {
      same((await db.query({ name: "by-id", text: "SELECT id FROM p WHERE id = $1", values: [id] })).rows, [{ id }]);
    }
    same((await db.query({ text: "SELECT 1, 2", rowMode: "array" })).rows, [[1, 2]]);
  },
  async several_statements() {
    same((await db.query("SELECT 1 AS a; SELECT 2 AS b")).map((r) => r.rows[0]), [{ a: 1 }, { b: 2 }]);
  },
  async transactions() {
    await db.query("BEGIN");
    await db.query("UPDATE p SET i = 1");
    await db.query("SAVEPOINT s");
    await fails("22012", () => db.query("SELECT 1 / 0"));
    await fails("25P02", () => db.query("SELECT 1"));
    await db.query("ROLLBACK TO s");
    await db.query("COMMIT");
    same(await one("SELECT DISTINCT i FROM p"), 1);
  },
  async errors() {
    const unique = await fails("23505", () => db.query("INSERT INTO p (id) VALUES (1)"));
    same([unique.constraint, unique.table, unique.schema], ["p_pkey", "p", "public"]);
    const column = await fails("42703", () => db.query("SELECT nothing FROM p"));
    same(column.position, "8");
    await fails("22P02", () => db.query("SELECT $1::int", ["x"]));
    await fails("42601", () => db.query("SELEKT 1"));
  },
  async escapes() {
    same(await one(`SELECT ${db.escapeLiteral("it's \\ here")} AS ${db.escapeIdentifier('a"b')}`), "it's \\ here");
  },
  async cursors() {
    const cursor = db.query(new Cursor("SELECT g FROM generate_series(1, 100) AS g"));
    same((await cursor.read(3)).map((r) => r.g), [1, 2, 3]);
    same((await cursor.read(200)).length, 97);
    await cursor.close();
  },
  async streams() {
    let sum = 0;
    for await (const row of db.query(new QueryStream("SELECT g FROM generate_series(1, 1000) AS g"))) sum += row.g;
    same(sum, 500500);
  },
  async copies() {
    await db.query("CREATE TABLE c (id int, t text)");
    await pipeline(Readable.from(["1\ta\n2", "\t\\N\n"]), db.query(copy.from("COPY c FROM STDIN")));
    const out = db.query(copy.to("COPY c TO STDOUT (FORMAT csv)"));
    let text = "";
    for await (const chunk of out) text += chunk;
    same(text, "1,a\n2,\n");
  },
  async copies_in_binary() {
    const out = db.query(copy.to("COPY c TO STDOUT (FORMAT binary)"));
    const chunks = [];
    for await (const chunk of out) chunks.push(chunk);
    await db.query("CREATE TABLE c2 (id int, t text)");
    await pipeline(Readable.from([Buffer.concat(chunks)]), db.query(copy.from("COPY c2 FROM STDIN (FORMAT binary)")));
    same((await db.query("SELECT * FROM c2 ORDER BY id")).rows, [{ id: 1, t: "a" }, { id: 2, t: null }]);
  },
  async notifications() {
    const heard = new Promise((done) => db.once("notification", (n) => done([n.channel, n.payload])));
    await db.query("LISTEN news");
    await db.query("SELECT pg_notify($1, $2)", ["news", "hello"]);
    same(await heard, ["news", "hello"]);
  },
  async pool() {
    const pool = new Pool({ ...address, max: 3 });
    const found = await Promise.all([...Array(20).keys()].map((n) => pool.query("SELECT $1::int AS n", [n])));
    same(found.map((r) => r.rows[0].n), [...Array(20).keys()]);
    const client = await pool.connect();
    client.release();
    await pool.end();
  },
  async times() {
    const found = await db.query("SELECT interval '1 day 02:03:04' AS i, time '12:30' AS t, timestamp '2024-02-29 12:30' AS ts");
    same({ ...found.rows[0].i }, { days: 1, hours: 2, minutes: 3, seconds: 4 });
    same([found.rows[0].t, found.rows[0].ts.getDate()], ["12:30:00", 29]);
  },
  async timeouts() {
    const client = new Client({ ...address, statement_timeout: 200, application_name: "part" });
    await client.connect();
    await fails("57014", () => client.query("SELECT pg_sleep(20)"));
    same((await client.query("SHOW application_name")).rows[0].application_name, "part");
    await client.end();
  },
  async ends() {
    await db.end();
    assert(true);
  },
});
