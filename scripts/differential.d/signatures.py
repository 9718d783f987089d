"""What PostgreSQL's operators and functions take and give, as far as Terrace's README and CHANGELOG claim them.

A line is (result, template, arguments). Arguments are types, or
    A, B    any type, the same wherever the letter stands (B: only one with an order)      L    any integer type
    row  all columns of one relation, as alias.*
    =A, =B  the same, and a column or constant (=numeric: of that type)
    N, M    any type of number                       S     text, varchar or char
    n:...   a whole number out of these              |a|b  one of these texts, as it stands

A result "A" is what A was. What can fail at run time (overflow, domain, bad text) is in RISKY: those are asked for
one at a time, since which row fails first, and whether at all behind a filter, is not laid down.
"""

from sqltypes import INTEGERS, NUMBERS

COMPARE = ["=", "<>", "<", "<=", ">", ">=", "!="]


def wider(left, right):
    """The type of an arithmetic of two."""
    if left == right:
        return left
    if "float" in left + right:
        return "float8"
    return max(left, right, key=NUMBERS.index)


SAFE = []


def add(result, template, *arguments, weight=1):
    SAFE.append((result, template, arguments, weight))


def booleans():
    add("bool", "({} {} {})", "A", "|=|<>|<|<=|>|>=", "A", weight=8)
    add("bool", "({} {} {})", "N", "|=|<>|<|<=|>|>=", "M", weight=3)
    add("bool", "({} {} {})", "S", "|=|<>|<|<=|>|>=", "S", weight=2)
    add("bool", "({} {} {})", "date", "|=|<>|<|<=|>|>=", "timestamp")
    add("bool", "({} {} {})", "timestamp", "|=|<>|<|<=|>|>=", "timestamptz")
    add("bool", "({} IS NULL)", "A", weight=2)
    add("bool", "({} IS NOT NULL)", "A", weight=2)
    add("bool", "({} IS {} {})", "A", "|DISTINCT FROM|NOT DISTINCT FROM", "A", weight=2)
    for word in ("TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"):
        add("bool", "({} IS " + word + ")", "bool", weight=0.4)
    add("bool", "({} {} {})", "bool", "|AND|OR", "bool", weight=8)
    add("bool", "(NOT {})", "bool", weight=4)
    add("bool", "({} {} {} AND {})", "B", "|BETWEEN|NOT BETWEEN", "B", "B", weight=2)
    add("bool", "({} BETWEEN SYMMETRIC {} AND {})", "B", "B", "B", weight=0.05)
    add("bool", "({} {} ({}, {}))", "A", "|IN|NOT IN", "A", "A", weight=3)
    add("bool", "({} {} ({}, {}, {}))", "N", "|IN|NOT IN", "N", "M", "N", weight=2)
    add("bool", "({} {} ({}, {}))", "S", "|IN|NOT IN", "S", "S", weight=2)
    add("bool", "({} {} {}(ARRAY[{}, {}]))", "A", "|=|<>|<|>=", "|ANY|ALL", "A", "A", weight=2)
    add("bool", "(({}, {}) {} ({}, {}))", "=A", "=B", "|=|<>|<|<=|>|>=", "=A", "=B", weight=2)
    add("bool", "(({}, {}) IN (({}, {}), ({}, {})))", "=A", "=B", "=A", "=B", "=A", "=B", weight=0.5)
    add("bool", "(({}, {}) {} ({}, {}))", "A", "B", "|=|<>|<|<=|>|>=", "A", "B", weight=0.2)
    add("bool", "(ROW({}, {}) IS {} NULL)", "A", "B", "|NOT|", weight=0.3)
    add("bool", "({} {} {})", "S", "|LIKE|NOT LIKE|ILIKE", "|'a%'|'%b'|'_'|'a_%'|'%'|''|'a\\%b'|'A%'", weight=2)
    add("bool", "({} {} {})", "S", "|~|~*|!~|!~*", "|'^a'|'b$'|'[ab]'|'^.$'|'a b'|'\\d'", weight=1.5)
    add("bool", "starts_with({}, {})", "text", "text", weight=0.5)


