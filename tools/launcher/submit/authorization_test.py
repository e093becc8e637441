import sys

import pytest

from tools.launcher.submit.authorization import AuthorizationInvalid, parse_authorization


def test_who_and_why_are_kept_as_typed():
    authorization = parse_authorization(" ann :  node fault: rack 7, agreed with ops ")
    assert (authorization.who, authorization.why) == ("ann", "node fault: rack 7, agreed with ops")
    assert str(authorization) == "ann: node fault: rack 7, agreed with ops"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            None,
            (
                "this needs someone who answers for it: say who and why, for example "
                '--authorize="ann: node fault, agreed with ops"'
            ),
        ),
        ("", "--authorize='' lacks the colon between them. Say who and why: --authorize="),
        ("ann", "--authorize='ann' lacks the colon between them. Say who and why: --authorize="),
        (": why", "--authorize=': why' lacks who. Say who and why: --authorize="),
        ("ann:  ", "--authorize='ann:  ' lacks why. Say who and why: --authorize="),
        ("ann: a\nb", "--authorize='ann: a\\nb' is not one line of printable characters. Write it plainly"),
        ("ann: \x1b[31m", "--authorize='ann: \\x1b[31m' is not one line of printable characters."),
        (
            "ann: " + "x" * 300,
            "--authorize has 305 characters, the limit is 300. Say it in one line, for example",
        ),
    ],
)
def test_anything_else_is_refused_with_an_example(text, sentence):
    with pytest.raises(AuthorizationInvalid) as caught:
        parse_authorization(text)
    assert str(caught.value).startswith(sentence)
    assert '--authorize="ann: node fault, agreed with ops"' in str(caught.value)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
