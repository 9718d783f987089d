"""What the parts in Python share: a check is a function; its result is one line, `ok NAME` or `no NAME: why`.

The address comes from PGHOST, PGPORT, PGUSER and PGDATABASE, as libpq reads them.
"""
import asyncio
import inspect
import os
import sys

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def same(found, wanted):
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def fails(error, run):
    try:
        run()
    except error as e:
        return e
    raise AssertionError(f"{error} expected")


def address(scheme="postgresql"):
    return f"{scheme}://{os.environ['PGUSER']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/{os.environ['PGDATABASE']}"


def told(error):
    text = " ".join(f"{error}".split()) or type(error).__name__
    return text if isinstance(error, AssertionError) else f"{type(error).__name__}: {text}"


def run(version, *arguments, after=lambda: None):
    """Runs all checks in the order in which they stand; `after` tidies up behind each."""
    print(f"version {version}")
    for function in CHECKS:
        try:
            result = function(*arguments)
            if inspect.isawaitable(result):
                asyncio.get_event_loop().run_until_complete(asyncio.wait_for(result, 60))
            print(f"ok {function.__name__}")
        except Exception as e:  # noqa: BLE001: whatever it is, the next check has its turn
            if os.environ.get("VERBOSE"):
                import traceback

                traceback.print_exc(file=sys.stderr)
            print(f"no {function.__name__}: {told(e)[:300]}")
        sys.stdout.flush()
        try:
            after()
        except Exception as e:  # noqa: BLE001
            print(f"no {function.__name__}, tidied up: {told(e)[:300]}")
