"""Queries and statements over a world's tables."""

import sqltypes
from expressions import Expressions, Scope, families
from signatures import wider
from sqltypes import NUMBERS, STRINGS
from tree import Items, Literal, Maybe, Node, Query, Tail


class Relation:
    """What stands in FROM: `columns` are (as an expression names it, bare name, type), in the order of `*`. `unique`: no
    two rows are alike in all of them."""

    def __init__(self, node, columns, unique=False):
        self.node, self.columns, self.unique = node, columns, unique

    def scope(self):
        return [(reference, type) for reference, _, type in self.columns]


class Statement:
    """What is sent: `steps` in order, of which `main` may be made smaller; in a transaction that is rolled back if
    `changes`."""

    def __init__(self, kind, main, after=()):
        self.kind, self.main, self.after = kind, main, list(after)
        self.changes = bool(self.after)
        # "simple", or the extended protocol: with results as text or in binary, literals as parameters or not.
        self.protocol, self.parameters, self.binary = "simple", False, False

    def ordered(self):
        return isinstance(self.main, Query) and self.main.ordered()


class FixedTail(Tail):
    def edits(self):
        return []


class Generator(Expressions):
    def __init__(self, rng, features, tables, types):
        super().__init__(rng, features, types)
        self.tables, self.count, self.ctes = tables, 0, []

    def statement(self):
        self.count, self.ctes = 0, []
        kind = self.rng.random()
        if kind < 0.1:
            made = Statement("by key", self.by_key())
        elif kind < 0.17:
            made = Statement("risky", self.risky_query())
        elif kind < 0.27:
            made = self.change()
        elif kind < 0.28:
            made = Statement("volatile", self.volatile())
        else:
            made = Statement(
                "query", self.query(None, self.rng.choice([0, 0, 1, 1, 2, 3]) + (self.features["deep"] > 1), top=True)
            )
        if self.chance(0.4):
            made.protocol = "extended"
            made.parameters, made.binary = self.chance(0.6), self.chance(0.5)
        return made

    def alias(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    # FROM

    def table(self):
        table = self.rng.choice(self.tables)
        alias = self.alias("t")
        return Relation(
            Node(f"{table.name} AS {alias}", type="from"), [(f"{alias}.{n}", n, t) for n, t in table.fields()], True
        )

    def relation(self, depth, outer):
        kind = self.rng.random()
        if depth > 0 and kind < 0.18 * self.features["subqueries"]:
            return self.derived(self.query(outer if self.chance(0.0) else None, depth - 1))
        if self.ctes and self.chance(0.5):
            name, columns = self.rng.choice(self.ctes)
            alias = self.alias("e")
            return Relation(Node(f"{name} AS {alias}", type="from"), [(f"{alias}.{n}", n, t) for n, t in columns])
        if self.chance(0.05, "values"):
            types = [self.some_type() for _ in range(self.rng.randint(1, 3))]
            return self.derived(self.values(types), named=True)
        if self.chance(0.04, "series"):
            alias = self.alias("g")
            call = f"generate_series({self.rng.choice(['1, 3', '0, 2', '3, 1, -1', '1, 0'])}) AS {alias}(x)"
            return Relation(Node(call, type="from"), [(f"{alias}.x", "x", "int4")], True)
        return self.table()

    def derived(self, query, named=False, lateral=""):
        alias = self.alias("q")
        columns = query.columns
        names = ""
        if named or self.chance(0.1):
            columns = [(f"x{at}", type) for at, (_, type) in enumerate(columns)]
            names = f"({', '.join(n for n, _ in columns)})"
        node = Node(lateral, "(", query, f") AS {alias}{names}", type="from")
        return Relation(node, [(f"{alias}.{n}", n, t) for n, t in columns])

    def source(self, depth, outer):
        """A relation, or joins of several."""
        made = self.relation(depth, outer)
        for _ in range(2):
            if not self.chance(0.4, "joins"):
                break
            made = self.join(made, depth, outer)
        return made

    def join(self, left, depth, outer):
        if self.chance(0.05, "lateral"):
            inner = self.query(Scope(left.scope(), outer), max(depth - 1, 0))
            right = self.derived(inner, lateral="LATERAL ")
            word = self.rng.choice([" CROSS JOIN ", " LEFT JOIN "])
            on = [] if "CROSS" in word else [" ON true"]
            return Relation(Node(left.node, word, right.node, *on, type="from"), left.columns + right.columns)
        right = self.relation(depth, outer)
        if self.chance(0.1):
            right = self.join(right, depth - 1, outer)
            right.node = Node("(", right.node, ")", type="from")
        words = ["JOIN"] + (
            ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] if self.chance(0.6, "outer") else ["INNER JOIN", "CROSS JOIN", ","]
        )
        word = self.rng.choice(words)
        both, unique = left.columns + right.columns, left.unique and right.unique
        if word in ("CROSS JOIN", ","):
            # A comma binds less than JOIN: what follows could not see the left side.
            return Relation(Node(left.node, " CROSS JOIN ", right.node, type="from"), both, unique)
        shared = self.shared(left, right)
        if shared and self.chance(0.3, "using"):
            return self.merged(word, left, right, shared)
        on = self.on(word, left, right, outer)
        return Relation(Node(left.node, f" {word} ", right.node, " ON ", on, type="from"), both, unique)

    def shared(self, left, right):
        names = [n for _, n, _ in left.columns]
        others = [n for _, n, _ in right.columns]
        found = []
        for _, name, type in left.columns:
            if names.count(name) == 1 and others.count(name) == 1:
                its = next(t for _, n, t in right.columns if n == name)
                if its in families(type):
                    found.append((name, common(type, its)))
        return found

    def merged(self, word, left, right, shared):
        same = {n for _, n, _ in left.columns} & {n for _, n, _ in right.columns}
        chosen = self.rng.sample(shared, self.rng.randint(1, min(2, len(shared))))
        if len(same) == len(shared) and self.chance(0.3):
            node = Node(left.node, f" NATURAL {word} ", right.node, type="from")
            chosen = shared
        else:
            node = Node(left.node, f" {word} ", right.node, f" USING ({', '.join(n for n, _ in chosen)})", type="from")
        names = {n for n, _ in chosen}
        columns = [(n, n, t) for n, t in chosen]
        # Of a FULL join, rows of both sides without a partner may be alike in what is merged.
        unique = left.unique and right.unique and word != "FULL JOIN"
        return Relation(node, columns + [c for c in left.columns + right.columns if c[1] not in names], unique)

    def on(self, word, left, right, outer):
        pairs = [(a, b) for a, _, t in left.columns for b, _, u in right.columns if u in families(t)]
        if word == "FULL JOIN" or (pairs and self.chance(0.75)):
            if not pairs or self.chance(0.03):
                return Node(self.rng.choice(["true", "false"]), type="bool")
            if word != "FULL JOIN" and self.chance(0.15):
                name, other = pairs[0]
                type = dict(left.scope())[name]
                made = self.of_column(name, type)
                if made is not None and made.type in families(type):
                    return Node(made, f" = {other}", type="bool")
            conditions = [
                Node(f"{a} = {b}", type="bool")
                for a, b in self.rng.sample(pairs, self.rng.choice([1, 1, 1, 2]) if len(pairs) > 1 else 1)
            ]
            if word != "FULL JOIN" and self.chance(0.35):
                conditions.append(self.condition(Scope(left.scope() + right.scope(), outer), 1))
            return Items(conditions, " AND ")
        return self.condition(Scope(left.scope() + right.scope(), outer), 2)

    # SELECT

    def query(self, outer, depth, types=None, top=False, ordered=True):
        if top and self.chance(0.02, "limit"):
            return self.ordered_inside(depth)
        if (depth > 0 or top) and self.chance(0.12, "sets"):
            return self.set_operation(outer, depth, types, ordered)
        if self.chance(0.03, "values"):
            return self.values(types or [self.some_type() for _ in range(self.rng.randint(1, 3))])
        return self.select(outer, depth, types, top, ordered)

    def ordered_inside(self, depth):
        """LIMIT over a derived table that is ordered: the standard leaves open what that means, programs rely on it."""
        inner = self.select_body([], None, depth, None, False, False)
        while not inner.columns:
            inner = self.select_body([], None, depth, None, False, False)
        fixed = FixedTail(inner.lists[0], [self.direction() for _ in inner.columns])
        items = Items([Node(f"q.{name}") for name, _ in inner.columns])
        limit = f" LIMIT {self.rng.choice([1, 2, 3])}"
        ordered = Query(inner, fixed, columns=inner.columns, lists=inner.lists)
        # Nothing else may stand in its place: without the order the LIMIT means nothing.
        ordered.type = None
        return Query("SELECT ", items, " FROM (", ordered, ") AS q", limit, columns=inner.columns, lists=[items])

    def values(self, types):
        rows = [Items([self.literal(type) for type in types], least=len(types)) for _ in range(self.rng.randint(1, 3))]
        columns = [(f"column{at + 1}", type) for at, type in enumerate(types)]
        lines = Items([Node("(", row, ")") for row in rows])
        return Query("VALUES ", lines, columns=columns, lists=rows)

    def set_operation(self, outer, depth, types, ordered):
        types = types or [self.some_type() for _ in range(self.rng.randint(1, 3))]
        widened = [self.rng.choice(families(t)) if t in NUMBERS and self.chance(0.2, "widened") else t for t in types]
        left = self.branch(outer, depth - 1, types)
        right = self.branch(outer, depth - 1, widened)
        word = self.rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        columns = [(name, common(t, u)) for (name, t), u in zip(left.columns, widened)]
        tail = self.tail(left.lists[0], ordered)
        return Query(
            left,
            f" {word} ",
            right,
            *([tail] if tail else []),
            columns=columns,
            lists=left.lists + right.lists,
            tail=tail,
        )

    def branch(self, outer, depth, types):
        query = self.query(outer, depth, types, ordered=False)
        return (
            Query("(", query, ")", columns=query.columns, lists=query.lists)
            if len(query.lists) > 1 or self.chance(0.1)
            else query
        )

    def select(self, outer, depth, types, top, ordered):
        ctes = len(self.ctes)
        parts = []
        if depth > 0 and self.chance(0.12, "ctes"):
            parts.append(self.with_clause(depth))
        made = self.select_body(parts, outer, depth, types, top, ordered)
        del self.ctes[ctes:]
        return made

    def with_clause(self, depth):
        items, recursive = [], ""
        for _ in range(self.rng.randint(1, 2)):
            name = self.alias("w")
            if self.chance(0.1):
                recursive = "RECURSIVE "
                items.append(Node(f"{name}(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM {name} WHERE n < 4)"))
                self.ctes.append((name, [("n", "int4")]))
                continue
            query = self.query(None, depth - 1)
            word = self.rng.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "])
            items.append(Node(f"{name} AS {word}(", query, ")"))
            self.ctes.append((name, query.columns))
        return Maybe(f"WITH {recursive}", Items(items), " ")

    def select_body(self, parts, outer, depth, types, top, ordered):
        source = self.source(depth, outer) if not self.chance(0.04) else None
        scope = Scope(source.scope() if source else [], outer)
        scope.unique = source is None or source.unique
        parts.append("SELECT ")
        where = (
            Maybe(" WHERE ", self.condition(Scope(scope.columns, outer), max(depth, 1)))
            if source and self.chance(0.6)
            else ""
        )
        grouping = ""
        grouped = self.chance(0.25, "grouping") and source is not None
        if grouped:
            grouping = self.grouping(scope)
        window = ""
        if self.chance(0.25, "windows") and source:
            scope.windows, window = self.windows(scope)
        star = top and source and not grouped and types is None and self.chance(0.08, "stars")
        if star:
            alias = source.columns[0][0].split(".")[0]
            text = self.rng.choice(["*", "*", f"{alias}.*"]) if "." in source.columns[0][0] else "*"
            return Query(*parts, text, Maybe(" FROM ", source.node), where, columns=[], lists=[Items([])])
        types = types or [self.some_type(scope) for _ in range(self.rng.choice([1, 1, 2, 2, 3, 4]))]
        # PostgreSQL 15 takes n for constant in `WHERE n = 2 GROUP BY ROLLUP (n)`: NULL is not told from 2.
        distinct = self.chance(0.1, "distinct") and not scope.sets
        selected = self.selected(types, scope, depth, named=not top)
        having = Maybe(" HAVING ", self.condition_over(scope, depth)) if grouped and self.chance(0.3) else ""
        parts += [
            Maybe("DISTINCT ") if distinct else "",
            selected,
            Maybe(" FROM ", source.node) if source else "",
            where,
            grouping,
        ]
        tail = None if scope.sets else self.tail(selected, ordered, None if distinct or grouped or not source else scope)
        parts += [having, window, tail or ""]
        columns = [(f"c{at}", type) for at, type in enumerate(types)]
        return Query(*[part for part in parts if part != ""], columns=columns, lists=[selected], tail=tail)

    def selected(self, types, scope, depth, named):
        items = []
        for at, type in enumerate(types):
            expression = self.literal(type) if self.chance(0.1) else self.expr(type, scope, max(depth, 1))
            if scope.grouped is not None and not scope.grouped and self.chance(0.8):
                expression = self.aggregate(type, scope, depth) or expression
            items.append(expression if not named and self.chance(0.4) else Node(expression, f" AS c{at}"))
        return Items(items)

    def condition_over(self, scope, depth):
        if self.chance(0.3):
            aggregate = self.aggregate("int8", scope, 1) or Node("count(*)", type="int8")
            return Node(
                "(", aggregate, self.rng.choice([" > ", " = ", " < "]), str(self.rng.randint(0, 3)), ")", type="bool"
            )
        return self.condition(scope, min(depth, 2))

    def grouping(self, scope):
        """Sets what is grouped, and returns the clause."""
        inner = Scope(scope.columns, scope.outer)
        found = []
        for _ in range(self.rng.choice([0, 0, 1, 1, 2, 2, 3])):
            if scope.columns and self.chance(0.8):
                found.append(self.rng.choice(scope.columns))
            else:
                # No constants there: they would be positions, and no parameters: they would not be the same expression.
                column = self.rng.choice(inner.columns) if inner.columns else None
                if column:
                    found.append((f"coalesce({column[0]}, {column[0]})", column[1]))
        scope.grouped = list(dict.fromkeys(found))
        texts = [text for text, _ in scope.grouped]
        if not texts:
            return ""
        kind = self.rng.random()
        # Of grouping sets, several rows may have the same groups (NULL stands for all of them), and other aggregates.
        scope.unique, scope.alike, scope.sets = kind < 0.6, kind < 0.6, kind >= 0.6
        if kind < 0.6:
            return Node(" GROUP BY ", Items([Node(text) for text in texts]))
        if kind < 0.75:
            return Node(
                f" GROUP BY {self.rng.choice(['ROLLUP', 'CUBE'])} (", Items([Node(text) for text in texts]), ")"
            )
        sets = [
            f"({', '.join(self.rng.sample(texts, self.rng.randint(0, len(texts))))})"
            for _ in range(self.rng.randint(1, 2))
        ]
        return Node(" GROUP BY GROUPING SETS (", Items([Node(s) for s in sets + [f"({', '.join(texts)})"]]), ")")

    def windows(self, scope):
        name = self.alias("w")
        keyed, inner = self.chance(0.5), Scope(scope.columns, scope.outer)
        inner.grouped = scope.grouped
        parts = []
        if self.chance(0.7):
            parts.append(Maybe("PARTITION BY ", self.sort_key(inner), " "))
        if keyed:
            parts.append(Node("ORDER BY ", self.order_keys(inner, 1)))
        return [(name, keyed)], Maybe(f" WINDOW {name} AS (", *parts, ")")

    def tail(self, selected, ordered, scope=None):
        if not ordered or not self.chance(0.35):
            return None
        orders = [self.direction() for _ in selected.parts]
        limit = self.rng.choice([0, 1, 2, 3, 10]) if self.chance(0.4, "limit") else None
        offset = self.rng.choice([0, 1, 2]) if self.chance(0.2, "limit") else None
        first = None
        if scope is not None and self.chance(0.2):
            # An expression, not a bare constant: that would be a column's position.
            inner = Scope(scope.columns, scope.outer)
            first = (
                Node("(", self.expr(self.some_type(), inner, 1), ") IS NULL")
                if self.chance(0.5)
                else Node(self.sort_key(inner), self.direction())
            )
            if (
                isinstance(first.parts[0], Literal)
                or isinstance(first.parts[0], Node)
                and isinstance(first.parts[0].parts[0], Literal)
            ):
                first = None
        return Tail(selected, orders, limit, offset, first)

    # Subqueries within expressions

    def scalar_subquery(self, type, scope, depth):
        outer = self.around(scope)
        kind = self.rng.random()
        if kind < 0.5:
            source = self.source(0, None)
            inner = Scope(source.scope(), outer)
            inner.grouped = []
            made = self.aggregate(type, inner, 1)
            if made is not None:
                items = Items([made])
                where = Maybe(" WHERE ", self.condition(Scope(inner.columns, outer), 1))
                return Node(
                    "(",
                    Query("SELECT ", items, " FROM ", source.node, where, columns=[("c0", type)], lists=[items]),
                    ")",
                    type=type,
                )
        if kind < 0.75:
            source = self.table()
            inner = Scope(source.scope(), outer)
            items = Items([self.expr(type, inner, 1)])
            where = f" WHERE {source.columns[0][0]} = {self.rng.choice([1, 2, 99])}"
            return Node(
                "(",
                Query("SELECT ", items, " FROM ", source.node, where, columns=[("c0", type)], lists=[items]),
                ")",
                type=type,
            )
        query = self.select_body([], outer, 0, [type], False, False)
        tail = FixedTail(query.lists[0], [self.direction()], 1)
        return Node("(", Query(query, tail, columns=query.columns, lists=query.lists, tail=tail), ")", type=type)

    def around(self, scope):
        """What a subquery may refer to: what stands before grouping is out of sight behind it."""
        if scope.grouped is not None:
            return Scope([pair for pair in scope.grouped if "(" not in pair[0]], scope.outer)
        return Scope(scope.columns, scope.outer)

    def subquery_condition(self, scope, depth):
        outer, kind = self.around(scope), self.rng.random()
        if kind < 0.3:
            query = self.query(outer, max(depth - 2, 0), ordered=False)
            word = self.rng.choice(["(EXISTS (", "(NOT EXISTS ("])
            return Node(word, query, "))", type="bool")
        type = self.some_type(scope)
        left = self.expr(type, scope, 1)
        if kind < 0.75:
            query = self.query(outer, max(depth - 2, 0), [type], ordered=False)
            return Node("(", left, self.rng.choice([" IN (", " NOT IN ("]), query, "))", type="bool")
        if kind < 0.95:
            query = self.query(outer, max(depth - 2, 0), [type], ordered=False)
            word = f" {self.rng.choice(['=', '<>', '<', '<=', '>', '>='])} {self.rng.choice(['ANY', 'ALL', 'SOME'])} ("
            return Node("(", left, word, query, "))", type="bool")
        second = self.some_type()
        query = self.query(outer, max(depth - 2, 0), [type, second], ordered=False)
        return Node(
            "((",
            left,
            ", ",
            self.expr(second, scope, 0),
            self.rng.choice([") IN (", ") NOT IN ("]),
            query,
            "))",
            type="bool",
        )

    # Other kinds of statements

    def by_key(self):
        """One table, conditions on single columns: what goes by key where there is one."""
        table = self.rng.choice(self.tables)
        fields = table.fields()
        wanted = [name for name in (table.key or ["id"])] if self.chance(0.6) else [self.rng.choice(fields)[0]]
        conditions = [self.simple_condition(name, dict(fields)[name]) for name in wanted]
        if self.chance(0.3):
            name, type = self.rng.choice(fields)
            conditions.append(self.simple_condition(name, type))
        names = self.rng.sample(fields, self.rng.randint(1, len(fields)))
        items = Items([Node(name) for name, _ in names])
        tail = self.tail(items, True)
        where = Maybe(" WHERE ", Items(conditions, self.rng.choice([" AND ", " AND ", " OR "])))
        return Query(
            "SELECT ",
            items,
            f" FROM {table.name}",
            where,
            *([tail] if tail else []),
            columns=names,
            lists=[items],
            tail=tail,
        )

    def risky_query(self):
        table = self.table() if self.chance(0.5) else None
        scope = Scope(table.scope() if table else [])
        before = self.features.weights["rare"]
        self.features.weights["rare"] = 6
        made = Items([self.risky(scope)])
        self.features.weights["rare"] = before
        source = [" FROM ", table.node] if table else []
        return Query("SELECT ", made, *source, columns=[("c0", "")], lists=[made])

    def volatile(self):
        """A common table expression is computed once, whoever reads it."""
        table, name = self.rng.choice(self.tables).name, self.alias("w")
        word = self.rng.choice(["", "MATERIALIZED "])
        text = f"WITH {name} AS {word}(SELECT id, random() AS r FROM {table}) "
        text += f"SELECT count(*) FROM {name} AS a JOIN {name} AS b ON a.id = b.id WHERE "
        items = Items([])
        return Query(
            text,
            self.rng.choice(["a.r <> b.r", "a.r = b.r", "a.r IS DISTINCT FROM b.r"]),
            columns=[("count", "int8")],
            lists=[items],
        )

    def change(self):
        table = self.rng.choice(self.tables)
        made = self.rng.choice([self.insert, self.update, self.delete])(table)
        return Statement("change", made, [f"SELECT * FROM {table.name}"])

    def returning(self, table, more=()):
        if not self.chance(0.4):
            return []
        columns = [(f"{table.name}.{n}", t) for n, t in table.fields()]
        scope = Scope(columns + list(more) if self.chance(0.3) else columns)
        if self.chance(0.3):
            return [Maybe(" RETURNING *")]
        return [
            Maybe(" RETURNING ", Items([self.expr(self.some_type(), scope, 1) for _ in range(self.rng.randint(1, 3))]))
        ]

    def insert(self, table):
        fields = [pair for pair in table.fields() if self.chance(0.85)]
        names = ", ".join(n for n, _ in fields) if fields else ""
        if not fields:
            return Node(f"INSERT INTO {table.name} DEFAULT VALUES")
        if self.chance(0.6):
            rows = []
            for _ in range(self.rng.randint(1, 3)):
                rows.append(
                    Node(
                        "(", Items([self.new_value(table, name, type) for name, type in fields], least=len(fields)), ")"
                    )
                )
            what = Node("VALUES ", Items(rows))
        else:
            what = self.query(None, 1, [type for _, type in fields], ordered=False)
        parts = [f"INSERT INTO {table.name} ({names}) ", what]
        # Of the rows of a query that have one key, which comes first is open.
        if not isinstance(what, Query) and self.chance(0.3):
            parts.append(self.on_conflict(table))
        return Node(*parts, *self.returning(table))

    def new_value(self, table, name, type):
        if name == "id" and self.chance(0.7):
            return Node(str(self.rng.randint(1, 12) if self.chance(0.4) else self.rng.randint(20, 40)))
        if self.chance(0.1):
            return Node("DEFAULT")
        return self.expr(type, Scope([]), 1) if self.chance(0.4) else self.literal(type, loose=True)

    def on_conflict(self, table):
        if not table.key or self.chance(0.3):
            return Node(" ON CONFLICT DO NOTHING")
        target = f" ON CONFLICT ({', '.join(table.key)})"
        if self.chance(0.3):
            return Node(f"{target} DO NOTHING")
        name, type = self.rng.choice(table.fields())
        mine = [(f"{table.name}.{n}", t) for n, t in table.fields()]
        scope = Scope(mine + [(f"excluded.{n}", t) for n, t in table.fields()])
        where = [Maybe(" WHERE ", self.condition(scope, 1))] if self.chance(0.3) else []
        return Node(f"{target} DO UPDATE SET {name} = ", self.expr(type, scope, 1), *where)

    def update(self, table):
        mine = [(f"{table.name}.{n}", t) for n, t in table.fields()]
        source, scope, conditions = [], Scope(mine), []
        if self.chance(0.25, "joins"):
            other = self.table()
            # At most one row of it for each: which of several is taken is not laid down.
            conditions.append(Node(f"{other.columns[0][0]} = {table.name}.id", type="bool"))
            source, scope = [" FROM ", other.node], Scope(mine + other.scope())
        sets = []
        for name, type in self.rng.sample(table.fields(), self.rng.randint(1, min(3, len(mine)))):
            value = Node("id + 100") if name == "id" else self.expr(type, scope, 2)
            if name == "id" and source:
                value = Node(f"{table.name}.id + 100")
            sets.append(Node(f"{name} = ", value))
        if self.chance(0.85):
            conditions.append(self.condition(scope, 2))
        where = [Node(" WHERE ", Items(conditions, " AND "))] if conditions else []
        return Node(
            f"UPDATE {table.name} SET ",
            Items(sets),
            *source,
            *where,
            *self.returning(table, scope.columns[len(mine) :]),
        )

    def delete(self, table):
        mine = [(f"{table.name}.{n}", t) for n, t in table.fields()]
        source, scope = [], Scope(mine)
        if self.chance(0.25, "joins"):
            other = self.table()
            source, scope = [Node(" USING ", other.node)], Scope(mine + other.scope())
        where = [Maybe(" WHERE ", self.condition(scope, 3))] if self.chance(0.95) else []
        # USING gives RETURNING a choice among matches where there are several.
        returning = self.returning(table) if not source else []
        if source and self.chance(0.3):
            where = [Node(f" WHERE {other.columns[0][0]} = {table.name}.id AND ", self.condition(scope, 1))]
            returning = [" RETURNING *"]
        return Node(f"DELETE FROM {table.name}", *source, *where, *returning)


def common(left, right):
    if left == right:
        return left
    if left in NUMBERS:
        return wider(left, right)
    if left in STRINGS:
        return "text" if "text" in (left, right) else left
    return sqltypes.TIMES[max(sqltypes.TIMES.index(left), sqltypes.TIMES.index(right))]
