"""Statements as trees: they are written out as SQL, and made smaller part by part (`reduce.py`).

1. A node of a type may be put in the place of any other node of that type: an expression by one of its own operands,
   a join by one of its sides, a UNION by one of its queries. The types are PostgreSQL's for expressions, and "query"
   and "from".
2. A node never knows what is around it. What a smaller tree then means (a column that is no longer there) PostgreSQL
   judges.
"""


def plain(number):
    """Without zeros at the end: Terrace keeps none in a plain numeric (docs/postgresql.md, Types)."""
    return number.rstrip("0").rstrip(".") if number and "." in number else number


class Writer:
    """Text in the making, and the parameters met on the way: None where literals stay what they are."""

    def __init__(self, parameters=None):
        self.text, self.parameters = [], parameters

    def add(self, part):
        if isinstance(part, str):
            self.text.append(part)
        else:
            part.write(self)


class Node:
    """Text and nodes, one after the other."""

    type = None

    def __init__(self, *parts, type=None):
        self.parts = list(parts)
        if type is not None:
            self.type = type

    def write(self, writer):
        for part in self.parts:
            writer.add(part)

    def children(self):
        return [part for part in self.parts if isinstance(part, Node)]

    def replace(self, old, new):
        self.parts = [new if part is old else part for part in self.parts]

    def edits(self):
        """Ways to make this node itself smaller: pairs of functions (do, undo)."""
        return []

    def sql(self):
        writer = Writer()
        self.write(writer)
        return "".join(writer.text)

    def with_parameters(self):
        """The text with `$n` for the literals that may be parameters, and these."""
        writer = Writer(parameters=[])
        self.write(writer)
        return "".join(writer.text), writer.parameters

    def descendants(self):
        for child in self.children():
            yield child
            yield from child.descendants()


class Literal(Node):
    """A constant: as text in one of its forms, or as a parameter of its type."""

    def __init__(self, text, value, type):
        super().__init__(text, type=type)
        self.value = value

    def write(self, writer):
        if writer.parameters is not None:
            writer.parameters.append((self.type, plain(self.value) if self.type == "numeric" else self.value))
            writer.add(f"${len(writer.parameters)}")
        else:
            super().write(writer)


class Maybe(Node):
    """A part that a statement can do without."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.there = True

    def write(self, writer):
        if self.there:
            super().write(writer)

    def children(self):
        return super().children() if self.there else []

    def edits(self):
        if not self.there:
            return []

        def set_to(value):
            self.there = value

        return [(lambda: set_to(False), lambda: set_to(True))]


class Items(Node):
    """A list, of which at least so many items must stay."""

    def __init__(self, items, separator=", ", least=1):
        super().__init__(*items)
        self.separator, self.least = separator, least

    def write(self, writer):
        for at, part in enumerate(self.parts):
            if at:
                writer.add(self.separator)
            writer.add(part)

    def without(self, at):
        before = self.parts

        def do():
            self.parts = before[:at] + before[at + 1 :]

        def undo():
            self.parts = before

        return do, undo

    def edits(self):
        if len(self.parts) <= self.least:
            return []
        return [self.without(at) for at in range(len(self.parts))]


class Tail(Node):
    """ORDER BY over all columns of the select list, LIMIT and OFFSET. Without a total order a LIMIT would mean
    nothing, so that the order goes only after them, and it always names as many columns as there are."""

    def __init__(self, selected, orders, limit=None, offset=None, first=None):
        super().__init__()
        self.selected, self.orders, self.limit, self.offset, self.first = selected, orders, limit, offset, first

    def write(self, writer):
        if self.orders is not None:
            writer.add(" ORDER BY ")
            if self.first is not None:
                writer.add(self.first)
                writer.add(", ")
            keys = [f"{at + 1}{self.orders[at % len(self.orders)]}" for at in range(len(self.selected.parts))]
            writer.add(", ".join(keys))
        if self.limit is not None:
            writer.add(f" LIMIT {self.limit}")
        if self.offset is not None:
            writer.add(f" OFFSET {self.offset}")

    def children(self):
        return [self.first] if self.first is not None else []

    def replace(self, old, new):
        self.first = new

    def edits(self):
        changes = []
        if self.limit is not None:
            changes.append({"limit": None})
        if self.offset is not None:
            changes.append({"offset": None})
        if self.first is not None:
            changes.append({"first": None})
        if self.orders is not None and self.limit is None and self.offset is None:
            changes.append({"orders": None, "first": None})
        if self.orders is not None and any(self.orders):
            changes.append({"orders": [""]})
        return [self.change(**values) for values in changes]

    def change(self, **values):
        before = {name: getattr(self, name) for name in values}

        def put(to):
            for name, value in to.items():
                setattr(self, name, value)

        return (lambda: put(values)), (lambda: put(before))


class Query(Node):
    """A SELECT, VALUES or set operation: `columns` are its result's names and types, `lists` the select lists whose
    items must be as many (one for a SELECT, one a branch for a set operation), `tail` its order."""

    type = "query"

    def __init__(self, *parts, columns, lists, tail=None):
        super().__init__(*parts)
        self.columns, self.lists, self.tail = columns, lists, tail

    def ordered(self):
        return self.tail is not None and self.tail.orders is not None

    def edits(self):
        if len(self.lists) < 2 or any(len(items.parts) < 2 for items in self.lists):
            return []
        found = []
        for at in range(min(len(items.parts) for items in self.lists)):
            pairs = [items.without(at) for items in self.lists]
            found.append((lambda p=pairs: [do() for do, _ in p], lambda p=pairs: [undo() for _, undo in p]))
        return found
