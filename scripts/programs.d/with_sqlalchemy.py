"""SQLAlchemy and alembic: create_all, the ORM, reflection, migrations, autogenerate. DRIVER: psycopg2, psycopg or asyncpg."""
import datetime
import decimal
import os
import pathlib
import tempfile
import uuid

import alembic
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg

from checks import address, check, fails, run, same

DRIVER = os.environ.get("DRIVER", "psycopg2")
engine = sa.create_engine(address(f"postgresql+{DRIVER}"), future=True)
Base = orm.declarative_base()

tagged = sa.Table(
    "tagged", Base.metadata,
    sa.Column("book_id", sa.ForeignKey("book.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag_id", sa.ForeignKey("tag.id"), primary_key=True),
)


class Author(Base):
    __tablename__ = "author"
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.String(50), nullable=False, unique=True)
    books = orm.relationship("Book", back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "book"
    __table_args__ = (
        sa.UniqueConstraint("author_id", "title", name="one_title"), sa.CheckConstraint("id >= 0", name="a_price"),
        sa.Index("by_price", "price", "title"), {"comment": "What is sold"},
    )
    id = sa.Column(sa.BigInteger, sa.Identity(), primary_key=True)
    author_id = sa.Column(sa.ForeignKey("author.id"), nullable=False)
    title = sa.Column(sa.Text, nullable=False)
    price = sa.Column(sa.Numeric(8, 2), server_default="0")
    meta = sa.Column(pg.JSONB)
    at = sa.Column(sa.DateTime(timezone=True), server_default=sa.func.now())
    key = sa.Column(pg.UUID(as_uuid=True), default=uuid.uuid4, comment="given outside")
    author = orm.relationship("Author", back_populates="books")
    tags = orm.relationship("Tag", secondary=tagged)


class Tag(Base):
    __tablename__ = "tag"
    id = sa.Column(sa.Integer, primary_key=True)
    slug = sa.Column(sa.String, nullable=False)
    parent_id = sa.Column(sa.ForeignKey("tag.id", ondelete="SET NULL"))


@check
def connects():
    with engine.connect() as c:
        same(c.execute(sa.text("SELECT 1")).scalar(), 1)
        same(c.dialect.server_version_info >= (12,), True)
        same(c.dialect.default_schema_name, "public")


@check
def create_all():
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)


@check
def orm_rows():
    with orm.Session(engine) as s:
        ann = Author(name="Ann")
        tags = [Tag(slug=f"t{n}") for n in range(3)]
        ann.books = [
            Book(title=f"A{n}", price=decimal.Decimal(n), meta={"n": n, "list": [1, {"x": n}]}, tags=tags[:n]) for n in range(4)
        ]
        s.add_all([ann, Author(name="Bob", books=[Book(title="B")])])
        s.commit()
        same([b.id for b in ann.books], [1, 2, 3, 4])
        book = s.get(Book, 5)
        same((book.price, book.at.tzinfo is not None, type(book.key)), (decimal.Decimal("0.00"), True, uuid.UUID))
        s.delete(ann.books[0])
        s.commit()
        same(s.scalar(sa.select(sa.func.count()).select_from(Book)), 4)


@check
def loading():
    with orm.Session(engine) as s:
        for how in (orm.joinedload, orm.selectinload, orm.subqueryload):
            authors = s.scalars(sa.select(Author).options(how(Author.books)).order_by(Author.id)).unique().all()
            same([len(a.books) for a in authors], [3, 1])


