"""Makes a statement smaller as long as the difference stays: parts that may be absent go, expressions give way to
their own operands and to NULL, joins and set operations to one of their sides, rows of the tables go. Greedy, from
the largest parts to the smallest, again until nothing more can go.
"""

import copy

import sqltypes
from tree import Literal, Node, Query

PLAIN = {
    "int4": "1",
    "int2": "1::int2",
    "int8": "1::int8",
    "bool": "true",
    "text": "'a'::text",
    "numeric": "1.5",
    "float8": "1::float8",
}


class Reducer:
    def __init__(self, differs, tries=250):
        """`differs(statement)` runs it and returns the difference's key or `None`."""
        self.differs, self.left = differs, tries

    def reduce(self, statement):
        statement = copy.deepcopy(statement)
        key = self.differs(statement)
        if key is None:
            return None
        self.key = key
        self.plainer(statement)
        while self.left > 0 and self.pass_over(statement):
            pass
        return statement

    def holds(self, statement):
        self.left -= 1
        return self.left >= 0 and self.differs(statement) == self.key

    def plainer(self, statement):
        """The simple protocol, and no parameters, where they do not matter."""
        for name, value in (("protocol", "simple"), ("parameters", False), ("binary", False)):
            before = getattr(statement, name)
            if before != value:
                setattr(statement, name, value)
                if not self.holds(statement):
                    setattr(statement, name, before)

    def pass_over(self, statement):
        """Tries every edit once, from the top down. Whether any stayed."""
        changed = False
        if type(statement.main) is Query:
            for inner in [n for n in statement.main.descendants() if n.type == "query"]:
                before, statement.main = statement.main, inner
                if self.holds(statement):
                    changed = True
                    break
                statement.main = before
        queue = [statement.main]
        while queue and self.left > 0:
            node = queue.pop(0)
            for do, undo in node.edits():
                do()
                if self.holds(statement):
                    changed = True
                else:
                    undo()
            for child in node.children():
                if self.substitute(statement, node, child):
                    changed = True
            queue.extend(node.children())
        return changed

    def substitute(self, statement, parent, child):
        """Something smaller of the same type in the child's place."""
        if child.type is None or (isinstance(child, Literal)):
            return False
        options = []
        if child.type not in ("query", "from") and child.children():
            options += [Node(PLAIN[child.type], type=child.type)] if child.type in PLAIN else []
            options.append(Node(f"NULL::{sqltypes.written(child.type)}", type=child.type))
        options += [node for node in child.descendants() if node.type == child.type]
        for option in options[:12]:
            if self.left <= 0:
                return False
            parent.replace(child, option)
            if self.holds(statement):
                return True
            parent.replace(option, child)
        return False


def fewer_rows(tables, differs):
    """The rows of each table without which the difference would not be there. `differs(rows by table)`."""
    kept = {name: list(table.rows) for name, table in tables.items()}
    for name in kept:
        for row in list(kept[name]):
            trial = {**kept, name: [r for r in kept[name] if r is not row]}
            if differs(trial):
                kept = trial
    return kept


def script(tables, kept):
    """What makes the tables with these rows."""
    lines = []
    for name, table in tables.items():
        lines += table.create(kept[name])
    return ";\n".join(lines) + ";" if lines else ""