def exact(kind):
    """Of numerics no quotients, for what tells their last digits: each server has as many digits as it chooses."""
    return "=numeric" if kind == "numeric" else kind


def numbers():
    for left in NUMBERS:
        for right in NUMBERS:
            weight = 2 if left == right else 0.25
            add(wider(left, right), "({} {} {})", left, "|+|-|*", right, weight=weight)
            result = wider(left, right)
            # A quotient has 18 digits behind the point (docs/postgresql.md, Types): one that is smaller is 0.
            quotient = "round({} / nullif({}, 0), 18)" if result == "numeric" else "({} / nullif({}, 0))"
            add(result, quotient, left, right, weight=weight / 3)
            if "float" not in left + right:
                add(wider(left, right), "({} % nullif({}, 0))", exact(left), exact(right), weight=weight / 4)
    for kind in NUMBERS:
        add(kind, "(- {})", kind, weight=0.6)
        add(kind, "(+ {})", kind, weight=0.1)
        add(kind, "abs({})", kind, weight=0.6)
    for kind in INTEGERS:
        for operator in ("&", "|", "#"):
            add(kind, f"({{}} {operator} {{}})", kind, kind, weight=0.4)
        add(kind, "(~ {})", kind, weight=0.03)
        add(kind, "({} << {})", kind, "n:0 1 2", weight=0.1)
        add(kind, "({} >> {})", kind, "n:0 1 2", weight=0.1)
    for kind in ("numeric", "float8"):
        for name in ("round", "floor", "ceil", "trunc", "sign"):
            add(kind, name + "({})", kind, weight=0.8)
        add(kind, "ceiling({})", kind, weight=0.1)
    add("numeric", "round({}, {})", "numeric", "n:0 1 2 -1", weight=2)
    add("numeric", "trunc({}, {})", "numeric", "n:0 1 2 -1", weight=1)
    add("float8", "sqrt(abs({}))", "float8", weight=0.6)
    add("float8", "{}({} / 8)", "|exp|sin|cos|atan|tan|cbrt|degrees|radians", "float8", weight=1)
    add("float8", "atan2({}, {})", "float8", "float8", weight=0.2)
    add("float8", "ln(abs({}) + 1)", "float8", weight=0.3)
    add("float8", "log(abs({}) + 1)", "float8", weight=0.3)
    add("float8", "power({}, {})", "float8", "n:0 1 2 3", weight=0.4)
    add("float8", "pi()", weight=0.1)
    for kind in ("int4", "int8", "numeric"):
        add(kind, "mod({}, nullif({}, 0))", exact(kind), exact(kind), weight=0.3)
    add("numeric", "div({}, nullif({}, 0))", exact("numeric"), exact("numeric"), weight=0.1)
    add("int4", "gcd({}, {})", "int4", "int4", weight=0.2)
    add("int4", "lcm({}, {})", "int4", "int4", weight=0.2)
    add("int4", "width_bucket({}::float8, 0, 10, 5)", "int4", weight=0.1)