@check
def queries():
    with orm.Session(engine) as s:
        cte = sa.select(Book.author_id, sa.func.count().label("n")).group_by(Book.author_id).cte("counts")
        same(s.execute(sa.select(Author.name, cte.c.n).join(cte, cte.c.author_id == Author.id).order_by(cte.c.n)).all(),
             [("Bob", 1), ("Ann", 3)])
        row = sa.func.row_number().over(partition_by=Book.author_id, order_by=Book.title.desc()).label("r")
        best = sa.select(Book.title, row).subquery()
        same(s.scalars(sa.select(best.c.title).where(best.c.r == 1).order_by(best.c.title)).all(), ["A3", "B"])
        same(s.scalars(sa.select(Author.name).where(Author.books.any(Book.title == "A2"))).all(), ["Ann"])
        same(s.scalar(sa.select(sa.exists().where(Book.title == "B"))), True)
        same(s.scalars(sa.select(Book.title).where(sa.tuple_(Book.author_id, Book.title).in_([(1, "A1"), (2, "B")]))
                       .order_by(Book.title)).all(), ["A1", "B"])
        same(s.scalars(sa.select(Book.title).where(Book.title.contains("A", autoescape=True)).order_by(Book.id)
                       .limit(2).offset(1)).all(), ["A2", "A3"])
        inner = sa.select(sa.func.max(Book.price)).where(Book.author_id == Author.id).scalar_subquery()
        same(s.execute(sa.select(Author.name, inner).order_by(Author.id)).all(),
             [("Ann", decimal.Decimal(3)), ("Bob", decimal.Decimal(0))])
        lateral = sa.select(Book.title).where(Book.author_id == Author.id).order_by(Book.price.desc()).limit(1).lateral()
        same(s.execute(sa.select(Author.name, lateral.c.title).join(lateral, sa.true()).order_by(Author.id)).all(),
             [("Ann", "A3"), ("Bob", "B")])


@check
def json_paths():
    with orm.Session(engine) as s:
        same(s.scalars(sa.select(Book.title).where(Book.meta["n"].as_integer() == 2)).all(), ["A2"])
        same(s.scalars(sa.select(Book.title).where(Book.meta["list"][1]["x"].astext == "3")).all(), ["A3"])
        same(s.scalars(sa.select(Book.title).where(Book.meta.contains({"n": 1}))).all(), ["A1"])


@check
def changes():
    with engine.begin() as c:
        same(c.execute(sa.update(Book).where(Book.title == "B").values(price=Book.price + 1).returning(Book.price)).scalar(),
             decimal.Decimal("1.00"))
        upsert = pg.insert(Author).values(name="Bob")
        upsert = upsert.on_conflict_do_update(index_elements=["name"], set_={"name": upsert.excluded.name + "by"})
        same(c.execute(upsert.returning(Author.name)).scalar(), "Bobby")
        many = [{"slug": f"m{n}"} for n in range(1000)]
        c.execute(sa.insert(Tag), many)
        same(c.execute(sa.select(sa.func.count()).select_from(Tag)).scalar(), 1003)
        same(c.execute(sa.delete(Tag).where(Tag.slug.like("m%"))).rowcount, 1000)


@check
def transactions():
    with orm.Session(engine) as s:
        s.add(Author(name="gone"))
        try:
            with s.begin_nested():
                s.add(Author(name="Ann"))
                s.flush()
        except sa.exc.IntegrityError:
            pass
        same(s.scalar(sa.select(sa.func.count()).where(Author.name == "gone")), 1)
        s.rollback()
    for level in ("AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
        with engine.connect().execution_options(isolation_level=level) as c:
            same(c.execute(sa.text("SELECT 1")).scalar(), 1)


@check
def for_update():
    with orm.Session(engine) as s:
        same(s.scalars(sa.select(Author.name).where(Author.id == 1).with_for_update()).all(), ["Ann"])
        of = sa.select(Book).join(Author).order_by(Book.id).with_for_update(of=Book, skip_locked=True)
        same(len(s.scalars(of).all()), 4)


@check
def errors():
    with orm.Session(engine) as s:
        for bad in (Author(name=None), Author(name="Ann"), Book(title="x", author_id=10**6)):
            s.add(bad)
            fails(sa.exc.IntegrityError, s.commit)
            s.rollback()
        fails(sa.exc.DataError, lambda: s.execute(sa.text("SELECT 1 / 0")))
        s.rollback()
        fails(sa.exc.ProgrammingError, lambda: s.execute(sa.text("SELECT * FROM nothing")))


@check
def streaming():
    with engine.connect() as c:
        found = c.execution_options(yield_per=100).execute(sa.text("SELECT g FROM generate_series(1, 1000) AS g"))
        same(sum(len(p) for p in found.partitions()), 1000)


@check
def core_types():
    table = sa.Table(
        "kinds", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("b", sa.Boolean),
        sa.Column("s", sa.SmallInteger), sa.Column("f", sa.Float), sa.Column("by", sa.LargeBinary), sa.Column("d", sa.Date),
        sa.Column("ts", sa.DateTime), sa.Column("c", sa.CHAR(3)), sa.Column("r", sa.REAL), sa.Column("dp", pg.DOUBLE_PRECISION),
    )
    row = (1, True, 2, 1.5, b"\0\1", datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3), "abc", 0.5, 0.25)
    with engine.begin() as c:
        table.create(c)
        c.execute(table.insert().values(row))
        same(tuple(c.execute(table.select()).one()), row)
    same(type(sa.Table("kinds", sa.MetaData(), autoload_with=engine).c.c.type).__name__, "CHAR")


