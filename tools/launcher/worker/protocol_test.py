"""Lines of the worker protocol."""

import json
import sys

import pytest

from tools.launcher.worker.protocol import ProtocolError, WorkRequest, cancelled, finished, parse_request


def test_a_request_as_bazel_writes_it():
    line = (
        b'{"arguments":["--label=//a:b","--option=x=\\u00fc"],"inputs":[{"path":"a.py","digest":"Zm9v"}],'
        b'"requestId":7,"verbosity":10,"sandboxDir":"__sandbox/7/_main","newField":{"a":1}}'
    )
    assert parse_request(line) == WorkRequest(
        id=7, arguments=("--label=//a:b", "--option=x=ü"), folder="__sandbox/7/_main", cancel=False
    )


def test_what_is_left_out_has_the_value_of_the_protocol():
    assert parse_request(b"{}") == WorkRequest(id=0, arguments=(), folder="", cancel=False)
    assert parse_request(b'{"requestId": 3, "cancel": true}').cancel


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "a work request is not JSON: "),
        (b"\xff{}", "a work request is not JSON: "),
        (b"[]", "a work request is a list, not an object"),
        (b'{"requestId": "1"}', "field requestId of a work request is '1', not a int"),
        (b'{"arguments": "x"}', "field arguments of a work request is 'x', not a list"),
        (b'{"arguments": ["x", 1]}', "an argument of a work request is 1, not a str"),
        (b'{"sandboxDir": null}', "field sandboxDir of a work request is None, not a str"),
        (b'{"cancel": 1}', "field cancel of a work request is 1, not a bool"),
    ],
)
def test_what_is_no_request_is_refused(line, problem):
    with pytest.raises(ProtocolError, match=problem):
        parse_request(line)


def test_responses_are_one_line_of_ascii():
    line = finished(7, status=1, output="ü\n\x1b\u2028")
    assert line.isascii() and line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line) == {"requestId": 7, "exitCode": 1, "output": "ü\n\x1b\u2028"}
    assert json.loads(cancelled(7)) == {"requestId": 7, "wasCancelled": True}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