def strings():
    add("text", "({} || {})", "S", "S", weight=3)
    add("text", "({} || {})", "text", "L", weight=0.5)
    for name in ("lower", "upper", "reverse", "initcap", "btrim", "ltrim", "rtrim", "md5"):
        add("text", name + "({})", "S", weight=0.7)
    add("text", "trim({} {} from {})", "|both|leading|trailing", "|'a'|' '|'ab'", "S", weight=0.7)
    add("text", "btrim({}, {})", "text", "|'a'|'ab'|''", weight=0.5)
    pattern = "|'a'|'[a-c]+'|'.'|'b*'"
    add("int4", "regexp_instr({}, {}, {}, {}, {})", "text", pattern, "n:1 2", "n:1 2", "n:0 1", weight=0.3)
    add("text", "regexp_substr({}, {}, {}, {})", "text", pattern, "n:1 2", "n:1 2", weight=0.3)
    add("text", "regexp_replace({}, {}, {}, {}, {})", "text", pattern, "|'x'|''|'<\\&>'", "n:1 2", "n:0 1 2", weight=0.3)
    add("text[]", "regexp_split_to_array({}, {})", "text", "|'a'|'[a-c]'|''|' '", weight=0.3)
    add("text", "to_char({}, {})", "numeric", "|'9G999D99'|'FM99.0'|'S99'|'99.9PR'|'MI9.9'|'9.9EEEE'|'RN'", weight=0.3)
    add("text", "to_char({}, {})", "int8", "|'SG9999'|'FM9999th'|'99V9'|'0999'|'L9.9'", weight=0.3)
    add("text", "to_char({}, {})", "float8", "|'9.99'|'FM999.9'|'9.9EEEE'", weight=0.2)
    add("int4", "width_bucket({}, {}, {}, {})", "float8", "n:-3 1", "n:2 7", "n:1 4", weight=0.2)
    add("int4", "width_bucket({}, {}, {}, {})", "numeric", "n:-3 1", "n:2 7", "n:1 4", weight=0.2)
    add("int4", "min_scale({})", "numeric", weight=0.2)
    add("text", "substr({}, {})", "S", "n:-1 0 1 2 3", weight=0.7)
    add("text", "substr({}, {}, {})", "S", "n:-1 0 1 2 3", "n:0 1 2 5", weight=0.7)
    add("text", "substring({} from {} for {})", "S", "n:-1 0 1 2", "n:0 1 2", weight=0.7)
    add("text", "substring({} from {})", "text", "|'b.*'|'^a(.)'|'[0-9]+'", weight=0.3)
    add("text", "{}({}, {})", "|left|right", "S", "n:-1 0 1 2 5", weight=1)
    add("text", "{}({}, {})", "|lpad|rpad", "text", "n:-1 0 2 5", weight=0.7)
    add("text", "{}({}, {}, {})", "|lpad|rpad", "text", "n:0 2 5", "|'xy'|''|'-'", weight=0.7)
    add("text", "repeat({}, {})", "text", "n:-1 0 1 2", weight=0.5)
    add("text", "replace({}, {}, {})", "text", "text", "text", weight=0.7)
    add("text", "translate({}, {}, {})", "text", "|'ab'|'a'|''", "|'xy'|'x'|''", weight=0.5)
    add("text", "overlay({} placing {} from {})", "text", "text", "n:1 2", weight=0.2)
    add("text", "split_part({}, {}, {})", "text", "|'b'|' '|','", "n:1 2 -1", weight=0.5)
    add("text", "concat({}, {}, {})", "A", "S", "B", weight=0.7)
    add("text", "concat_ws({}, {}, {})", "|'-'|','", "S", "A", weight=0.7)
    add("text", "regexp_replace({}, {}, {})", "S", "|'a'|'(.)b'|'[a-b]'|'^'", "|'x'|'\\1'|'<\\&>'|'$1'|''", weight=1)
    add("text", "regexp_replace({}, {}, {}, 'g')", "S", "|'a'|'(.)b'|'.'", "|'x'|'\\1-'|'\\&\\&'", weight=0.5)
    add("text", "encode({}, {})", "bytea", "|'hex'|'base64'|'escape'", weight=0.7)
    add("text", "to_hex({})", "|1|255|(-1)|0", weight=0.3)
    add(
        "text",
        "to_char({}, {})",
        "timestamp",
        "|'YYYY-MM-DD'|'HH24:MI:SS'|'DD Mon YYYY'|'Day'|'FMMonth'|'Q IW'|'US'",
        weight=0.7,
    )
    add("text", "to_char({}, {})", "int4", "|'999'|'000'|'FM99'|'S99'", weight=0.5)
    add("text", "to_char({}, {})", "|numeric|1.5|(-2.25)", "|'999.99'|'0.0'|'FM90.00'|'9,999.9'", weight=0.3)
    add("text", "chr({})", "n:65 97 228", weight=0.2)
    add("text", "quote_literal({})", "text", weight=0.1)
    add("text", "quote_ident({})", "text", weight=0.1)
    add("text", "format('%s-%s', {}, {})", "A", "text", weight=0.1)
    for name in ("length", "char_length", "octet_length", "bit_length", "ascii"):
        add("int4", name + "({})", "S", weight=1)
    add("int4", "strpos({}, {})", "text", "text", weight=0.5)
    add("int4", "position({} in {})", "text", "text", weight=0.5)
    add("int4", "octet_length({})", "bytea", weight=0.4)
    add("int4", "length({})", "bytea", weight=0.4)
    add("bytea", "({} || {})", "bytea", "bytea", weight=1)
    add("bytea", "decode({}, {})", "|'12ff'|'00'|''", "|'hex'", weight=0.3)
    add("bytea", "substr({}, {}, {})", "bytea", "n:1 2", "n:0 1 2", weight=0.2)


