"""Tables and their rows: each table twice, once without any key and once with a primary key and indexes, so that a
statement goes by key or by plan over the same rows.
"""

import sqltypes
from sqltypes import COLUMN_TYPES, DECLARED, NUMBERS, STRINGS
from tree import plain

NAMES = {
    "bool": "b", "int2": "k", "int4": "i", "int8": "j", "numeric": "n", "float4": "g", "float8": "f", "text": "s",
    "varchar": "v", "bpchar": "c", "bytea": "y", "date": "d", "timestamp": "t", "timestamptz": "z", "uuid": "u",
    "interval": "w", "time": "m", "int4[]": "q", "text[]": "o",
}  # fmt: skip


class Table:
    def __init__(self, name, columns, rows, key, indexes):
        self.name, self.columns, self.rows, self.key, self.indexes = name, columns, rows, key, indexes

    def create(self, rows=None):
        """The statements that make it, with these rows only where they are given."""
        clauses = [
            f"{name} {declared}{' NOT NULL' if not_null else ''}" for name, _, declared, not_null in self.columns
        ]
        if self.key:
            clauses.append(f"PRIMARY KEY ({', '.join(self.key)})")
        found = [f"CREATE TABLE {self.name} ({', '.join(clauses)})"]
        rows = self.rows if rows is None else rows
        if rows:
            texts = [f"({', '.join('NULL' if v is None else sqltypes.quoted(v) for v in row)})" for row in rows]
            found.append(f"INSERT INTO {self.name} VALUES {', '.join(texts)}")
        found += [f"CREATE INDEX ON {self.name} ({', '.join(columns)})" for columns in self.indexes]
        return found

    def fields(self):
        return [(name, type) for name, type, _, _ in self.columns]


def make(rng, features):
    """The tables of a world, and the types that its statements use."""
    types = sorted(rng.sample(COLUMN_TYPES, rng.randint(4, 8)))
    if "int4" not in types:
        types.append("int4")
    tables = []
    for at in range(rng.randint(2, 3)):
        columns = [("id", "int4", "integer", True)]
        for type in types:
            if rng.random() < 0.3:
                continue
            # One name, and in another table sometimes another type of the family.
            kind = type
            for family in (NUMBERS, STRINGS):
                if type in family and rng.random() < 0.15:
                    kind = rng.choice(family)
            columns.append((NAMES[type], kind, rng.choice(DECLARED[kind]), rng.random() < 0.15))
        others = [name for name, type, _, not_null in columns[1:] if not_null]
        key = ["id"]
        if others and rng.random() < 0.5:
            key = [rng.choice(others), "id"]
        indexes = [
            rng.sample([c[0] for c in columns], rng.randint(1, min(2, len(columns)))) for _ in range(rng.randint(0, 3))
        ]
        count = rng.choice([0, 1, 3, 5, 8, 8])
        rows = []
        for number in range(count):
            row = [str(number + 1)]
            for _, type, declared, not_null in columns[1:]:
                null = not not_null and rng.random() < 0.2 * (0.3 + features["nulls"])
                value = None if null else sqltypes.value(rng, type, 0.08 * features["rare"], declared)
                row.append(plain(value) if declared == "numeric" else value)
            rows.append(row)
        name = f"t{'abc'[at]}"
        tables.append(Table(name, columns, rows, None, []))
        tables.append(Table(name + "_k", columns, rows, key, indexes))
    return tables, types