@check
def arrays_intervals_times():
    table = sa.Table(
        "more", sa.MetaData(), sa.Column("a", pg.ARRAY(sa.Integer)), sa.Column("i", sa.Interval), sa.Column("t", sa.Time)
    )
    row = ([1, 2], datetime.timedelta(hours=30), datetime.time(12, 30))
    with engine.begin() as c:
        table.create(c)
        c.execute(table.insert(), dict(zip("ait", row)))
        same(tuple(c.execute(table.select().where(table.c.a.contains([2]))).one()), row)


@check
def enums():
    table = sa.Table("moods", sa.MetaData(), sa.Column("m", sa.Enum("sad", "ok", name="mood")))
    with engine.begin() as c:
        table.create(c)
        c.execute(table.insert().values(m="ok"))
        same(c.execute(table.select()).all(), [("ok",)])


@check
def reflection():
    insp = sa.inspect(engine)
    assert {"author", "book", "tag", "tagged"} <= set(insp.get_table_names()), insp.get_table_names()
    columns = {c["name"]: c for c in insp.get_columns("book")}
    same(str(columns["price"]["type"]), "NUMERIC(8, 2)")
    same(columns["price"]["default"], "'0'::numeric")
    same((columns["id"]["identity"] or {}).get("always"), False)
    same((columns["at"]["default"], columns["key"]["comment"], str(columns["meta"]["type"])), ("now()", "given outside", "JSONB"))
    same(str({c["name"]: c for c in insp.get_columns("author")}["id"]["default"]), "nextval('author_id_seq'::regclass)")
    same(insp.get_pk_constraint("tagged")["constrained_columns"], ["book_id", "tag_id"])
    keys = {tuple(k["constrained_columns"]): k for k in insp.get_foreign_keys("tagged")}
    same((keys[("book_id",)]["referred_table"], keys[("book_id",)]["options"]), ("book", {"ondelete": "CASCADE"}))
    same([i["column_names"] for i in insp.get_indexes("book") if i["name"] == "by_price"], [["price", "title"]])
    same([(u["name"], u["column_names"]) for u in insp.get_unique_constraints("book")], [("one_title", ["author_id", "title"])])
    same([(c["name"], c["sqltext"]) for c in insp.get_check_constraints("book")], [("a_price", "id >= 0")])
    same(insp.get_table_comment("book"), {"text": "What is sold"})
    same((insp.has_table("book"), insp.has_table("nothing"), insp.get_view_names()), (True, False, []))
    assert "public" in insp.get_schema_names()


@check
def reflect_all():
    metadata = sa.MetaData()
    metadata.reflect(engine)
    same([c.name for c in metadata.tables["book"].columns][:3], ["id", "author_id", "title"])
    same([t.name for t in metadata.sorted_tables if t.name in ("book", "author")], ["author", "book"])


@check
def views():
    with engine.begin() as c:
        c.execute(sa.text("CREATE VIEW dear AS SELECT title, price FROM book WHERE price > 1"))
    insp = sa.inspect(engine)
    same(insp.get_view_names(), ["dear"])
    assert "price" in insp.get_view_definition("dear")
    same([c["name"] for c in insp.get_columns("dear")], ["title", "price"])