def times():
    unit = "|'year'|'quarter'|'month'|'week'|'day'|'hour'|'minute'|'second'|'decade'|'century'"
    field = "|year|quarter|month|week|day|hour|minute|second|dow|doy|isodow|isoyear|epoch"
    field += "|decade|century|millennium|microseconds"
    add("date", "({} + {})", "date", "int4", weight=2)
    add("date", "({} - {})", "date", "int4", weight=1)
    add("int4", "({} - {})", "date", "date", weight=1)
    for kind in ("date", "timestamp", "timestamptz"):
        add("bool", "isfinite({})", kind, weight=0.2)
    for kind in ("timestamp", "timestamptz"):
        add(kind, "({} {} {})", kind, "|+|-", "interval", weight=2)
        add("interval", "({} - {})", kind, kind, weight=2)
        add(kind, "date_trunc({}, {})", unit, kind, weight=1.5)
        add("numeric", "extract({} from {})", field, kind, weight=1)
        add("float8", "date_part({}, {})", "|'year'|'month'|'epoch'|'dow'|'second'", kind, weight=0.5)
    add("timestamp", "({} {} {})", "date", "|+|-", "interval", weight=1)
    add("numeric", "extract({} from {})", "|year|month|day|dow|doy|week|quarter|epoch", "date", weight=1)
    add("timestamptz", "({} AT TIME ZONE {})", "timestamp", "|'UTC'|'Europe/Rome'|'America/New_York'", weight=0.7)
    add("timestamp", "({} AT TIME ZONE {})", "timestamptz", "|'UTC'|'Europe/Rome'|'America/New_York'", weight=0.7)
    add("interval", "({} {} {})", "interval", "|+|-", "interval", weight=1)
    add("interval", "({} * {})", "interval", "n:2 3 -1", weight=0.3)
    add("interval", "(- {})", "interval", weight=0.3)
    add("timestamptz", "to_timestamp({})", "|0|1577836800|0.5", weight=0.2)
    add("date", "to_date({}, {})", "|'20200102'|'19991231'", "|'YYYYMMDD'", weight=0.2)
    add("timestamptz", "to_timestamp({}, {})", "|'2020-01-02 03:04'", "|'YYYY-MM-DD HH24:MI'", weight=0.1)
    add("date", "make_date({}, {}, {})", "n:2020 1999", "n:1 2 12", "n:1 28", weight=0.3)
    add("timestamp", "make_timestamp(2020, {}, 1, 2, 3, 4.5)", "n:1 2 12", weight=0.1)
    add("timestamptz", "make_timestamptz(2020, {}, 1, 2, 3, 4.5, {})", "n:1 7 12", "|'UTC'|'+02'|'MSK'|'Europe/Rome'", weight=0.1)
    add("date", "date {}", "|'Jan 8, 1999'|'1/8/1999'|'J2451187'|'19990108'|'infinity'|'-infinity'|'epoch'", weight=0.3)
    add("timestamp", "timestamp {}", "|'Jan 8 04:05:06 1999'|'infinity'|'-infinity'|'19990108 040506'", weight=0.3)
    add("timestamptz", "timestamptz {}", "|'1999-01-08 04:05 PST'|'infinity'|'-infinity'", weight=0.3)
    add("timestamptz", "date_trunc({}, {}, {})", "|'day'|'week'|'hour'", "timestamptz", "|'UTC'|'Europe/Rome'", weight=0.2)
    add("interval", "justify_{}({})", "|days|hours|interval", "interval", weight=0.3)
    add("time", "({} {} {})", "time", "|+|-", "interval", weight=1)
    add("interval", "({} - {})", "time", "time", weight=0.5)
    add("timestamp", "({} + {})", "date", "time", weight=0.5)
    add("bool", "({} {} {})", "time", "|=|<>|<|<=|>|>=", "interval", weight=0.2)
    add("time", "({}::time)", "|timestamp '2020-01-01 10:00:00'|interval '25:00:01'", weight=0.2)
    add("interval", "({}::interval)", "time", weight=0.2)
    add("numeric", "extract({} from {})", "|hour|minute|second|epoch|microseconds", "time", weight=0.5)
    part = "|year|quarter|month|day|hour|minute|second|epoch|decade|century|milliseconds"
    add("numeric", "extract({} from {})", part, "interval", weight=0.5)
    add("interval", "date_trunc({}, {})", "|'year'|'quarter'|'month'|'day'|'hour'|'decade'", "interval", weight=0.3)
    add("interval", "make_interval(days => {}, secs => {})", "n:0 1 -1", "n:0 90 -3", weight=0.2)
    add("interval", "age({}, {})", "timestamp", "timestamp", weight=0.1)


