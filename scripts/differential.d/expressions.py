"""Expressions of a wanted type over the columns in scope, and conditions.

What may stand in an expression is told by a `Scope`: the columns of its own query, those of the queries around it,
and, in a grouped query, the grouped expressions in the columns' place beside aggregates over them.
"""

import re

import signatures
import sqltypes
from sqltypes import COLUMN_TYPES, INTEGERS, NUMBERS, STRINGS, TIMES
from tree import Items, Literal, Maybe, Node

PLACEHOLDER = re.compile(r"\{(\d*)\}")
# Arguments that PostgreSQL widens without being asked, by the wanted type.
TAKES = {
    "int8": ("int2", "int4"),
    "numeric": INTEGERS,
    "float8": ("float4", "int4", "numeric"),
    "text": ("varchar", "bpchar"),
    "timestamp": ("date",),
}


class Scope:
    def __init__(self, columns, outer=None):
        self.columns = columns  # [(as written, type)]
        self.outer = outer
        self.grouped = None  # [(text, type)] in a grouped query, outside of aggregates
        self.windows = None  # names and parts of the WINDOW clause, where window functions may stand
        # Whether no two rows are alike in all columns; whether rows that are so are alike in all else; how many window
        # functions there are whose answers go by a row's place.
        self.unique, self.alike, self.places = False, True, 0
        self.sets = False  # Whether it is grouped by grouping sets.

    def of(self, type):
        return [name for name, its in self.columns if its == type]


class Features:
    """Which parts of the language one world of statements uses, and how much: some are left out, others stressed
    (swarm testing: Groce et al., ISSTA 2012)."""

    NAMES = ("subqueries correlated windows grouping sets ctes joins outer using rare nulls unknown aggregates limit "
             "distinct lateral stars widened deep values series").split()  # fmt: skip

    def __init__(self, rng):
        self.weights = {name: rng.choice([0, 0.3, 1, 1, 2.5]) for name in self.NAMES}
        # Some worlds are made of what is rare: overflow, blanks, NaN, years before Christ.
        self.weights["rare"] = rng.choice([0, 0.5, 1, 1, 8])
        self.lines = {id(line): rng.choice([0, 0.5, 1, 1, 3]) for line in signatures.SAFE}

    def __getitem__(self, name):
        return self.weights[name]


