"""Runs a statement on both servers and says how the answers differ.

PostgreSQL judges. Its kinds of difference: "rows", "order", "columns" (names), "types", "accepted" (Terrace answers
what PostgreSQL refuses), "unneeded" (PostgreSQL fails at a value, Terrace answers no rows), "error" (Terrace fails
where PostgreSQL answers), "sqlstate" (both fail, each for another reason), "lost" (no answer: the connection closed, or
silence). A refusal (what Terrace says it does not do) is no difference, but counted.

1. Values are compared before types: a type that is documented to differ hides no wrong value.
2. Whole numbers are compared exactly; numerics and floats with a tolerance of 1e-9 where digits are each server's
   choice, numerics else by their value (their scale shows in ::text only).
3. The blanks at the end of what is char(n) for PostgreSQL do not count: they mean nothing there, and Terrace shows them
   for columns only.
"""

import math
import re
import struct
from decimal import Decimal, InvalidOperation

import wire
from sqltypes import OIDS

# Not supported; limits; no more memory; a snapshot that is too old. A function that does not exist is refused as
# well: see `refusal`.
REFUSED = ("0A000", "54", "53", "72")
WHOLE = (OIDS["int2"], OIDS["int4"], OIDS["int8"])
NUMERIC, FLOATS = OIDS["numeric"], (OIDS["float4"], OIDS["float8"])
NUMBERS, STRINGS = (*WHOLE, NUMERIC, *FLOATS), (OIDS["text"], OIDS["varchar"], OIDS["bpchar"])
PADDED = OIDS["bpchar"]
ARRAYS = tuple(oid for name, oid in OIDS.items() if name.endswith("[]"))
# After these, digits are as many as each server chooses.
# One of several equal values stands for them all, or comes first: 0 or -0.
FOLDS = re.compile(r"GROUP BY|LIMIT|FETCH|DISTINCT|UNION|INTERSECT|EXCEPT|USING|NATURAL|min\(|max\(|greatest\(|least\(", re.I)
INEXACT = re.compile(
    r"/|\b(avg|stddev\w*|var\w*|sqrt|cbrt|exp|ln|log|power|\w*(sin|cos|tan)2?|degrees|radians|pi|percentile_cont|corr"
    r"|covar\w*|regr\w*|extract|date_part)\(",
    re.I,
)
# These are rounded after each row, in whatever order the rows come.
SUMS = re.compile(r"\b(sum|avg)\(", re.I)


class Real(float):
    """A value of type real in a statement with SUMS: a rounding to 24 bits for each row."""


class Difference:
    def __init__(self, kind, terrace, postgres, step):
        self.kind, self.terrace, self.postgres, self.step = kind, terrace, postgres, step

    def key(self):
        """What stays the same while the statement gets smaller."""
        if self.kind in ("error", "sqlstate", "lost"):
            return self.kind, shape(self.terrace)[:40]
        if self.kind in ("accepted", "unneeded"):
            return self.kind, self.postgres[:5]
        return (self.kind,)


def shape(message):
    """A message without the names and values in it."""
    return re.sub(r"\d+", "0", re.sub(r"\"[^\"]*\"|'[^']*'", "?", message))


def refusal(error):
    state, message = error
    return state.startswith(REFUSED) or (
        state == "42883" and re.search("does not exist|Invalid function|failed to match any signature", message)
    )


def requests(statement):
    """What is sent for it, each with one reply."""
    main = request(statement)
    if not statement.changes:
        return [main]
    return [wire.simple("BEGIN"), main, *map(wire.simple, statement.after), wire.simple("ROLLBACK")]


def request(statement):
    if statement.protocol == "simple":
        return wire.simple(statement.main.sql())
    if not statement.parameters:
        return wire.extended(statement.main.sql(), [], [], statement.binary)
    text, parameters = statement.main.with_parameters()
    oids = [OIDS.get(type, 0) for type, _ in parameters]
    return wire.extended(text, oids, [value for _, value in parameters], statement.binary)


def text_of(statement):
    """The statement for people, with its parameters behind it."""
    if statement.protocol == "simple":
        return statement.main.sql()
    note = f"-- extended protocol{', results in binary' if statement.binary else ''}"
    if not statement.parameters:
        return f"{statement.main.sql()}  {note}"
    text, parameters = statement.main.with_parameters()
    values = "; ".join(f"${at + 1} {type} {value!r}" for at, (type, value) in enumerate(parameters))
    return f"{text}  {note}, {values}"