def casts():
    for source in INTEGERS:
        for target in ("numeric", "float8", "float4", "text", "int8", "numeric(12,2)", "varchar(9)"):
            add(target.split("(")[0], "({}::" + target + ")", source, weight=0.25)
    add("int4", "({}::int4)", "int2", weight=0.3)
    add("bool", "({}::bool)", "int4", weight=0.3)
    add("int4", "({}::int4)", "bool", weight=0.3)
    add("text", "({}::text)", "bool", weight=0.3)
    add("text", "({}::numeric(12,2)::text)", "numeric", weight=0.3)
    add("numeric", "({}::numeric(12,1))", "numeric", weight=0.6)
    add("float8", "({}::float8)", "numeric", weight=0.6)
    add("float8", "({}::float8)", "float4", weight=0.3)
    for source in ("float8", "uuid", "date", "timestamp", "timestamptz", "bytea", "interval", "time"):
        add("text", "({}::text)", source, weight=0.3)
    add("varchar", "({}::varchar({}))", "S", "|1|2|5", weight=0.6)
    add("bpchar", "({}::char({}))", "S", "|1|2|5", weight=0.6)
    add("text", "({}::text)", "S", weight=0.6)
    add("varchar", "({}::varchar)", "S", weight=0.3)
    add("date", "({}::date)", "timestamp", weight=0.6)
    add("timestamp", "({}::timestamp)", "date", weight=0.6)
    add("timestamp", "({}::timestamp)", "timestamptz", weight=0.3)
    add("timestamptz", "({}::timestamptz)", "timestamp", weight=0.3)
    add("uuid", "({}::text::uuid)", "uuid", weight=0.2)
    add("bytea", "({}::bytea)", "|'\\x61'|'abc'", weight=0.2)


def conditional():
    add("A", "CASE WHEN {} THEN {} ELSE {} END", "bool", "A", "A", weight=6)
    add("A", "CASE WHEN {} THEN {} WHEN {} THEN {} END", "bool", "A", "bool", "A", weight=2)
    add("A", "CASE {} WHEN {} THEN {} ELSE {} END", "B", "B", "A", "A", weight=2)
    add("A", "coalesce({}, {})", "A", "A", weight=4)
    add("A", "coalesce({}, {}, {})", "A", "A", "A", weight=1)
    add("A", "nullif({}, {})", "A", "A", weight=2)
    add("A", "greatest({}, {})", "A", "A", weight=1.5)
    add("A", "least({}, {}, {})", "A", "A", "A", weight=1.5)
    for left, right in (
        ("int4", "int8"),
        ("int4", "numeric"),
        ("numeric", "float8"),
        ("int2", "int4"),
        ("int8", "numeric"),
    ):
        add(right, "CASE WHEN {} THEN {} ELSE {} END", "bool", left, right, weight=0.6)
        add(right, "coalesce({}, {})", left, right, weight=0.4)
        add(right, "least({}, {})", left, right, weight=0.2)
    add("int4[]", "ARRAY[{}, {}]", "int4", "int4", weight=1)
    add("text[]", "ARRAY[{}, {}]", "text", "text", weight=1)


