import re
import sys
from pathlib import Path

import pytest

from tools.launcher.submit.remote_setup import (
    REQUIREMENTS_FILE,
    ROOTS,
    LockUnreadable,
    requirements,
    setup_script,
)

LOCK = Path("third_party/python/requirements_lock.txt").read_text()


def _names(text):
    return re.findall(r"^([\w.-]+)(?:\[.*\])?==", text, re.MULTILINE)


def test_what_the_roots_need_is_kept_with_all_its_hashes():
    kept = requirements(LOCK).decode()
    names = _names(kept)
    assert set(ROOTS) <= set(names)
    # Needed by s3fs, which rigging needs; by gRPC's Google extras; and by nobody here.
    assert {"aiobotocore", "botocore", "grpcio", "protobuf", "pyyaml", "marin-finelog"} <= set(names)
    assert not {"mypy", "pytest", "numpy", "rich", "ruff", "hypothesis"} & set(names)
    for name in names:
        in_lock = re.search(rf"^{re.escape(name)}(\[.*\])?==.*\n(    --hash=.*\n)+", LOCK, re.MULTILINE)
        assert in_lock is not None
        assert in_lock[0].rstrip("\\\n ") in kept
    assert kept == requirements(LOCK).decode()
    # Everything it names is pinned and hashed: nothing is left for an installer to choose.
    assert kept.count("==") == len(names)
    assert "#" not in kept


def test_a_lock_without_a_root_is_refused():
    with pytest.raises(LockUnreadable) as caught:
        requirements("numpy==2 \\\n    --hash=sha256:00\n    # via -r requirements.in\n")
    assert str(caught.value) == (
        "requirements_lock.txt has no google-cloud-storage, marin-iris, marin-rigging, pydantic. Write it anew "
        "with third_party/python/lock.sh"
    )


def test_the_script_installs_nothing_but_the_file():
    assert setup_script() == (
        "set -e\n"
        'uv venv --allow-existing --python 3.12 "$IRIS_VENV"\n'
        'uv pip install --python "$IRIS_VENV/bin/python" --require-hashes --no-deps --only-binary :all: '
        f'--requirement "$IRIS_WORKDIR/{REQUIREMENTS_FILE}"\n'
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
