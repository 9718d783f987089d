// TypeORM: a schema by synchronize, relations, the query builder, transactions, migrations, what a second synchronize changes.
"use strict";
require("reflect-metadata");
const { DataSource, EntitySchema, In, Like, MoreThan, QueryFailedError, Table, TableColumn, TableForeignKey, TableIndex } = require("typeorm");
const { address, assert, fails, run, same, version } = require("./checks.js");

const columns = { id: { type: "int", primary: true, generated: true }, name: { type: "varchar", length: 50, unique: true } };
const Author = new EntitySchema({
  name: "author", columns, relations: { books: { type: "one-to-many", target: "book", inverseSide: "author", cascade: true } },
});
const Book = new EntitySchema({
  name: "book",
  columns: {
    id: { type: "uuid", primary: true, generated: "uuid" }, title: { type: "text" }, price: { type: "numeric", precision: 8, scale: 2, default: 0 },
    meta: { type: "jsonb", nullable: true }, tags: { type: "text", array: true, default: () => "'{}'" }, out: { type: "date", nullable: true },
    mood: { type: "enum", enum: ["sad", "ok"], default: "ok" }, at: { type: "timestamptz", createDate: true }, gone: { type: "timestamp", deleteDate: true, nullable: true },
    version: { type: "int", version: true },
  },
  indices: [{ name: "by_price", columns: ["price", "title"] }], checks: [{ name: "a_price", expression: "price >= 0" }],
  relations: {
    author: { type: "many-to-one", target: "author", inverseSide: "books", onDelete: "CASCADE", nullable: false },
    genres: { type: "many-to-many", target: "genre", joinTable: true, cascade: true },
  },
});
const Genre = new EntitySchema({ name: "genre", columns });

const made = (more = {}) => new DataSource({
  type: "postgres", host: address.host, port: address.port, username: address.user, database: address.database, uuidExtension: "pgcrypto",
  entities: [Author, Book, Genre], ...more,
});
const db = made();
const authors = () => db.getRepository("author");
const books = () => db.getRepository("book");

class First {
  name = "First1700000000000";
  async up(runner) {
    await runner.createTable(new Table({
      name: "moved", columns: [{ name: "id", type: "int", isPrimary: true, isGenerated: true, generationStrategy: "increment" }, { name: "t", type: "varchar", length: "10" }],
    }), true);
    await runner.addColumn("moved", new TableColumn({ name: "n", type: "int", default: 3 }));
    await runner.createIndex("moved", new TableIndex({ name: "moved_t", columnNames: ["t"], isUnique: true }));
    await runner.createForeignKey("moved", new TableForeignKey({ columnNames: ["n"], referencedTableName: "author", referencedColumnNames: ["id"] }));
    await runner.renameColumn("moved", "t", "text");
    await runner.changeColumn("moved", "text", new TableColumn({ name: "text", type: "text", isNullable: true }));
  }
  async down(runner) {
    await runner.dropTable("moved");
  }
}