def arrays():
    for array, item in (("int4[]", "int4"), ("text[]", "text")):
        add(array, "({} || {})", array, array)
        add(array, "array_{}({}, {})", "|append|remove", array, item, weight=0.7)
        add(array, "array_prepend({}, {})", item, array, weight=0.3)
        add(array, "array_replace({}, {}, {})", array, item, item, weight=0.3)
        add(array, "({})[{}:{}]", array, "n:0 1 2", "n:1 2 3", weight=0.5)
        add(item, "({})[{}]", array, "n:0 1 2 3")
        add("bool", "({} {} {})", array, "|@>|<@|&&", array)
        add("bool", "({} {} {}({}))", item, "|=|<>|<|>=", "|ANY|ALL", array)
        add("int4", "array_{}({}, 1)", "|length|upper|lower", array, weight=0.3)
        add("int4", "{}({})", "|cardinality|array_ndims", array, weight=0.5)
        add("int4", "array_position({}, {})", array, item, weight=0.4)
        add("int4[]", "array_positions({}, {})", array, item, weight=0.2)
        add("text", "array_to_string({}, ',', {})", array, "|'*'|NULL|''", weight=0.4)
        add("text", "({}::text)", array, weight=0.4)
    add("text[]", "string_to_array({}, {})", "text", "|','|' '|NULL|'a'|''", weight=0.5)
    add("text[]", "({}::text[])", "int4[]", weight=0.2)


for group in (booleans, numbers, strings, times, casts, conditional, arrays):
    group()

# Asked for one at a time, in the simplest of statements.
RISKY = [
    ("int4", "({} {} {})", ("int4", "|+|-|*|/|%", "int4")),
    ("int2", "({} {} {})", ("int2", "|+|-|*|/|%", "int2")),
    ("int8", "({} {} {})", ("int8", "|+|-|*|/|%", "int8")),
    ("int8", "({} {} {})", ("int4", "|+|-|*|/|%", "int8")),
    ("int4", "(- {})", ("int4",)),
    ("int2", "abs({})", ("int2",)),
    ("numeric", "({} {} {})", ("numeric", "|/|%", "numeric")),
    ("float8", "({} {} {})", ("float8", "|/|*", "float8")),
    ("float4", "({} {} {})", ("float4", "|/|*", "float4")),
    ("int2", "({}::int2)", ("N",)),
    ("int4", "({}::int4)", ("N",)),
    ("int8", "({}::int8)", ("N",)),
    ("float4", "({}::float4)", ("N",)),
    ("numeric", "({}::numeric(4,2))", ("N",)),
    ("int4", "({}::int4)", ("text",)),
    ("numeric", "({}::numeric(8,2))", ("text",)),
    ("float8", "({}::float8)", ("text",)),
    ("bool", "({}::bool)", ("text",)),
    ("date", "({}::date)", ("text",)),
    ("timestamp", "({}::timestamp)", ("text",)),
    ("uuid", "({}::uuid)", ("text",)),
    ("bytea", "({}::bytea)", ("text",)),
    ("float8", "{}({})", ("|sqrt|ln|exp|asin|acos|log|cot|sinh|tanh", "float8")),
    ("float8", "power({}, {})", ("float8", "float8")),
    ("text", "chr({})", ("int4",)),
    ("bytea", "decode({}, {})", ("text", "|'hex'|'base64'|'escape'")),
    ("text", "convert_from({}, 'UTF8')", ("bytea",)),
    ("date", "make_date({}, {}, {})", ("int4", "int4", "int4")),
    ("date", "({} + {})", ("date", "int4")),
    ("date", "to_date({}, 'YYYY-MM-DD')", ("text",)),
    ("text", "split_part({}, 'a', {})", ("text", "int4")),
    ("text", "substr({}, {}, {})", ("text", "int4", "int4")),
    ("text", "left({}, {})", ("text", "int4")),
    ("bool", "({} LIKE {})", ("text", "text")),
    ("bool", "({} ~ {})", ("text", "text")),
    ("text", "repeat({}, {})", ("text", "n:0 1 5 -3")),
    ("timestamp", "date_trunc({}, {})", ("text", "timestamp")),
    ("numeric", "round({}, {})", ("numeric", "int4")),
    ("text", "to_hex({})", ("L",)),
    ("date", "make_date({}, 3, 15)", ("n:-44 0 2020",)),
    ("float8", "{}({})", ("|log|ln|sqrt|acos|asin", "n:-1 0 2")),
    ("numeric", "factorial({})", ("int4",)),
    ("timestamptz", "to_timestamp({})", ("float8",)),
    ("int8", "sum({})", ("int4",)),
    ("numeric", "{}({})", ("|sum|avg|variance", "int8")),
    ("numeric", "{}({})", ("|sum|avg|stddev|variance", "numeric")),
    ("float8", "{}({})", ("|sum|avg|stddev", "float8")),
    ("float4", "sum({})", ("float4",)),
    ("int8", "sum({}) OVER ()", ("int4",)),
    ("numeric", "sum({}) OVER ()", ("int8",)),
    ("timestamp", "({} {} {})", ("timestamp", "|+|-", "interval")),
    ("interval", "({} - {})", ("timestamp", "timestamp")),
    ("interval", "({} * {})", ("interval", "int4")),
]

