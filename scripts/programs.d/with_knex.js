// knex: the schema builder and migrations, queries, transactions, upserts.
"use strict";
const { address, assert, fails, run, same } = require("./checks.js");
const knex = require("knex")({ client: "pg", connection: address, pool: { min: 0, max: 4 } });

const migration = (up, down) => ({ up, down });
const migrations = {
  one: migration(
    (k) => k.schema
      .createTable("authors", (t) => {
        t.increments("id");
        t.string("name", 50).notNullable().unique();
        t.timestamps(true, true);
      })
      .createTable("books", (t) => {
        t.bigIncrements("id");
        t.integer("author_id").unsigned().notNullable().references("id").inTable("authors").onDelete("CASCADE").index();
        t.text("title").notNullable().comment("As on the cover");
        t.decimal("price", 8, 2).defaultTo(0);
        t.boolean("sold").defaultTo(false);
        t.uuid("key").defaultTo(k.fn.uuid());
        t.jsonb("meta");
        t.date("out");
        t.unique(["author_id", "title"]);
      }),
    (k) => k.schema.dropTable("books").dropTable("authors"),
  ),
  two: migration(
    (k) => k.schema.alterTable("books", (t) => {
      t.integer("stock").defaultTo(3).notNullable();
      t.renameColumn("sold", "gone");
      t.index(["title", "price"], "by_title");
    }),
    (k) => k.schema.alterTable("books", (t) => {
      t.dropIndex([], "by_title");
      t.renameColumn("gone", "sold");
      t.dropColumn("stock");
    }),
  ),
};
const source = {
  getMigrations: async () => Object.keys(migrations), getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name],
};
const book = { author_id: 1, title: "A", price: 1.5, meta: JSON.stringify({ pages: 3, in: [1] }) };

run(require("knex/package.json").version, {
  async migrates() {
    same((await knex.migrate.latest({ migrationSource: source }))[1], ["one", "two"]);
    same(await knex.migrate.currentVersion({ migrationSource: source }), "two");
  },
  async schema() {
    same([await knex.schema.hasTable("books"), await knex.schema.hasTable("no"), await knex.schema.hasColumn("books", "stock")],
      [true, false, true]);
    const info = await knex("books").columnInfo();
    same([info.title.type, info.price.type, info.stock.nullable, info.stock.defaultValue], ["text", "numeric", false, "3"]);
  },
  async inserts() {
    same(await knex("authors").insert([{ name: "Ann" }, { name: "Bob" }]).returning("id"), [{ id: 1 }, { id: 2 }]);
    same((await knex("books").insert([book, { ...book, title: "B", meta: null }], ["id", "price"]))[0], { id: "1", price: "1.50" });
    await knex.batchInsert("authors", [...Array(250).keys()].map((n) => ({ name: `n${n}` })), 100);
  },
  async queries() {
    same(await knex("books").join("authors", "authors.id", "books.author_id").where({ name: "Ann" }).pluck("title"), ["A", "B"]);
    same((await knex("authors").where("name", "like", "n%").count({ n: "*" }).first()).n, "250");
    same(await knex("authors").whereIn("id", knex("books").distinct("author_id")).pluck("name"), ["Ann"]);
    same(await knex("authors").whereExists(knex("books").whereRaw("books.author_id = authors.id")).pluck("name"), ["Ann"]);
    same(await knex("books").select("author_id").sum({ s: "price" }).groupBy("author_id").having("author_id", ">", 0),
      [{ author_id: 1, s: "3.00" }]);
    same(await knex.with("w", knex("books").where("price", ">", 1)).from("w").orderBy("title", "desc").limit(1).pluck("title"), ["B"]);
    same(await knex("books").select("title", knex.raw("row_number() over (order by title desc) as r")).orderBy("r").first(),
      { title: "B", r: "1" });
    same((await knex("authors").where("name", "ilike", "ANN").first()).name, "Ann");
    same(await knex("books").distinctOn("author_id").orderBy(["author_id", { column: "title", order: "desc" }]).pluck("title"), ["B"]);
  },
  async json() {
    same(await knex("books").whereJsonPath("meta", "$.pages", "=", 3).pluck("title"), ["A"]);
  },
  async json_operators() {
    same(await knex("books").whereRaw("meta ->> 'pages' = ?", ["3"]).pluck("title"), ["A"]);
    same(await knex("books").whereJsonSupersetOf("meta", { in: [1] }).pluck("title"), ["A"]);
  },
  async changes() {
    same(await knex("books").where({ title: "A" }).increment("stock", 2).update({ out: "2024-02-29" }, ["stock"]), [{ stock: 5 }]);
    same(await knex("authors").insert({ name: "Ann" }).onConflict("name").merge({ updated_at: knex.fn.now() }).returning("id"), [{ id: 1 }]);
    await knex("authors").insert({ name: "Ann" }).onConflict("name").ignore();
    same(await knex("authors").where("name", "like", "n%").del(), 250);
  },
  async transactions() {
    await assert.rejects(knex.transaction(async (t) => {
      await t("authors").insert({ name: "gone" });
      await t.transaction(async (inner) => inner("authors").insert({ name: "too" }));
      throw new Error("back");
    }), /back/);
    same(await knex("authors").where({ name: "gone" }).first(), undefined);
    await knex.transaction((t) => t("books").where({ title: "A" }).forUpdate().skipLocked().first(), { isolationLevel: "repeatable read" });
  },
  async errors() {
    await fails("23505", () => knex("authors").insert({ name: "Ann" }));
    await fails("23503", () => knex("books").insert({ ...book, title: "x", author_id: 999 }));
    await fails("42P01", () => knex("nothing").first());
  },
  async streams() {
    let n = 0;
    for await (const _ of knex("books").stream()) n += 1;
    same(n, 2);
  },
  async alters_a_type() {
    await knex.schema.alterTable("books", (t) => {
      t.bigInteger("stock").notNullable().defaultTo(0).alter();
      t.string("title", 300).notNullable().alter();
    });
    same((await knex("books").columnInfo()).stock.type, "bigint");
  },
  async enums() {
    await knex.schema.createTable("moods", (t) => t.enu("mood", ["sad", "ok"]));
    await knex("moods").insert({ mood: "ok" });
    await fails("23514", () => knex("moods").insert({ mood: "bad" }));
    await knex.schema.dropTable("moods");
  },
  async native_enums() {
    await knex.schema.createTable("moods2", (t) => t.enu("mood", ["sad", "ok"], { useNative: true, enumName: "mood_type" }));
  },
  async schemas() {
    await knex.schema.createSchema("other");
    await knex.schema.withSchema("other").createTable("t", (t) => t.increments());
  },
  async views() {
    await knex.schema.createView("dear", (v) => {
      v.columns(["title"]);
      v.as(knex("books").select("title").where("price", ">", 1));
    });
    same(await knex("dear").orderBy("title").pluck("title"), ["A", "B"]);
    await knex.schema.dropView("dear");
  },
  async migrates_back() {
    await knex.migrate.rollback({ migrationSource: source }, true);
    same(await knex.schema.hasTable("books"), false);
  },
  async ends() {
    await knex.destroy();
  },
});
