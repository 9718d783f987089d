// Sequelize: sync, models and associations, queries, transactions, its errors.
"use strict";
const { address, assert, run, same } = require("./checks.js");
const { DataTypes, Op, QueryTypes, Sequelize, UniqueConstraintError, ForeignKeyConstraintError, ValidationError } = require("sequelize");
const db = new Sequelize({ dialect: "postgres", logging: false, host: address.host, port: address.port, username: address.user, database: address.database });
const Author = db.define("author", { name: { type: DataTypes.STRING(50), allowNull: false, unique: true } });
const Book = db.define("book", {
  title: { type: DataTypes.TEXT, allowNull: false }, price: { type: DataTypes.DECIMAL(8, 2), defaultValue: 0 },
  sold: DataTypes.BOOLEAN, out: DataTypes.DATEONLY, meta: DataTypes.JSONB, key: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
}, { indexes: [{ fields: ["title", "price"] }], paranoid: true });
const Tag = db.define("tag", { slug: DataTypes.STRING }, { timestamps: false });
Author.hasMany(Book, { foreignKey: { allowNull: false }, onDelete: "CASCADE" });
Book.belongsTo(Author);
Book.belongsToMany(Tag, { through: "book_tags" });
Tag.belongsToMany(Book, { through: "book_tags" });

run(require("sequelize/package.json").version, {
  async connects() {
    await db.authenticate();
    same(await db.databaseVersion().then((v) => Number.parseInt(v) >= 12), true);
  },
  async sync() {
    await db.sync();
    await db.sync();
  },
  async rows() {
    const ann = await Author.create({ name: "Ann", books: [{ title: "A", price: "1.50", meta: { pages: 3 } }, { title: "B" }] }, { include: Book });
    same([ann.id, ann.books.length], [1, 2]);
    const tag = await Tag.create({ slug: "t" });
    await ann.books[0].addTag(tag);
    same(await ann.books[0].countTags(), 1);
    await Author.bulkCreate([{ name: "Bob" }, { name: "Cy" }]);
  },
  async queries() {
    const found = await Author.findAll({ include: { model: Book, include: Tag }, order: [["id", "ASC"], [Book, "title", "DESC"]] });
    same(found.map((a) => a.books.map((b) => [b.title, b.tags.length])), [[["B", 0], ["A", 1]], [], []]);
    same(await Book.count({ where: { [Op.or]: [{ title: { [Op.like]: "A%" } }, { price: { [Op.gt]: 100 } }] } }), 1);
    same((await Author.findAndCountAll({ limit: 2, offset: 1, order: ["id"] })).count, 3);
    same(await Book.sum("price"), 1.5);
    same((await Author.findAll({ include: Book, limit: 2, order: ["id"] })).length, 2);
    same(await Book.findOne({ where: { "$author.name$": "Ann" }, include: Author, order: ["id"] }).then((b) => b.author.name), "Ann");
    same(await db.query("SELECT :n + 1 AS n", { replacements: { n: 1 }, type: QueryTypes.SELECT }), [{ n: 2 }]);
    const grouped = await Book.findAll({ attributes: ["authorId", [db.fn("COUNT", db.col("id")), "n"]], group: ["authorId"], raw: true });
    same(grouped, [{ authorId: 1, n: "2" }]);
  },
  async json() {
    same((await Book.findOne({ where: { meta: { pages: 3 } } })).title, "A");
    same((await Book.findOne({ where: { meta: { [Op.contains]: { pages: 3 } } } })).title, "A");
  },
  async changes() {
    const [n, rows] = await Book.update({ sold: true }, { where: { title: "A" }, returning: true });
    same([n, rows[0].sold], [1, true]);
    const [, made] = await Author.findOrCreate({ where: { name: "Dee" } });
    same(made, true);
    const [bob] = await Author.upsert({ name: "Bob" });
    same(bob.name, "Bob");
    await (await Book.findOne({ where: { title: "B" } })).destroy();
    same([await Book.count(), await Book.count({ paranoid: false })], [1, 2]);
    await Book.increment("price", { by: 2, where: { title: "A" } });
    same((await Book.findOne({ where: { title: "A" } })).price, "3.50");
  },
  async transactions() {
    await assert.rejects(db.transaction(async (transaction) => {
      await Author.create({ name: "gone" }, { transaction });
      throw new Error("back");
    }), /back/);
    same(await Author.count({ where: { name: "gone" } }), 0);
    await db.transaction({ isolationLevel: "REPEATABLE READ" }, async (transaction) => {
      same((await Author.findOne({ where: { name: "Ann" }, lock: true, skipLocked: true, transaction })).name, "Ann");
    });
  },
  async errors() {
    await assert.rejects(Author.create({ name: "Ann" }), UniqueConstraintError);
    await assert.rejects(Author.create({}), ValidationError);
    await assert.rejects(Book.create({ title: "x", authorId: 999 }), (e) => {
      assert(e instanceof ForeignKeyConstraintError, e.message);
      same([e.table, e.index], ["books", "books_authorId_fkey"]);
      return true;
    });
  },
  async describes() {
    const query = db.getQueryInterface();
    const found = await query.describeTable("books");
    same([found.title.type, found.price.type, found.id.primaryKey, found.title.allowNull], ["TEXT", "NUMERIC", true, false]);
    same((await query.showAllTables()).sort(), ["authors", "book_tags", "books", "tags"]);
  },
  async shows_indexes() {
    const found = await db.getQueryInterface().showIndex("books");
    same(found.map((i) => [i.name, i.fields.map((f) => f.attribute)]).sort(), [["books_pkey", ["id"]], ["books_title_price", ["title", "price"]]]);
  },
  async shows_foreign_keys() {
    const found = await db.getQueryInterface().getForeignKeyReferencesForTable("books");
    same(found.map((k) => [k.columnName, k.referencedTableName]), [["authorId", "authors"]]);
  },
  async changes_definitions() {
    const query = db.getQueryInterface();
    await query.addColumn("books", "stock", { type: DataTypes.INTEGER, defaultValue: 3 });
    await query.renameColumn("books", "stock", "left");
    await query.addIndex("books", ["left"]);
    await query.changeColumn("books", "left", { type: DataTypes.BIGINT, allowNull: false });
    await query.removeColumn("books", "left");
  },
  async sync_alter() {
    Book.rawAttributes.stock = { type: DataTypes.INTEGER, allowNull: true };
    Book.refreshAttributes();
    await db.sync({ alter: true });
    same("stock" in (await db.getQueryInterface().describeTable("books")), true);
  },
  async enums() {
    await db.define("mood", { mood: DataTypes.ENUM("sad", "ok") }).sync();
  },
  async arrays() {
    const Bag = db.define("bag", { things: DataTypes.ARRAY(DataTypes.INTEGER) });
    await Bag.sync();
    await Bag.create({ things: [1, 2] });
    same(await Bag.count({ where: { things: { [Op.contains]: [2] } } }), 1);
  },
  async drops() {
    for (const name of ["book_tags", "tags", "books", "authors"]) await db.getQueryInterface().dropTable(name);
  },
  async ends() {
    await db.close();
  },
});