def difference(statement, terrace, postgres):
    """The first difference of the replies, `None`, or the refusal's message as a string."""
    for step, (ours, theirs) in enumerate(zip(terrace, postgres)):
        if theirs.error and theirs.error[0] == "0A000":
            return None
        if ours.error and theirs.error:
            if ours.error[0] == theirs.error[0]:
                return None
            if refusal(ours.error):
                return shape(ours.error[1])
            # Of several mistakes either may be met first; where there is one alone, its code counts.
            if statement.kind != "risky":
                return None
            return Difference("sqlstate", " ".join(ours.error), " ".join(theirs.error), step)
        if ours.error:
            if refusal(ours.error):
                return shape(ours.error[1])
            return Difference("error", " ".join(ours.error), show(theirs), step)
        if theirs.error:
            # What no row needs Terrace does not compute, so that it may not meet the value that PostgreSQL fails at.
            value = theirs.error[0].startswith("22") or theirs.error[0] == "54000"
            if value and not ours.rows and not re.search(r" [1-9]\d*$", ours.tag or ""):
                return Difference("unneeded", show(ours), " ".join(theirs.error), step)
            return Difference("accepted", show(ours), " ".join(theirs.error), step)
        main = step == (1 if statement.changes else 0)
        found = answers(statement, ours, theirs, main, step)
        if found is not None:
            return found
    return None


def answers(statement, ours, theirs, main, step):
    if ours.columns is not None and theirs.columns is not None:
        mine, its = [c[0] for c in ours.columns], [c[0] for c in theirs.columns]
        if mine != its:
            return Difference("columns", ", ".join(mine), ", ".join(its), step)
    binary = main and statement.protocol == "extended" and statement.binary
    if binary and not comparable(ours, theirs):
        return types(ours, theirs, step)
    exact = not INEXACT.search(statement.main.sql())
    sums = bool(SUMS.search(statement.main.sql()))
    if ours.rows != theirs.rows:
        zeros = bool(FOLDS.search(statement.main.sql()))
        padded = [c[1] == PADDED for c in theirs.columns or []]
        mine, its = (normal(reply, padded, binary, exact, zeros, sums) for reply in (ours, theirs))
        mine_sorted, its_sorted = sorted(mine, key=rank), sorted(its, key=rank)
        if sums and zeros and len(mine) != len(its) and same(folded(mine_sorted), folded(its_sorted)):
            return None
        if not same(mine_sorted, its_sorted):
            return Difference("rows", show(ours, binary), show(theirs, binary), step)
        # A numeric has 18 digits behind the point: what is smaller is 0, and has no order.
        tiny = any(isinstance(v, float) and 0 < abs(v) < 1e-18 for row in its for v in row)
        if main and statement.ordered() and not tiny and not same(
            *(normal(reply, padded, binary, exact, True, sums) for reply in (ours, theirs))
        ):
            return Difference("order", show(ours, binary), show(theirs, binary), step)
    if ours.tag != theirs.tag:
        return Difference("rows", ours.tag or "no tag", theirs.tag or "no tag", step)
    return types(ours, theirs, step)


def comparable(ours, theirs):
    """Whether bytes of both types mean the same, or are read as numbers."""
    pairs = zip(ours.columns or [], theirs.columns or [])
    families = (NUMBERS, STRINGS)
    return all(mine[1] == its[1] or any(mine[1] in f and its[1] in f for f in families) for mine, its in pairs)


def types(ours, theirs, step):
    if ours.columns is not None and theirs.columns is not None:
        pairs = [(mine[1], its[1]) for mine, its in zip(ours.columns, theirs.columns) if mine[1] != its[1]]
        if pairs:
            names = sorted({f"{type_name(mine)} instead of {type_name(its)}" for mine, its in pairs})
            return Difference("types", ", ".join(names), "", step)
    return None


def type_name(oid):
    return next((name for name, its in OIDS.items() if its == oid), str(oid))


def normal(reply, padded, binary, exact, zeros, sums):
    types = [PADDED if pad else c[1] for c, pad in zip(reply.columns or [], padded)]
    return [tuple(value(v, t, binary, exact, zeros, sums) for v, t in zip(row, types)) for row in reply.rows]


