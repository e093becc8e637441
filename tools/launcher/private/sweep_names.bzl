"""The points of a sweep: what they are called and which options they have."""

load(":names.bzl", "NAME_CHARACTERS", "experiment_name_problem", "option_problem", "option_text")

# Of one sweep. More is either a mistake or somebody's search, which sweeps do not do.
MOST_POINTS = 256

# A record of a run takes 120 characters, of which a stage may need some.
MOST_CHARACTERS = 100

def sweep_points(name, package, axes, exclude, options):
    """Expands the axes of a sweep.

    Args:
      name: name of the rl_sweep.
      package: package it stands in, for messages.
      axes: dict of option -> list of values, as BUILD.bazel gives it.
      exclude: list of dicts of axis -> value; points that have all of one are left out.
      options: the options that every point has.

    Returns:
      A struct of `problem`, a sentence with label, value and fix or None, and `points`: structs of `name` (of the
      rl_experiment), `point` (what follows the sweep's name in it) and `values` (axis -> text), in the order of the
      axes, the last one fastest.
    """
    problem = experiment_name_problem(name, package, "rl_sweep")
    if problem:
        return struct(problem = problem, points = [])
    problem = _axes_problem(axes, options) or _exclude_problem(axes, exclude)
    points = []
    if not problem:
        points = [
            point
            for point in _product(name, {axis: [option_text(v) for v in values] for axis, values in axes.items()})
            if not [left_out for left_out in exclude if _is_in(point.values, left_out)]
        ]
        problem = _points_problem(points)
    if problem:
        return struct(problem = "rl_sweep //{}:{}: {}".format(package, name, problem), points = [])
    return struct(problem = None, points = points)

def _axes_problem(axes, options):
    if type(axes) != "dict" or not axes:
        return "axes is {}. Give a dict of option of main() -> list of its values.".format(repr(axes))
    product = 1
    for axis, values in axes.items():
        if type(values) != "list" or not values:
            return "axis '{}' is {}. Give a list of at least one value, or take the axis out.".format(axis, repr(values))
        if axis in options:
            return "'{}' is in axes and in options. Keep it in one of them.".format(axis)
        texts = []
        for value in values:
            problem = option_problem(axis, value)
            if problem:
                return problem.replace("options has", "axes has", 1)
            if option_text(value) in texts:
                return "axis '{}' has '{}' twice. Give each value once.".format(axis, option_text(value))
            texts.append(option_text(value))
        product *= len(values)
    if product > MOST_POINTS:
        return "the axes make {} points, and one sweep has at most {}. Give fewer values, or make several sweeps.".format(
            product,
            MOST_POINTS,
        )
    return None

def _exclude_problem(axes, exclude):
    if type(exclude) != "list":
        return "exclude is {}. Give a list of dicts such as {{\"seed\": \"1\"}}.".format(repr(exclude))
    for left_out in exclude:
        if type(left_out) != "dict" or not left_out:
            return "exclude has {}. Give a dict of axis -> value for each point to leave out.".format(repr(left_out))
        for axis, value in left_out.items():
            texts = [option_text(known) for known in axes.get(axis, [])]
            if option_text(value) not in texts:
                return "exclude has {}={}, which no point has. Use {}.".format(
                    axis,
                    option_text(value),
                    "one of {}".format(", ".join(texts)) if texts else "one of the axes {}".format(", ".join(axes.keys())),
                )
    return None

def _is_in(values, left_out):
    return not [axis for axis, value in left_out.items() if values[axis] != option_text(value)]

def _product(name, axes):
    short = _short_names(axes.keys())
    points = [struct(point = "", values = {})]
    for axis, values in axes.items():
        points = [
            struct(
                point = "{}_{}_{}".format(made.point, short[axis], _letters(value)).lstrip("_"),
                values = made.values | {axis: value},
            )
            for made in points
            for value in values
        ]
    return [
        struct(name = "{}_{}".format(name, made.point), point = made.point, values = made.values)
        for made in points
    ]

def _short_names(axes):
    """Axis -> its first letters, `lr` for `learning_rate`; whole where it is one word, or two would be alike."""
    initials = {axis: _initials(axis) for axis in axes}
    return {
        axis: axis if len([other for other in initials.values() if other == short]) > 1 else short
        for axis, short in initials.items()
    }

def _initials(axis):
    words = [word for word in axis.split("_") if word]
    return "".join([word[0] for word in words]) if len(words) > 1 else axis

def _letters(value):
    return "".join([letter if letter in NAME_CHARACTERS else "_" for letter in value.elems()])

def _points_problem(points):
    if not points:
        return "exclude leaves no point. Take some of it out, or the sweep."
    by_name = {}
    for made in points:
        if made.name in by_name:
            return "the points {} and {} would both be called '{}'. Write their values so that they differ in letters and digits.".format(
                _values(by_name[made.name]),
                _values(made.values),
                made.name,
            )
        by_name[made.name] = made.values
        if len(made.name) > MOST_CHARACTERS:
            return "the point {} would be called '{}', which has {} characters, more than {}. Shorten the names of the sweep and its options, or the values.".format(
                _values(made.values),
                made.name,
                len(made.name),
                MOST_CHARACTERS,
            )
    return None

def _values(values):
    return ", ".join(["{}={}".format(axis, value) for axis, value in values.items()])
