"""The documents say what the code says: every setting, error code, metric and link."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

# Where an error code that somebody is told stands in the code.
CODES_OF = {
    "gateway/door/*.c": [r'reply_(?:error|refusal)\([^;]*?\d{3},\s*"([a-z_]+)"',
                         r'check_name\([^;]*?"(bad_[a-z_]+)"\)',
                         r'refuse_handshake[^;]*?reply_refusal\([^;]*?"([a-z_]+)"'],
    "gateway/acceptor.c": [r'refuse\([^;"]*"([a-z_]+)"\)'],
    "gateway/backplane/admission.c": [r'return "(payload_[a-z0-9_]+)"'],
    "gateway/backplane/publisher.c": [r'\{"([a-z0-9_]+)",\s*\d{3}\}',
                                      r'\{"[^"]+", "([a-z_]+)", "',
                                      r'503,\s*"([a-z_]+)"',
                                      r'up \? "([a-z_]+)"',
                                      r'up \? "[a-z_]+" : "([a-z_]+)"'],
    "gateway/transport/ws_command.c": [r'\[WS_COMMAND_(?!OK)[A-Z_]+\] = "([a-z_]+)"'],
    "gateway/transport/ws_dispatch.c": [r'answer_error\([^;"]*"([a-z_]+)"'],
    "broker/functions.lua": [r"refuse\('([a-z0-9_]+)'"],
    "deploy/haproxy.cfg": [r'"error":"([a-z_]+)"'],
}


def text_of(name):
    return (ROOT / name).read_text()


def settings():
    """(key, default, help, allowed) of each setting in config.yaml."""
    rows, sections, comment = [], [], ""
    for line in text_of("config.yaml").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        words = line.strip()
        if words.startswith("#"):
            comment = words[1:].strip()
            continue
        name, _, value = words.partition(":")
        sections = [*sections[:depth], name]
        if value:
            key = ".".join(sections).replace("namespaces.default.", "namespaces.<name>.")
            help_text, allowed = re.fullmatch(r"(.*) \((.*)\)", comment).groups()
            rows.append((key, value.strip().strip('"'), help_text, allowed))
    return rows


def setting_row(key, default, help_text, allowed):
    shown = f"`{default}`" if default else "empty"
    return f"| `{key}` | {shown} | {help_text} | {allowed} |"


def tick_fields():
    table = re.search(r"tick_keys\[\] = \{(.*?)\n\};", text_of("common/config_table.c"), re.S)[1]
    return re.findall(r'KEY\("(\w+)"', table)


def codes():
    found = {}
    for pattern, expressions in CODES_OF.items():
        for path in ROOT.glob(pattern):
            for expression in expressions:
                for code in re.findall(expression, path.read_text(), re.S):
                    found.setdefault(code, path.name)
    return found


def samples():
    """(kind, metric, label, value) of each row of STATS_TABLE; empty where there is no label."""
    table = text_of("common/stats.h").replace("\\\n", " ")
    rows = re.findall(r'X\((GAUGE|COUNTER),\s*\w+,\s*"(\w+)",\s*"((?:[^"\\]|\\.)*)"', table)
    for kind, metric, labels in rows:
        label, _, value = labels.replace('\\"', "").partition("=")
        yield kind, metric, label, value


def log_events():
    for folder in ("gateway", "broker", "common"):
        for path in ROOT.glob(f"{folder}/**/*.c"):
            yield from re.findall(r'log_(?:error|warn|info|errno)\(\s*"(\w+)', path.read_text())


def anchors(markdown):
    """The fragments that a page's headings make, as GitHub makes them."""
    for heading in re.findall(r"^#+ (.*)$", markdown, re.M):
        text = re.sub(r"[^\w\- ]", "", heading.lower())
        yield text.replace(" ", "-")


def without_code(markdown):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", markdown, flags=re.S | re.M))


def test_the_readme_lists_every_setting_with_its_default():
    lines = text_of("README.md").splitlines()
    missing = [row for row in map(lambda s: setting_row(*s), settings()) if row not in lines]
    assert not missing, "\n".join(missing)


def test_the_readme_lists_no_setting_that_is_not_there():
    listed = re.findall(r"^\| `([a-z_]+\.[a-z_.<>]+)` \|", text_of("README.md"), re.M)
    assert listed == [row[0] for row in settings()]


def test_the_fields_of_a_tick_are_described():
    table = text_of("docs/operations.md")
    assert [name for name in tick_fields() if f"| `{name}` |" not in table] == []


def test_the_protocol_names_every_error_code():
    found = codes()
    assert len(found) > 40, "the expressions no longer find the codes"
    protocol = text_of("docs/protocol.md")
    assert {code: at for code, at in found.items() if f"`{code}`" not in protocol} == {}


def test_the_protocol_names_no_error_code_that_is_not_there():
    listed = re.findall(r"^\| (?:`\d{3}`|\d{3}) \| `([a-z0-9_]+)` \|", text_of("docs/protocol.md"),
                        re.M)
    assert listed and [code for code in listed if code not in codes()] == []


def test_the_protocol_names_every_metric_and_its_labels():
    section = text_of("docs/protocol.md").partition("## Metrics\n")[2]
    table = dict(re.findall(r"^\| `(tidecast_\w+)` \|(.*)$", section, re.M))
    known = set()
    for kind, metric, label, value in samples():
        name = metric + ("_total" if kind == "COUNTER" else "")
        known.add(name)
        row = table.get(name, "")
        assert f" {kind.lower()} |" in row, f"{name} is a {kind.lower()}"
        is_listed = f"`{label}`" in row and f"`{value}`" in row
        assert is_listed or not label, f"{name}: {label}={value}"
    assert set(table) == known


def test_operators_are_told_of_every_log_event():
    events = set(log_events())
    assert len(events) > 30, "the expression no longer finds the events"
    section = text_of("docs/operations.md").partition("## Logs\n")[2]
    assert {event for event in events if f"`{event}`" not in section} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_within_the_project_leads_somewhere(document):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(document.read_text())):
        if re.match(r"\w+:", target):
            continue
        name, _, fragment = target.partition("#")
        page = document.parent / name if name else document
        if not page.exists():
            broken.append(target)
        elif fragment and fragment not in anchors(page.read_text()):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_is_named_is_there(document):
    """A path in backticks that begins with one of the project's folders."""
    named = re.findall(r"`((?:gateway|broker|common|deploy|tests|docs)/[\w./-]*)[^`]*`",
                       document.read_text())
    gone = [name for name in named if not list(ROOT.glob(name.rstrip("/") + "*"))]
    assert not gone