@check
def alembic_operations():
    with engine.begin() as c:
        op = Operations(MigrationContext.configure(c))
        op.create_table("moved", sa.Column("id", sa.Integer, primary_key=True), sa.Column("t", sa.String(10)))
        op.add_column("moved", sa.Column("n", sa.Integer, server_default="3", nullable=False))
        op.alter_column("moved", "t", new_column_name="text", existing_type=sa.String(10))
        op.create_index("moved_text", "moved", ["text"], unique=True)
        op.create_foreign_key("moved_fk", "moved", "author", ["n"], ["id"])
        op.create_check_constraint("moved_n", "moved", "n > 0")
        op.alter_column("moved", "text", nullable=False, existing_type=sa.String(10))
        op.alter_column("moved", "text", server_default="x", existing_type=sa.String(10))
        op.bulk_insert(sa.table("moved", sa.column("id"), sa.column("text"), sa.column("n")), [{"id": 1, "text": "a", "n": 1}])
        op.drop_constraint("moved_fk", "moved")
        op.drop_index("moved_text", "moved")
        op.drop_column("moved", "text")
        op.rename_table("moved", "gone")
        op.drop_table("gone")


@check
def alembic_alters_types():
    with engine.begin() as c:
        op = Operations(MigrationContext.configure(c))
        op.create_table("typed", sa.Column("n", sa.Integer), sa.Column("t", sa.String(10)))
        c.execute(sa.text("INSERT INTO typed VALUES (1, '7')"))
        op.alter_column("typed", "t", type_=sa.Text(), existing_type=sa.String(10))
        op.alter_column("typed", "n", type_=sa.BigInteger(), existing_type=sa.Integer())
        op.alter_column("typed", "t", type_=sa.Integer(), postgresql_using="t::integer")
        same(c.execute(sa.text("SELECT n, t FROM typed")).one(), (1, 7))
        op.drop_table("typed")


@check
def autogenerate():
    def included(_object, name, kind, _reflected, _to):
        return kind != "table" or name in ("author", "book", "tag", "tagged")

    with engine.connect() as c:
        options = {"compare_type": True, "include_object": included}
        same(compare_metadata(MigrationContext.configure(c, opts=options), Base.metadata), [])
    later = sa.MetaData()
    for table in Base.metadata.sorted_tables:
        (table.to_metadata if hasattr(table, "to_metadata") else table.tometadata)(later)
    later.tables["tag"].append_column(sa.Column("colour", sa.String(5)))
    with engine.connect() as c:
        found = compare_metadata(MigrationContext.configure(c, opts=options), later)
    same([(d[0], d[3].name) for d in found], [("add_column", "colour")])


@check
def alembic_command_line():
    with tempfile.TemporaryDirectory() as folder:
        config = Config()
        config.set_main_option("script_location", folder)
        config.stdout = open(os.devnull, "w")
        root = pathlib.Path(folder)
        (root / "versions").mkdir()
        (root / "script.py.mako").write_text(
            "revision = ${repr(up_revision)}\ndown_revision = ${repr(down_revision)}\nbranch_labels = None\ndepends_on = None\n"
            "from alembic import op\nimport sqlalchemy as sa\n"
            "def upgrade():\n    ${upgrades if upgrades else 'pass'}\ndef downgrade():\n    ${downgrades if downgrades else 'pass'}\n"
        )
        (root / "env.py").write_text(
            "from alembic import context\n"
            "with context.config.attributes['engine'].connect() as c:\n"
            "    context.configure(connection=c, target_metadata=None)\n"
            "    with context.begin_transaction():\n        context.run_migrations()\n    getattr(c, 'commit', lambda: None)()\n"
        )
        config.attributes["engine"] = engine
        made = command.revision(config, message="one")
        text = pathlib.Path(made.path).read_text()
        text = text.replace("    pass", "    op.create_table('one', sa.Column('id', sa.Integer, primary_key=True))", 1)
        pathlib.Path(made.path).write_text(text.replace("    pass", "    op.drop_table('one')", 1))
        command.upgrade(config, "head")
        same(sa.inspect(engine).has_table("one"), True)
        command.downgrade(config, "base")
        same(sa.inspect(engine).has_table("one"), False)


@check
def schemas():
    table = sa.Table("t", sa.MetaData(schema="other"), sa.Column("id", sa.Integer, primary_key=True))
    with engine.begin() as c:
        c.execute(sa.schema.CreateSchema("other"))
        table.create(c)
        c.execute(table.insert().values(id=1))
        same(c.execute(table.select()).all(), [(1,)])


@check
def drop_all():
    with engine.begin() as c:
        c.execute(sa.text("DROP VIEW IF EXISTS dear"))
    Base.metadata.drop_all(engine)
    same(sa.inspect(engine).has_table("book"), False)


run(f"{sa.__version__}, alembic {alembic.__version__}, {DRIVER}")
