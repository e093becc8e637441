"""Tests of sweep_names.bzl."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load(":sweep_names.bzl", "sweep_points")

_RATES = ["1e-6", "2e-6"]

def _points(axes, exclude = [], name = "grid"):
    swept = sweep_points(name, "experiments/x", axes, exclude, {"scale": "smoke"})
    return swept.problem or [point.point for point in swept.points]

def _expansion_impl(ctx):
    env = unittest.begin(ctx)
    swept = sweep_points("grid", "experiments/x", {"learning_rate": _RATES, "kl": [True, False]}, [], {})
    asserts.equals(env, None, swept.problem)

    # In the order of the axes, the last one fastest; values are text, as in options.
    asserts.equals(env, [
        ("grid_lr_1e_6_kl_true", {"learning_rate": "1e-6", "kl": "true"}),
        ("grid_lr_1e_6_kl_false", {"learning_rate": "1e-6", "kl": "false"}),
        ("grid_lr_2e_6_kl_true", {"learning_rate": "2e-6", "kl": "true"}),
        ("grid_lr_2e_6_kl_false", {"learning_rate": "2e-6", "kl": "false"}),
    ], [(point.name, point.values) for point in swept.points])

    asserts.equals(env, ["seed_1", "seed_20"], _points({"seed": [1, 20]}))
    asserts.equals(env, ["tbs_0_5"], _points({"train_batch_size": [0.5]}))

    # Two axes of the same initials are written out.
    asserts.equals(
        env,
        ["learning_rate_1_lora_rank_8_seed_1"],
        _points({"learning_rate": ["1"], "lora_rank": [8], "seed": [1]}),
    )
    asserts.equals(env, ["lr_1_learning_rate_2"], _points({"lr": [1], "learning_rate": [2]}))
    sixteen = [value for value in range(16)]
    asserts.equals(env, 256, len(_points({"a": sixteen, "b": sixteen})))
    return unittest.end(env)

expansion_test = unittest.make(_expansion_impl)

def _exclude_impl(ctx):
    env = unittest.begin(ctx)
    axes = {"learning_rate": _RATES, "seed": [1, 2]}
    asserts.equals(
        env,
        ["lr_1e_6_seed_1", "lr_1e_6_seed_2", "lr_2e_6_seed_1"],
        _points(axes, [{"learning_rate": "2e-6", "seed": 2}]),
    )

    # One axis leaves out all points of that value.
    asserts.equals(env, ["lr_2e_6_seed_1", "lr_2e_6_seed_2"], _points(axes, [{"learning_rate": "1e-6"}]))
    return unittest.end(env)

exclude_test = unittest.make(_exclude_impl)

def _problems_impl(ctx):
    env = unittest.begin(ctx)
    many = [value for value in range(17)]
    for axes, exclude, sentence in [
        ({}, [], "axes is {}. Give a dict of option of main() -> list of its values."),
        (["seed"], [], "axes is [\"seed\"]. Give a dict of option of main() -> list of its values."),
        ({"seed": []}, [], "axis 'seed' is []. Give a list of at least one value, or take the axis out."),
        ({"seed": "1"}, [], "axis 'seed' is \"1\". Give a list of at least one value, or take the axis out."),
        ({"scale": ["full"]}, [], "'scale' is in axes and in options. Keep it in one of them."),
        ({"seed": [1, "1"]}, [], "axis 'seed' has '1' twice. Give each value once."),
        ({"seed": [[1]]}, [], "option 'seed' is [1], of the type list. Give text, a number or a boolean."),
        ({"a-b": [1]}, [], "axes has the name 'a-b'. Give the name of a parameter of main()."),
        (
            {"a": many, "b": many},
            [],
            "the axes make 289 points, and one sweep has at most 256. Give fewer values, or make several sweeps.",
        ),
        (
            {"learning_rate": ["1e-6", "1e+6"]},
            [],
            "the points learning_rate=1e-6 and learning_rate=1e+6 would both be called 'grid_lr_1e_6'. Write their values so that they differ in letters and digits.",
        ),
        (
            {"seed": ["1" * 100]},
            [],
            "the point seed={} would be called 'grid_seed_{}', which has 110 characters, more than 100. Shorten the names of the sweep and its options, or the values.".format("1" * 100, "1" * 100),
        ),
        ({"seed": [1]}, "1", "exclude is \"1\". Give a list of dicts such as {\"seed\": \"1\"}."),
        ({"seed": [1]}, [{}], "exclude has {}. Give a dict of axis -> value for each point to leave out."),
        ({"seed": [1, 2]}, [{"seed": 3}], "exclude has seed=3, which no point has. Use one of 1, 2."),
        ({"seed": [1, 2]}, [{"scale": "x"}], "exclude has scale=x, which no point has. Use one of the axes seed."),
        ({"seed": [1]}, [{"seed": 1}], "exclude leaves no point. Take some of it out, or the sweep."),
    ]:
        asserts.equals(env, "rl_sweep //experiments/x:grid: " + sentence, _points(axes, exclude))
    asserts.equals(
        env,
        "rl_sweep //experiments/x:launch: 'launch' is the name of a verb. Choose another name.",
        _points({"seed": [1]}, name = "launch"),
    )
    return unittest.end(env)

problems_test = unittest.make(_problems_impl)