run(version("typeorm"), {
  async connects() {
    await db.initialize();
    same(await db.query("SELECT $1::int + 1 AS n", [1]), [{ n: 2 }]);
  },
  async synchronizes() {
    await db.synchronize();
  },
  async nothing_left_to_synchronize() {
    const found = await db.driver.createSchemaBuilder().log();
    same(found.upQueries.map((q) => q.query), []);
  },
  async rows() {
    const genre = await db.getRepository("genre").save({ name: "g" });
    const ann = await authors().save({ name: "Ann", books: [{ title: "A", price: "1.50", meta: { pages: 3 }, tags: ["x", "y,z"], genres: [genre] }, { title: "B", out: "2024-02-29" }] });
    same([ann.id, ann.books[0].version, ann.books[0].mood], [1, 1, "ok"]);
    await authors().insert([{ name: "Bob" }, { name: "Cy" }]);
  },
  async finds() {
    const found = await authors().find({ relations: { books: { genres: true } }, order: { id: "ASC", books: { title: "DESC" } } });
    same(found.map((a) => a.books.map((b) => [b.title, b.genres.length, b.tags])), [[["B", 0, []], ["A", 1, ["x", "y,z"]]], [], []]);
    same(await books().count({ where: [{ title: Like("A%") }, { price: MoreThan(100) }] }), 1);
    same((await authors().findAndCount({ skip: 1, take: 1, order: { id: "ASC" }, relations: { books: true } }))[1], 3);
    same((await authors().findOneBy({ name: In(["Ann", "x"]) })).id, 1);
    same(await books().sum("price"), 1.5);
    same(await books().exists({ where: { author: { name: "Ann" } } }), true);
  },
  async query_builder() {
    const sums = await books().createQueryBuilder("b").innerJoin("b.author", "a").select("a.name", "name").addSelect("count(*)", "n").groupBy("a.name").having("count(*) > :n", { n: 1 }).getRawMany();
    same(sums, [{ name: "Ann", n: "2" }]);
    const some = await authors().createQueryBuilder("a").leftJoinAndSelect("a.books", "b").where((q) => "a.id IN " + q.subQuery().select("c.authorId").from("book", "c").where("c.price > 1").getQuery()).orderBy("b.price", "DESC", "NULLS LAST").take(5).getMany();
    same(some.map((a) => a.books.map((b) => b.title)), [["A", "B"]]);
    same((await books().createQueryBuilder("b").where("b.meta ->> 'pages' = '3'").distinctOn(["b.title"]).getMany()).length, 1);
    same((await db.createQueryBuilder().addCommonTableExpression("SELECT 1 AS n", "t").select("t.n", "n").from("t", "t").getRawMany()), [{ n: 1 }]);
  },
  async changes() {
    const [book] = await books().find({ where: { title: "A" } });
    book.price = "3.50";
    same((await books().save(book)).version, 2);
    const done = await books().createQueryBuilder().update().set({ price: () => "price + 1" }).where({ title: "A" }).returning("price").execute();
    same(done.raw, [{ price: "4.50" }]);
    await authors().upsert([{ name: "Bob" }, { name: "Dee" }], ["name"]);
    await authors().createQueryBuilder().insert().values({ name: "Dee" }).orIgnore().execute();
    await books().increment({ title: "A" }, "price", 1);
    await books().softDelete({ title: "B" });
    same([await books().count(), await books().count({ withDeleted: true })], [1, 2]);
    await books().restore({ title: "B" });
    same((await authors().delete({ name: "Cy" })).affected, 1);
  },
  async transactions() {
    await assert.rejects(db.transaction("SERIALIZABLE", async (all) => {
      await all.insert("author", { name: "gone" });
      await assert.rejects(all.transaction((inner) => inner.insert("author", { name: "Ann" })), QueryFailedError);
      same(await all.count("author", { where: { name: "gone" } }), 1);
      throw new Error("back");
    }), /back/);
    same(await authors().count({ where: { name: "gone" } }), 0);
    await db.transaction(async (all) => {
      same((await all.createQueryBuilder("author", "a").setLock("pessimistic_write").setOnLocked("skip_locked").where("a.id = 1").getOne()).name, "Ann");
    });
  },
  async errors() {
    await fails("23505", () => authors().insert({ name: "Ann" }));
    await fails("23514", () => books().insert({ title: "x", price: -1, author: { id: 1 } }));
    await fails("23503", () => books().insert({ title: "x", author: { id: 999 } }));
    await fails("22P02", () => books().insert({ title: "x", mood: "glad", author: { id: 1 } }));
  },
  async streams() {
    let n = 0;
    for await (const row of await authors().createQueryBuilder("a").stream()) n += row.a_id > 0 ? 1 : 0;
    same(n, 3);
  },
  async migrations() {
    const other = await made({ migrations: [First] }).initialize();
    same((await other.runMigrations({ transaction: "all" })).length, 1);
    same(await other.showMigrations(), false);
    await other.query("INSERT INTO moved (text) VALUES ('longer than ten characters') ON CONFLICT DO NOTHING").catch((e) => same(e.code, "23503"));
    await other.undoLastMigration();
    await other.destroy();
  },
  async reads_tables() {
    const runner = db.createQueryRunner();
    const table = await runner.getTable("book");
    same(table.columns.filter((c) => ["id", "price", "mood", "tags"].includes(c.name)).map((c) => [c.name, c.type, c.isNullable, c.isArray, c.default]).sort(),
      [["id", "uuid", false, false, "uuid_generate_v4()"], ["mood", "enum", false, false, "'ok'"], ["price", "numeric", false, false, "'0'"], ["tags", "text", false, true, "'{}'"]]
        .map((c) => [...c.slice(0, 4), table.findColumnByName(c[0]).default]));
    same([table.indices.map((i) => i.name), table.checks.map((c) => c.name), table.foreignKeys.map((k) => [k.columnNames, k.onDelete])], [["by_price"], ["a_price"], [[["authorId"], "CASCADE"]]]);
    await runner.release();
  },
  async synchronizes_changes() {
    const LaterGenre = new EntitySchema({ name: "genre", columns: { id: columns.id, name: { type: "varchar", length: 50, unique: true }, colour: { type: "varchar", nullable: true } } });
    const Mood = new EntitySchema({ ...Book.options, columns: { ...Book.options.columns, mood: { type: "enum", enum: ["sad", "ok", "glad"], default: "ok" } } });
    const other = await made({ entities: [Author, Mood, LaterGenre] }).initialize();
    await other.synchronize();
    await other.getRepository("book").update({ title: "A" }, { mood: "glad" });
    same((await other.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query), []);
    await other.destroy();
  },
  async drops() {
    await db.dropDatabase();
    same(await db.query("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"), []);
    await db.destroy();
  },
});