class Expressions:
    """Mixed into the generator of queries, which knows subqueries."""

    def __init__(self, rng, features, types):
        self.rng, self.features, self.types = rng, features, types
        self.by_result, self.any_result = {}, []
        for line in signatures.SAFE:
            result, template, arguments, weight = line
            # Casts and the like between types that the world does not have add nothing.
            weight *= features.lines[id(line)]
            if result == "A":
                self.any_result.append((line, weight))
            else:
                self.by_result.setdefault(result, []).append((line, weight))

    def chance(self, probability, feature=None):
        if feature is not None:
            probability *= self.features[feature]
        return self.rng.random() < probability

    def some_type(self, scope=None):
        """A type of the world, rather one that a column in scope has."""
        names = (scope.grouped or scope.columns) if scope is not None else None
        if names and self.chance(0.75):
            return self.rng.choice(names)[1]
        return self.rng.choice(self.types)

    def literal(self, type, loose=False):
        rare = 0.06 * self.features["rare"]
        if loose and self.chance(0.3, "unknown"):
            return sqltypes.unknown(self.rng, type, rare)
        return sqltypes.literal(self.rng, type, rare, 0.06 * self.features["nulls"])

    def leaf(self, type, scope, loose=False):
        names = [text for text, its in scope.grouped if its == type] if scope.grouped is not None else scope.of(type)
        around = scope.outer
        if around is not None and around.columns and self.chance(0.25, "correlated"):
            names = around.of(type) or names
        if names and self.chance(0.85):
            return Node(self.rng.choice(names), type=type)
        return self.literal(type, loose)

    def expr(self, type, scope, depth, loose=False):
        """`loose`: something beside it has the type, so that a constant needs none, and a narrower type will do."""
        if loose and type in TAKES and self.chance(0.2, "widened"):
            type = self.rng.choice(TAKES[type])
        if depth <= 0 or self.chance(0.4):
            return self.leaf(type, scope, loose)
        if self.chance(0.08, "subqueries"):
            return self.scalar_subquery(type, scope, depth)
        if type == "bool" and self.chance(0.12, "subqueries"):
            return self.subquery_condition(scope, depth)
        if scope.grouped is not None and self.chance(0.5, "aggregates"):
            made = self.aggregate(type, scope, depth)
            if made is not None:
                return made
        if scope.windows is not None and self.chance(0.3, "windows"):
            made = self.window(type, scope, depth)
            if made is not None:
                return made
        lines = self.by_result.get(type, []) + self.any_result
        weights = [weight * (0.12 if line[0] == "A" and type != "bool" else 1) for line, weight in lines]
        if sum(weights) == 0:
            return self.leaf(type, scope, loose)
        line = self.rng.choices(lines, weights)[0][0]
        return self.apply(type, line[1], line[2], scope, depth - 1)

    def apply(self, result, template, arguments, scope, depth):
        kinds = {"A": result if result != "A" else self.some_type(scope)}
        if (
            result == "bool"
            and {"A", "=A"} & set(arguments)
            and "{} THEN" not in template
            and not template.startswith(("coalesce", "nullif", "greatest", "least"))
        ):
            kinds["A"] = self.some_type(scope)
        kinds["typed"] = set()
        nodes = [self.argument(argument, kinds, scope, depth) for argument in arguments]
        return Node(*self.parts(template, nodes), type=result)

    def parts(self, template, nodes):
        """The template's text with nodes in the placeholders' places."""
        found, at, count = [], 0, 0
        for match in PLACEHOLDER.finditer(template):
            found.append(template[at : match.start()])
            number = match.group(1)
            found.append(nodes[int(number) if number else count])
            count += 1
            at = match.end()
        found.append(template[at:])
        return [part for part in found if part != ""]

    def argument(self, argument, kinds, scope, depth):
        if argument.startswith("|"):
            return self.rng.choice(argument[1:].split("|")) if argument != "|" else "|"
        if argument.startswith("n:"):
            number = self.rng.choice(argument[2:].split())
            return Literal(f"({number})" if number.startswith("-") else number, number, "int4")
        if argument == "row":
            aliases = [name.split(".")[0] + ".*" for name, _ in scope.columns if "." in name]
            return Node(self.rng.choice(aliases) if aliases else "1")
        if argument in ("=A", "=B"):
            return self.leaf(kinds.setdefault(argument[1], self.some_type(scope)), scope)
        if argument.startswith("="):
            return self.leaf(argument[1:], scope)
        if argument in ("A", "B"):
            kind = kinds.setdefault(argument, self.some_type(scope))
            # The first of them is what the others' types are taken from; in a function's call alone there is none.
            loose = argument in kinds.get("typed", ()) and self.chance(0.5)
            kinds.get("typed", set()).add(argument)
            return self.expr(kind, scope, depth, loose)
        families = {"N": NUMBERS, "M": NUMBERS, "L": INTEGERS, "S": STRINGS}
        if argument in families:
            have = [kind for kind in families[argument] if kind in self.types] or [families[argument][0]]
            return self.expr(self.rng.choice(have), scope, depth)
        return self.expr(argument, scope, depth)

    def condition(self, scope, depth):
        """A boolean that is rarely a bare column or constant."""
        if self.chance(0.1):
            return self.expr("bool", scope, depth)
        if self.chance(0.35) and scope.grouped is None and scope.columns:
            name, type = self.rng.choice(scope.columns)
            return self.simple_condition(name, type, scope)
        line = self.rng.choice([line for line in signatures.SAFE if line[0] == "bool" and line[3] >= 1])
        return self.apply("bool", line[1], line[2], scope, depth)

    def simple_condition(self, name, type, scope=None):
        """A column, or something made of one column, and constants, as most statements have them."""
        constant = lambda: self.literal(type, loose=True)  # noqa: E731
        column = Node(name, type=type)
        if scope is not None and self.chance(0.35):
            column = self.of_column(name, type) or column
            type = column.type
        kind = self.rng.random()
        if kind < 0.5:
            return Node("(", column, f" {self.rng.choice(signatures.COMPARE)} ", constant(), ")", type="bool")
        if kind < 0.65:
            items = Items([constant() for _ in range(self.rng.randint(1, 4))])
            return Node("(", column, self.rng.choice([" IN (", " IN (", " NOT IN ("]), items, "))", type="bool")
        if kind < 0.75:
            return Node("(", column, " BETWEEN ", constant(), " AND ", constant(), ")", type="bool")
        if kind < 0.8:
            return Node("(", constant(), f" {self.rng.choice(signatures.COMPARE)} ", column, ")", type="bool")
        if kind < 0.9:
            return Node("(", column, self.rng.choice([" IS NULL)", " IS NOT NULL)"]), type="bool")
        array = Node("ARRAY[", Items([self.literal(type) for _ in range(2)]), "]")
        return Node("(", column, self.rng.choice([" = ANY (", " <> ALL (", " = ANY ("]), array, "))", type="bool")

    def of_column(self, name, type):
        """A function or operator over one column."""
        lines = [line for line in signatures.SAFE if type in line[2] and line[0] in COLUMN_TYPES and line[3] > 0]
        if not lines:
            return None
        line = self.rng.choice(lines)
        return self.apply(line[0], line[1], line[2], Scope([(name, type)]), 0)

    def risky(self, scope):
        """Something that may fail, over columns and constants alone."""
        result, template, arguments = self.rng.choice(signatures.RISKY)
        return self.apply(result, template, arguments, scope, 0)

    # Aggregates and windows.

    def aggregate(self, type, scope, depth):
        lines = [line for line in signatures.AGGREGATES if line[0] == type or (line[0] == "A" and type in COLUMN_TYPES)]
        lines = [
            line for line in lines if not (line[1].startswith(("min", "max")) and type in ("bool", "uuid", "bytea"))
        ]
        if not lines:
            return None
        result, template, arguments = self.rng.choice(lines)
        inner = Scope(scope.columns, scope.outer)
        kinds = {"A": type if result == "A" else self.some_type(scope), "B": type}
        nodes = [self.argument(argument, kinds, inner, min(depth - 1, 1)) for argument in arguments]
        parts = self.parts(template, nodes)
        if self.chance(0.12):
            parts.append(Maybe(" FILTER (WHERE ", self.condition(inner, 1), ")"))
        return Node(*parts, type=type)

    def window(self, type, scope, depth):
        ranks = [line for line in signatures.WINDOWS if line[0] == type or line[0] == "A"]
        folds = [
            line
            for line in signatures.AGGREGATES
            if line[0] == type and "DISTINCT" not in line[1] and "ORDER" not in line[1]
        ]
        if not ranks + folds:
            return None
        # Which of two rows that are alike comes first is open. That shows where a second function goes by places too.
        if not scope.unique and (scope.places or not scope.alike):
            ranks = [line for line in ranks if not line[3]]
        if not ranks + folds:
            return None
        line = self.rng.choice(ranks + folds)
        scope.places += len(line) == 4 and line[3]
        inner = Scope(scope.columns, scope.outer)
        inner.grouped = scope.grouped
        kinds = {"A": type if line[0] == "A" else self.some_type(), "B": type}
        # An aggregate of a window over aggregates: their arguments are what is grouped.
        nodes = [self.argument(argument, kinds, inner, min(depth - 1, 1)) for argument in line[2]]
        parts = self.parts(line[1], nodes)
        total = len(line) == 4 and line[3]
        if not total and scope.windows and self.chance(0.4):
            name, has_order = self.rng.choice(scope.windows)
            return Node(*parts, " OVER ", self.over_named(name, has_order, inner), type=type)
        over = Node("(", *self.window_parts(inner, total, line in ranks), ")")
        return Node(*parts, " OVER ", over, type=type)

    def over_named(self, name, has_order, scope):
        kind = self.rng.random()
        if kind < 0.5:
            return Node(name)
        if not has_order and kind < 0.75:
            return Node(f"({name} ORDER BY ", self.order_keys(scope, self.rng.randint(1, 2)), ")")
        return Node(
            f"({name} ",
            "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING" if not has_order else self.range_frame(),
            ")",
        )

    def range_frame(self):
        start = self.rng.choice(["UNBOUNDED PRECEDING", "CURRENT ROW"])
        return f"RANGE BETWEEN {start} AND {self.rng.choice(['UNBOUNDED FOLLOWING', 'CURRENT ROW'])}"

    def window_parts(self, scope, total, rank):
        found = []
        if self.chance(0.5):
            found.append(Maybe("PARTITION BY ", self.sort_key(scope), " "))
        if total:
            found.append(Node("ORDER BY ", self.total_order(scope)))
        elif self.chance(0.6):
            found.append(Maybe("ORDER BY ", self.order_keys(scope, self.rng.randint(1, 2))))
        if not rank or total:
            frame = self.frame(total)
            if frame:
                found.append(Maybe(" ", frame))
        return found

    def frame(self, total):
        if self.chance(0.5):
            return None
        if not total:
            return self.range_frame() if self.chance(0.6) else None
        bounds = [
            "UNBOUNDED PRECEDING",
            "2 PRECEDING",
            "1 PRECEDING",
            "CURRENT ROW",
            "1 FOLLOWING",
            "2 FOLLOWING",
            "UNBOUNDED FOLLOWING",
        ]
        first, last = sorted(self.rng.sample(range(7), 2))
        return f"ROWS BETWEEN {bounds[first]} AND {bounds[last]}"

    def sort_key(self, scope):
        names = scope.grouped if scope.grouped is not None else scope.columns
        if names and self.chance(0.8):
            name, type = self.rng.choice(names)
            return Node(name, type=type)
        return self.expr(self.some_type(scope), scope, 1)

    def order_keys(self, scope, count):
        return Items([Node(self.sort_key(scope), self.direction()) for _ in range(count)])

    def direction(self):
        return self.rng.choice(["", "", " ASC", " DESC", " DESC", " NULLS FIRST", " DESC NULLS LAST"])

    def total_order(self, scope):
        """All there is: rows that are then still equal are the same row."""
        names = scope.grouped if scope.grouped is not None else scope.columns
        return Node(", ".join(name + self.direction() for name, _ in names) or "1")


def families(type):
    """Types whose columns may be compared and merged."""
    for family in (NUMBERS, STRINGS, TIMES):
        if type in family:
            return family
    return (type,)
