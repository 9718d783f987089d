// drizzle: its migrator, inserts, selects with joins and relations, transactions, prepared statements, its errors.
"use strict";
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { Pool } = require("pg");
const { and, asc, avg, count, desc, eq, exists, gt, ilike, inArray, relations, sql } = require("drizzle-orm");
const { drizzle } = require("drizzle-orm/node-postgres");
const { migrate } = require("drizzle-orm/node-postgres/migrator");
const pg = require("drizzle-orm/pg-core");
const { address, assert, fails, run, same, version } = require("./checks.js");

const mood = pg.pgEnum("mood", ["sad", "ok"]);
const author = pg.pgTable("author", { id: pg.serial("id").primaryKey(), name: pg.varchar("name", { length: 50 }).notNull().unique() });
const book = pg.pgTable("book", {
  id: pg.bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(), authorId: pg.integer("author_id").notNull().references(() => author.id),
  title: pg.text("title").notNull(), price: pg.numeric("price", { precision: 8, scale: 2 }).default("0"), meta: pg.jsonb("meta"), tags: pg.text("tags").array(),
  mood: mood("mood").default("ok"), at: pg.timestamp("at", { withTimezone: true }).defaultNow(), key: pg.uuid("key").defaultRandom(), out: pg.date("out"), span: pg.interval("span"),
});
const schema = {
  author, book,
  authorRelations: relations(author, ({ many }) => ({ books: many(book) })),
  bookRelations: relations(book, ({ one }) => ({ author: one(author, { fields: [book.authorId], references: [author.id] }) })),
};
const pool = new Pool({ ...address, max: 3 });
const db = drizzle(pool, { schema });
// What drizzle-kit generates of these tables.
const MIGRATION = `CREATE TYPE "public"."mood" AS ENUM('sad', 'ok');--> statement-breakpoint
CREATE TABLE "author" ("id" serial PRIMARY KEY NOT NULL, "name" varchar(50) NOT NULL, CONSTRAINT "author_name_unique" UNIQUE("name"));
--> statement-breakpoint
CREATE TABLE "book" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "book_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"author_id" integer NOT NULL, "title" text NOT NULL, "price" numeric(8, 2) DEFAULT '0', "meta" jsonb, "tags" text[], "mood" "mood" DEFAULT 'ok',
	"at" timestamp with time zone DEFAULT now(), "key" uuid DEFAULT gen_random_uuid(), "out" date, "span" interval
);
--> statement-breakpoint
ALTER TABLE "book" ADD CONSTRAINT "book_author_id_author_id_fk" FOREIGN KEY ("author_id") REFERENCES "public"."author"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "by_price" ON "book" USING btree ("price" DESC NULLS LAST,"title");--> statement-breakpoint
CREATE VIEW "public"."dear" AS (select "title", "price" from "book" where "price" > 1);`;
const LATER = `ALTER TYPE "public"."mood" ADD VALUE 'glad';--> statement-breakpoint
ALTER TABLE "book" ALTER COLUMN "price" SET DATA TYPE numeric(10, 2);--> statement-breakpoint
ALTER TABLE "book" ADD COLUMN "stock" integer DEFAULT 3 NOT NULL;`;

function folder(...texts) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "drizzle"));
  fs.mkdirSync(path.join(made, "meta"));
  const entries = texts.map((text, idx) => {
    fs.writeFileSync(path.join(made, `000${idx}.sql`), text);
    return { idx, version: "7", when: 1700000000000 + idx, tag: `000${idx}`, breakpoints: true };
  });
  fs.writeFileSync(path.join(made, "meta/_journal.json"), JSON.stringify({ version: "7", dialect: "postgresql", entries }));
  return made;
}

