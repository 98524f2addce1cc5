"""Tables that the tools print, for tests."""


def number(text):
    try:
        value = float(text)
    except ValueError:
        return None if text in ("NA", "") else text
    return None if value != value else value


def load(lines):
    """metric and value: {"macro_f1": 0.5, "f1": [of each class], "macro_f1_fold": [of each fold], "classes": [names]}"""
    values, lines = {}, iter(lines)
    next(lines)  # the names of the columns
    for line in lines:
        metric, value = line.rstrip("\n").split("\t")
        metric, *of = metric.split(":")
        if not of:
            values[metric] = number(value)
        elif metric == "confusion":
            values.setdefault(metric, {})[tuple(of)] = number(value)
        else:
            values.setdefault(metric, []).append(number(value))
            if metric == "n":
                values["classes"] = (values["classes"] if isinstance(values["classes"], list) else []) + [":".join(of)]
    return values


def records(lines):
    """a table with names of columns: [{"arm": "a", "p": 0.5}, ...]; NA is None"""
    names, *rows = [line.rstrip("\n").split("\t") for line in lines]
    return [dict(zip(names, map(number, row))) for row in rows]