def value(data, type, binary, exact, zeros, sums):
    """Numbers as numbers, all else as its bytes; with `zeros`, -0 is 0, and equal intervals are one."""
    if data is None:
        return None
    if type == PADDED:
        return data.rstrip(b" ")
    if type in WHOLE:
        return Decimal(int.from_bytes(data, "big", signed=True)) if binary else Decimal(data.decode())
    if type == OIDS["interval"] and zeros:
        return length(data, binary)
    if type in ARRAYS and binary:
        # Without the flag "some element is NULL": PostgreSQL's slices keep it of the array that they are cut from.
        return data[:4] + data[8:]
    if type != NUMERIC and type not in FLOATS:
        return data
    try:
        if binary:
            number = {NUMERIC: binary_numeric, OIDS["float4"]: lambda b: struct.unpack("!f", b)[0]}.get(
                type, lambda b: struct.unpack("!d", b)[0]
            )(data)
        else:
            number = Decimal(data.decode()) if type == NUMERIC else float(data)
    except (InvalidOperation, ValueError, struct.error):
        return data
    if type == NUMERIC and exact:
        return number
    number = Real(number) if sums and type == OIDS["float4"] else float(number)
    if zeros and number == 0:
        return 0.0
    return str(number) if math.isnan(number) else number


def length(data, binary):
    """What an interval compares by, in microseconds."""
    if binary:
        micros, days, months = struct.unpack("!qii", data)
    else:
        parts = {unit: int(number) for number, unit in re.findall(rb"([-+]?\d+) (year|mon|day)", data)}
        months, days = parts.get(b"year", 0) * 12 + parts.get(b"mon", 0), parts.get(b"day", 0)
        sign, hours, minutes, seconds = (re.search(rb"([-+]?)(\d+):(\d+):([\d.]+)", data) or EMPTY).groups()
        time = (int(hours) * 60 + int(minutes)) * 60_000_000 + int(Decimal(seconds.decode()) * 1_000_000)
        micros = -time if sign == b"-" else time
    return Decimal((months * 30 + days) * 86_400_000_000 + micros)


EMPTY = re.match(rb"([-+]?)(\d+):(\d+):([\d.]+)", b"00:00:00")


def binary_numeric(data):
    count, weight, sign, _ = struct.unpack_from("!hhHh", data)
    if sign == 0xC000:
        return Decimal("NaN")
    if sign in (0xD000, 0xF000):
        return Decimal("Infinity" if sign == 0xD000 else "-Infinity")
    total = Decimal(0)
    for at, digit in enumerate(struct.unpack_from(f"!{count}h", data, 8)):
        total += Decimal(digit) * Decimal(10000) ** (weight - at)
    return -total if sign else total


def rank(row):
    """An order that puts nearly equal numbers beside each other, and of exact ones equal ones. What is alike in the
    digits that count is in the order of all digits."""
    return tuple(place(v) for v in row), tuple(v for v in row if isinstance(v, float))


def place(v):
    if v is None:
        return 2, "", ""
    if isinstance(v, Decimal):
        return 0, f"{float(v):.8e}", str(v.normalize())
    if isinstance(v, float):
        # What is as small as the tolerance is none; 0 and -0 are told apart.
        return 0, f"{0.0 if 0 < abs(v) < 1e-12 else v:.{4 if isinstance(v, Real) else 8}e}", ""
    return 1, str(v), ""


def same(mine, its):
    return len(mine) == len(its) and all(len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(mine, its))


def folded(rows):
    """Without the rows that are nearly, not exactly, the one before: DISTINCT keeps sums that were rounded otherwise."""
    pairs = zip([None, *rows], rows)
    return [row for before, row in pairs if before is None or before == row or not same([before], [row])]


def equal(mine, its):
    if mine == its:
        # -0 and 0 are equal, and not the same.
        return not (
            isinstance(mine, float)
            and isinstance(its, float)
            and mine == 0
            and math.copysign(1, mine) != math.copysign(1, its)
        )
    if mine is None or its is None or isinstance(mine, (bytes, str)) or isinstance(its, (bytes, str)):
        return False
    if isinstance(mine, Decimal) and isinstance(its, Decimal):
        return mine.is_nan() and its.is_nan()
    tolerance = 2e-6 if isinstance(mine, Real) else 1e-9
    return abs(float(mine) - float(its)) <= tolerance * max(abs(float(mine)), abs(float(its)), 1e-3)


def show(reply, binary=False):
    if reply.columns is None:
        return reply.tag or ""
    types = [c[1] for c in reply.columns]
    lines = []
    for row in reply.rows[:12]:
        cells = []
        for data, type in zip(row, types):
            if data is None:
                cells.append("NULL")
            elif binary:
                cells.append(str(binary_numeric(data)) if type == NUMERIC else data.hex())
            else:
                cells.append(data.decode("utf-8", "replace"))
        lines.append("(" + ", ".join(cells) + ")")
    more = f" ... {len(reply.rows)} rows" if len(reply.rows) > 12 else ""
    return (" ".join(lines) or "no rows") + more
