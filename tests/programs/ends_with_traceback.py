"""An exception that nobody catches, with a cause and a note: a traceback on stderr, exit code 1."""
# needs:


def inner(number: int) -> float:
    return 1.5 / number


def outer() -> None:
    try:
        inner(0)
    except ZeroDivisionError as error:
        error.add_note("a note")
        raise RuntimeError("the outer one") from error


print("before", flush=True)
outer()
