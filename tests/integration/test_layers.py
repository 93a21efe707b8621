"""The folders say the architecture: who may include whom, read from the sources themselves."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include ([<"])([^>"]+)[>"]', re.M)

# Which files a folder's files may include, by the start of the path; the folder itself goes without
# saying. A message goes backplane -> hub -> transport, a request door -> transport -> hub ->
# backplane; what would go the other way is a callback.
MAY_INCLUDE = {
    "common": [],
    "gateway/backplane": ["common/", "gateway/link_h2o.h"],
    "gateway/hub": ["common/", "gateway/backplane/backplane.h", "gateway/transport/stream.h",
                    "gateway/transport/sse_codec.h", "gateway/transport/ws_codec.h"],
    "gateway/transport": ["common/", "gateway/hub/", "gateway/backplane/backplane.h",
                          "gateway/wheel.h"],
    "gateway/console": ["common/", "console_files.h"],
    "gateway/door": ["common/", "gateway/transport/", "gateway/hub/", "gateway/backplane/",
                     "gateway/console/"],
    "gateway": ["common/"],
    "broker": ["common/", "functions_library.h"],
}
# The worker puts the folders together.
WORKER_MAY_INCLUDE = ["gateway/door/door.h", "gateway/hub/hub.h", "gateway/transport/streams.h"]

# Which files may know a library.
LIBRARIES = {
    r"h2o(/.*)?\.h": ["gateway/worker.h", "gateway/acceptor.h", "gateway/loop_fd.h", "gateway/loop_clock.h",
                      "gateway/link_h2o.c", "gateway/door/", "gateway/transport/"],
    r"hiredis/.*": ["common/resp.c", "common/redis_link.c"],
    r"ev\.h": ["broker/"],
    r"yaml\.h": ["common/config_yaml.c", "common/config_yaml.h"],
    r"openssl/.*": ["gateway/transport/ws_codec.c", "broker/functions.c"],
    r"jansson\.h": ["common/text.c", "gateway/transport/ws_command.c"],
    r"unistr\.h": ["common/text.c"],
    r"uthash\.h": ["gateway/hub/channel.h"],
}


def sources():
    for folder in ("common", "gateway", "broker"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            yield path.relative_to(ROOT).as_posix()


def includes(name):
    """(is it ours, path) of each #include."""
    return [(mark == '"', path) for mark, path in INCLUDE.findall((ROOT / name).read_text())]


def folder_of(name):
    return name.rpartition("/")[0]


def test_no_file_includes_upwards():
    wrong = []
    for name in sources():
        folder = folder_of(name)
        allowed = MAY_INCLUDE[folder] + (WORKER_MAY_INCLUDE if "/worker." in name else [])
        wrong += [f"{name} includes {path}" for ours, path in includes(name)
                  if ours and folder_of(path) != folder
                  and not any(path.startswith(start) for start in allowed)]
    assert not wrong


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_stays_in_the_files_that_need_it(library):
    users = [name for name in sources()
             if any(not ours and re.fullmatch(library, path) for ours, path in includes(name))]
    assert users, "nobody uses it: the pattern is wrong"
    assert not [name for name in users
                if not any(name.startswith(allowed) for allowed in LIBRARIES[library])]


def reached(name, seen):
    """Every header that including this file brings in, the libraries' own by their name."""
    for ours, path in includes(name):
        if path in seen:
            continue
        seen.add(path)
        if ours and (ROOT / path).exists():
            reached(path, seen)
    return seen


def test_messages_and_rings_never_see_the_web_server():
    pure = [name for name in sources()
            if name.startswith(("common/", "gateway/backplane/"))
            or (name.startswith("gateway/hub/") and name.endswith(".h"))]
    assert not [name for name in pure if "h2o.h" in reached(name, set())]


def test_no_header_includes_itself_round_a_corner():
    assert not [name for name in sources()
                if name.endswith(".h") and name in reached(name, set())]


def test_every_file_includes_its_own_header_first():
    wrong = []
    for name in sources():
        header = name[:-1] + "h"
        if name.endswith(".c") and (ROOT / header).exists():
            first = INCLUDE.search((ROOT / name).read_text())
            if first is None or first[2] != header:
                wrong.append(name)
    assert not wrong


def test_files_stay_readable():
    """Under 400 lines; a table of rows may be longer."""
    long_files = {name: len((ROOT / name).read_text().splitlines()) for name in sources()}
    assert not {name: lines for name, lines in long_files.items() if lines > 400}