# (result, template, arguments): what folds rows.
AGGREGATES = [
    ("int8", "count(*)", ()),
    ("int8", "count({})", ("A",)),
    ("int8", "count(DISTINCT {})", ("A",)),
    ("int8", "count({})", ("row",)),
    ("A", "min({})", ("B",)),
    ("A", "max({})", ("B",)),
    ("int8", "sum({})", ("int2",)),
    ("int8", "sum({})", ("int4",)),
    ("numeric", "sum({})", ("int8",)),
    ("numeric", "sum({})", ("numeric",)),
    ("float8", "sum({})", ("float8",)),
    ("float4", "sum({})", ("float4",)),
    ("int8", "sum(DISTINCT {})", ("int4",)),
    ("numeric", "avg({})", ("L",)),
    ("numeric", "avg({})", ("numeric",)),
    ("float8", "avg({})", ("float8",)),
    ("bool", "{}({})", ("|bool_and|bool_or|every", "bool")),
    ("text", "string_agg({0}, ',' ORDER BY {0})", ("text",)),
    ("int4[]", "array_agg({0} ORDER BY {0})", ("int4",)),
    ("text[]", "array_agg({0} ORDER BY {0} DESC)", ("text",)),
    ("float8", "{}({})", ("|stddev|stddev_samp|stddev_pop|variance|var_samp|var_pop", "float8")),
    ("numeric", "{}({})", ("|stddev|stddev_pop|var_samp|var_pop", "int4")),
    ("int4", "{}({})", ("|bit_and|bit_or|bit_xor", "int4")),
    ("float8", "{}({}, {})", ("|corr|covar_pop|covar_samp|regr_slope|regr_count", "float8", "float8")),
    ("float8", "percentile_cont(0.5) WITHIN GROUP (ORDER BY {})", ("float8",)),
]

# Of a window: (result, template, arguments, whether an order over all columns is needed to say which row is which).
WINDOWS = [
    ("int8", "row_number()", (), True),
    ("int8", "rank()", (), False),
    ("int8", "dense_rank()", (), False),
    ("float8", "percent_rank()", (), False),
    ("float8", "cume_dist()", (), False),
    ("int4", "ntile({})", ("n:1 2 3",), True),
    ("A", "{}({})", ("|lag|lead", "A"), True),
    ("A", "{}({}, {})", ("|lag|lead", "A", "n:0 1 2"), True),
    ("A", "{}({}, 1, {})", ("|lag|lead", "A", "A"), True),
    ("A", "{}({})", ("|first_value|last_value", "A"), True),
    ("numeric", "{}({}, 1, {})", ("|lag|lead", "int4", "|-1.5|2.5"), True),
    ("A", "nth_value({}, {})", ("A", "n:1 2"), True),
]
