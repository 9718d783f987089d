"""The column types that Terrace has: PostgreSQL's oids, and values to choose from. The values are few, so that they
meet each other."""

from tree import Literal

OIDS = {
    "bool": 16, "bytea": 17, "int8": 20, "int2": 21, "int4": 23, "text": 25, "float4": 700, "float8": 701,
    "bpchar": 1042, "varchar": 1043, "date": 1082, "timestamp": 1114, "timestamptz": 1184, "interval": 1186,
    "time": 1083, "numeric": 1700, "uuid": 2950, "int4[]": 1007, "text[]": 1009,
}  # fmt: skip

INTEGERS = ("int2", "int4", "int8")
# By the order in which PostgreSQL widens them; numeric beside a float gives float8.
NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")
STRINGS = ("text", "varchar", "bpchar")
TIMES = ("date", "timestamp", "timestamptz")

# Small enough that sums and products of a few of them stay within smallint. Floats are sums of powers of two: exact
# in any order.
COMMON = {
    "bool": ["true", "false"],
    "int2": ["-2", "-1", "0", "1", "2", "3", "7"],
    "int4": ["-2", "-1", "0", "1", "2", "3", "7"],
    "int8": ["-2", "-1", "0", "1", "2", "3", "7"],
    "numeric": ["-1.5", "0", "1", "1.5", "2", "2.50", "0.25", "-0.05", "10.10", "3"],
    "float4": ["-1.5", "0", "1", "1.5", "2", "2.5", "0.25", "3"],
    "float8": ["-1.5", "0", "1", "1.5", "2", "2.5", "0.25", "3"],
    "text": ["", "a", "b", "A", "ab", "a b", "abc", "z", "1", "7"],
    "varchar": ["", "a", "b", "A", "ab", "abc", "z", "1"],
    "bpchar": ["", "a", "b", "A", "ab", "z", "1"],
    "bytea": ["\\x", "\\x00", "\\x12", "\\x61", "\\xff00", "\\x6162"],
    "date": ["1999-12-31", "2020-01-01", "2020-02-29", "2021-03-31", "2020-01-02"],
    "timestamp": ["1999-12-31 23:59:59.5", "2020-01-01 00:00:00", "2020-02-29 12:30:00", "2020-01-01 05:00:00",
                  "2021-03-31 00:00:00.000001"],
    "timestamptz": ["1999-12-31 23:59:59.5+00", "2020-01-01 00:00:00+00", "2020-02-29 12:30:00+00",
                    "2020-01-01 05:00:00-05"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
             "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "interval": ["1 day", "24:00:00", "1 mon", "30 days", "-1 day", "01:30:00", "1 year 2 mons", "00:00:00"],
    "time": ["00:00:00", "10:00:00", "10:00:00.5", "23:59:59.999999", "12:30:00"],
    "int4[]": ["{}", "{1,2}", "{2,NULL}", "{7}", "{1}", "{2,1,2}"],
    "text[]": ["{}", "{a,b}", "{ab,NULL}", "{z}", "{a}", '{"a b",""}'],
}  # fmt: skip

# What is rarer, and wrong more often.
RARE = {
    "int2": ["32767", "-32768"],
    "int4": ["2147483647", "-2147483648"],
    "int8": ["9223372036854775807", "-9223372036854775808", "4294967296"],
    "numeric": ["1000000000000000000", "-999999999999", "0.0000001", "12345678.87654321",
                "99999999999999999999", "2.501", "1.49", "0.005"],
    "float4": ["NaN", "Infinity", "-Infinity", "-0", "0.1"],
    "float8": ["NaN", "Infinity", "-Infinity", "-0", "0.1", "1e15"],
    "text": ["a ", " a", "%", "a_b", "a%b", "\\", "it's", "ä", "日本", "NULL", "2020-01-01",
             "a\nb", "$1", "\"q\"", "1.5"],
    "varchar": ["a ", " b", "%", "\\", "ä"],
    "bpchar": ["a ", "ä", "%"],
    "bytea": ["\\x5c", "\\x27", "\\xc3a4"],
    "date": ["0044-03-15 BC", "0001-01-01", "9999-12-31", "infinity", "-infinity"],
    "timestamp": ["0044-03-15 12:00:00 BC", "9999-12-31 23:59:59.999999"],
    "timestamptz": ["2020-07-01 00:00:00+02", "1900-01-01 00:00:00+00"],
    "interval": ["1 mon -1 days +02:03:04.5", "-00:00:00.000001", "1000 years"],
    "time": ["24:00:00", "00:00:00.000001"],
    "int4[]": ["{NULL}", "{2147483647,-1}", " { 1 , 2 } "],
    "text[]": ['{"NULL",NULL,"a,b"}', '{"q\\"x","\\\\"}', "{ä,{}}".replace("{}", '"{"')],
}  # fmt: skip

# Constants without a type, which PostgreSQL cuts to the type beside them in its own way.
UNTYPED = {
    "timestamp": ["2020-01-01 00:00:00-05", "2020-01-01 05:00:00+00"],
    "date": ["2020-01-01 23:00:00"],
    "int4": [" 7 "],
}

# What a column may be declared as.
DECLARED = {
    "bool": ["boolean"],
    "int2": ["smallint"],
    "int4": ["integer"],
    "int8": ["bigint"],
    "numeric": ["numeric(8,2)", "numeric", "numeric(20,10)", "numeric(12,0)"],
    "float4": ["real"],
    "float8": ["double precision"],
    "text": ["text"],
    "varchar": ["varchar(5)", "varchar(40)", "varchar"],
    "bpchar": ["char(3)", "char(5)"],
    "bytea": ["bytea"],
    "date": ["date"],
    "timestamp": ["timestamp"],
    "timestamptz": ["timestamptz"],
    "uuid": ["uuid"],
    "interval": ["interval"],
    "time": ["time"],
    "int4[]": ["integer[]"],
    "text[]": ["text[]"],
}

COLUMN_TYPES = tuple(DECLARED)


def written(type):
    """The type's name in a cast. There is no char without a length in Terrace."""
    return "char(5)" if type == "bpchar" else type


def fits(value, declared):
    """Whether PostgreSQL takes this value into a column so declared."""
    inside = declared[declared.find("(") + 1 : -1].split(",") if "(" in declared else []
    if declared.startswith(("varchar(", "char(")):
        return len(value) <= int(inside[0])
    if declared.startswith("numeric("):
        return abs(float(value)) < 10 ** (int(inside[0]) - int(inside[1]))
    return True


def quoted(value):
    return "'" + value.replace("'", "''") + "'"


def value(rng, type, rare=0.05, declared=""):
    while True:
        rarely = RARE.get(type) if rng.random() < rare else None
        found = rng.choice(rarely or COMMON[type])
        if fits(found, declared):
            return found


def literal(rng, type, rare=0.05, null=0.05):
    """A constant in one of its forms, whose type PostgreSQL sees without its surroundings."""
    if rng.random() < null:
        return Literal(f"NULL::{written(type)}", None, type)
    text = value(rng, type, rare)
    if type == "int4" or (type == "numeric" and "." in text):
        # A minus is an operator, and -2147483648 then no integer.
        if text != "-2147483648" and rng.random() < 0.8:
            return Literal(f"({text})" if text.startswith("-") else text, text, type)
    if type == "bool" and rng.random() < 0.8:
        return Literal(text, text, type)
    if type == "text" and rng.random() < 0.1:
        escaped = text.replace("\\", "\\\\").replace("'", rng.choice(["''", "\\'"])).replace("\n", "\\n")
        return Literal(f"E'{escaped}'::text", text, type)
    form = rng.choice(["{0}::{1}", "CAST({0} AS {1})", "{0}::{1}"])
    if type in ("date", "timestamp", "timestamptz", "interval", "time", "uuid") and rng.random() < 0.5:
        form = "{1} {0}"
    return Literal(
        f"({form.format(quoted(text), written(type))})" if form[0] == "{" else form.format(quoted(text), written(type)),
        text,
        type,
    )


def unknown(rng, type, rare=0.05):
    """A constant that takes its type from what stands beside it."""
    text = value(rng, type, rare)
    if type in UNTYPED and rng.random() < rare:
        text = rng.choice(UNTYPED[type])
    return Literal(quoted(text), text, type)
