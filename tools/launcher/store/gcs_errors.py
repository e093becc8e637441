"""What went wrong between us and Google Cloud Storage, in a sentence with its fix."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

_LOGIN = "Run `gcloud auth application-default login`, then run the command again"
_GRANT = (
    "Have the bucket's owner grant storage.objects.create, storage.objects.get and storage.objects.list "
    "(docs/stores.md), or log in as somebody who has them: `gcloud auth application-default login`; then "
    "run the command again"
)
_AGAIN = "Check the network, then run the command again: it finds what is stored"

TRANSIENT_STATUS = frozenset({408, 429, 500, 502, 503, 504})
"""Answers after which the same request may succeed
(cloud.google.com/storage/docs/retry-strategy#retryable)."""


class Explanation(NamedTuple):
    """Two parts of a message: what happened, and what to do."""

    reason: str
    fix: str


def expected_failures() -> tuple[type[Exception], ...]:
    """Return what the client raises when a request or its credentials fail."""
    import requests
    import urllib3
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    return (
        api.GoogleAPICallError,
        api.RetryError,
        auth.GoogleAuthError,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    )


def is_transient(error: Exception) -> bool:
    """Say whether the same request may succeed a moment later."""
    import requests
    import urllib3
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    if isinstance(error, api.GoogleAPICallError):
        return error.code in TRANSIENT_STATUS
    if isinstance(error, requests.exceptions.SSLError | urllib3.exceptions.SSLError):
        return False  # A certificate that is wrong stays so.
    return isinstance(
        error,
        auth.TransportError
        | requests.ConnectionError
        | requests.Timeout
        | requests.exceptions.ChunkedEncodingError
        | urllib3.exceptions.ProtocolError
        | urllib3.exceptions.TimeoutError
        | ConnectionError,
    )


def says_no_bucket(error: Exception) -> bool:
    """Say whether a 404 is about the bucket and not about the object."""
    return "bucket does not exist" in str(error)


def explain(error: Exception, *, server: str) -> Explanation:
    """Return the reason and the fix of an error of `expected_failures`.

    Args:
        error: what the client raised.
        server: address of the service, for errors that do not name it.
    """
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    if isinstance(error, api.RetryError) and isinstance(error.cause, Exception):
        return explain(error.cause, server=server)
    if isinstance(error, auth.DefaultCredentialsError):
        return Explanation(f"there are no Google credentials to use: {_sentence(error)}", _LOGIN)
    if isinstance(error, auth.RefreshError):
        return Explanation(f"Google does not accept the credentials: {_sentence(error)}", _LOGIN)
    if isinstance(error, api.GoogleAPICallError):
        return _explain_answer(error)
    if isinstance(error, auth.TransportError):
        server = "Google's server of access tokens"
    return _explain_connection(error, server)


def _explain_answer(error: Exception) -> Explanation:
    status = getattr(error, "code", None)
    said = f"HTTP {int(status) if status else '?'}: {_message_of(error)}"
    if status == 401:
        return Explanation(f"Google does not accept the credentials ({said})", _LOGIN)
    if status == 403:
        return Explanation(f"access is denied ({said})", _GRANT)
    if status == 404 and says_no_bucket(error):
        return Explanation(
            "there is no such bucket",
            "Check the store's address or make the bucket, then run the command again",
        )
    if status in TRANSIENT_STATUS:
        return Explanation(
            f"the service does not serve now ({said})",
            "Run the command again in a minute: it finds what is stored",
        )
    return Explanation(
        f"the service refuses ({said})", "Check the store's address, then run the command again"
    )


def _explain_connection(error: Exception, server: str) -> Explanation:
    chain = list(_chain(error))
    names = {kind.__name__ for link in chain for kind in type(link).__mro__}
    if "NameResolutionError" in names or "gaierror" in names:
        reason = f"the name of {server} is not found"
    elif "ConnectionRefusedError" in names:
        reason = f"{server} refuses the connection"
    elif "SSLError" in names:
        reason = f"no secure connection to {server}: {_sentence(chain[-1])}"
    elif names & {"Timeout", "TimeoutError"}:
        reason = f"{server} does not answer in time"
    elif names & {"ProtocolError", "ChunkedEncodingError", "ConnectionError"}:
        reason = f"the connection to {server} broke before the whole answer came"
    else:
        reason = f"no use of {server}: {_sentence(error)}"
    return Explanation(reason, _AGAIN)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and everything it wraps: requests and urllib3 put causes into arguments."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        inner = [*link.args, getattr(link, "reason", None), link.__cause__, link.__context__]
        waiting += [part for part in inner if isinstance(part, BaseException)]


def _message_of(error: Exception) -> str:
    """Return what the service said, without the URL and the client's own words."""
    response = getattr(error, "response", None)
    if response is not None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return " ".join(str(response.json()["error"]["message"]).split()).rstrip(".")[:200]
        return " ".join(str(response.text).split()).rstrip(".")[:200] or "no text"
    return _sentence(error)


def _sentence(error: BaseException) -> str:
    """Return the first sentence of an error's text, on one line."""
    text = " ".join(str(error.args[0] if error.args else error).split())
    return text.partition(". ")[0].rstrip(".")[:200]