run(version("drizzle-orm"), {
  async migrates() {
    await migrate(db, { migrationsFolder: folder(MIGRATION) });
    await migrate(db, { migrationsFolder: folder(MIGRATION) });
  },
  async inserts() {
    const [ann] = await db.insert(author).values([{ name: "Ann" }, { name: "Bob" }]).returning();
    same(ann, { id: 1, name: "Ann" });
    const made = await db.insert(book).values([
      { authorId: 1, title: "A", price: "1.50", meta: { pages: 3 }, tags: ["x", "y,z"], out: "2024-02-29", span: "1 day 02:00:00" }, { authorId: 1, title: "B" }, { authorId: 2, title: "C", mood: "sad" },
    ]).returning({ id: book.id, mood: book.mood, span: book.span });
    same(made.map((b) => [b.id, b.mood]), [[1, "ok"], [2, "ok"], [3, "sad"]]);
    const upsert = db.insert(author).values({ name: "Bob" }).onConflictDoUpdate({ target: author.name, set: { name: sql`excluded.name || 'by'` } });
    same((await upsert.returning())[0].name, "Bobby");
    same(await db.insert(author).values({ id: 1, name: "x" }).onConflictDoNothing().returning(), []);
  },
  async selects() {
    const rows = await db.select().from(book).innerJoin(author, eq(author.id, book.authorId)).where(and(ilike(book.title, "a%"), gt(book.price, "1")));
    same(rows.map((r) => [r.author.name, r.book.price, r.book.meta, r.book.tags, r.book.out]), [["Ann", "1.50", { pages: 3 }, ["x", "y,z"], "2024-02-29"]]);
    same(rows[0].book.at instanceof Date, true);
    const counted = await db.select({ name: author.name, n: count(), mean: avg(book.price) }).from(author).leftJoin(book, eq(author.id, book.authorId)).groupBy(author.id).having(({ n }) => gt(n, 1)).orderBy(desc(count()));
    same(counted, [{ name: "Ann", n: 2, mean: "0.75000000000000000000" }]);
    const dear = db.$with("dear_books").as(db.select().from(book).where(gt(book.price, "1")));
    same((await db.with(dear).select().from(dear)).length, 1);
    const inner = db.select().from(book).where(and(eq(book.authorId, author.id), inArray(book.title, ["C"])));
    same(await db.select({ name: author.name }).from(author).where(exists(inner)), [{ name: "Bobby" }]);
    same(await db.selectDistinctOn([book.authorId], { title: book.title }).from(book).orderBy(book.authorId, desc(book.title)), [{ title: "B" }, { title: "C" }]);
    same(await db.$count(book, eq(book.mood, "sad")), 1);
    same(await pg.union(db.select({ t: book.title }).from(book), db.select({ t: author.name }).from(author)).orderBy(sql`1`).limit(2), [{ t: "A" }, { t: "Ann" }]);
    const last = db.select({ title: book.title }).from(book).where(eq(book.authorId, author.id)).orderBy(desc(book.id)).limit(1).as("last");
    same(await db.select({ name: author.name, title: last.title }).from(author).leftJoinLateral(last, sql`true`).orderBy(asc(author.id)), [{ name: "Ann", title: "B" }, { name: "Bobby", title: "C" }]);
  },
  async relations() {
    const found = await db.query.author.findMany({ with: { books: { columns: { title: true, price: true }, orderBy: [desc(book.title)], limit: 5 } }, orderBy: [asc(author.id)] });
    same(found.map((a) => a.books.map((b) => b.title)), [["B", "A"], ["C"]]);
    same((await db.query.book.findFirst({ where: eq(book.title, "C"), with: { author: true }, extras: { loud: sql`upper(${book.title}) || '!'`.as("loud") } })).author.name, "Bobby");
  },
  async changes() {
    same((await db.update(book).set({ price: sql`${book.price} + 1` }).where(eq(book.title, "A")).returning())[0].price, "2.50");
    same((await db.update(book).set({ title: sql`${author.name} || 1` }).from(author).where(and(eq(author.id, book.authorId), eq(author.id, 2))).returning({ t: book.title })), [{ t: "Bobby1" }]);
    same((await db.delete(book).where(eq(book.mood, "sad")).returning({ id: book.id })), [{ id: 3 }]);
  },
  async transactions() {
    await assert.rejects(db.transaction(async (tx) => {
      await tx.insert(author).values({ name: "gone" });
      await tx.transaction((inner) => inner.insert(author).values({ name: "Ann" })).catch((e) => same((e.cause || e).code, "23505"));
      same(await tx.$count(author, eq(author.name, "gone")), 1);
      tx.rollback();
    }), /Rollback/);
    same(await db.$count(author), 2);
    await db.transaction(async (tx) => {
      same((await tx.select().from(author).where(eq(author.id, 1)).for("update", { skipLocked: true })).length, 1);
    }, { isolationLevel: "repeatable read", accessMode: "read write", deferrable: false });
  },
  async prepared() {
    const one = db.select().from(book).where(eq(book.id, sql.placeholder("id"))).limit(sql.placeholder("n")).prepare("one");
    for (const id of [1, 2, 1]) same((await one.execute({ id, n: 1 }))[0].id, id);
  },
  async errors() {
    await fails("23503", () => db.insert(book).values({ authorId: 999, title: "x" }));
    await fails("22P02", () => db.execute(sql`SELECT 'glad'::mood`));
    await fails("428C9", () => db.execute(sql`INSERT INTO book (id, author_id, title) VALUES (9, 1, 'x')`));
  },
  async materialized_and_views() {
    same((await db.execute(sql`SELECT * FROM dear`)).rows, [{ title: "A", price: "2.50" }]);
  },
  async migrates_later() {
    await db.execute(sql`DROP VIEW dear`);
    await migrate(db, { migrationsFolder: folder(MIGRATION, LATER) });
    same((await db.execute(sql`UPDATE book SET mood = 'glad' WHERE title = 'A' RETURNING stock, mood`)).rows, [{ stock: 3, mood: "glad" }]);
  },
  async ends() {
    await pool.end();
  },
});
