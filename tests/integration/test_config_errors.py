"""What the built programs say to a configuration that is wrong: exit code 2, and file, line, key and
what is allowed."""

import os
import pathlib
import re
import socket
import subprocess

import pytest
import yaml

from cluster import BIN

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "s3cret-of-the-test"


def run(*arguments, program="tidecast-gateway", environment=None):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDECAST_")}
    return subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True,
                          timeout=20, check=False, env=clean | (environment or {}))


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "wrong.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path
    return write


# name: text, line, what the message names, what it says is allowed
WRONG = {
    "unknown_key": ("gateway:\n  worker: 4\n", 2, "gateway.worker", "allowed: listen, workers"),
    "unknown_section": ("gatewy:\n  workers: 4\n", 1, "gatewy", "allowed: log, gateway"),
    "wrong_type_text_for_number": ("gateway:\n  workers: many\n", 2, "gateway.workers",
                                   "allowed: 0 to 256"),
    "wrong_type_list_for_map": ("gateway: [1]\n", 1, "gateway", "allowed: listen, workers"),
    "wrong_type_map_for_value": ("gateway:\n  workers: {a: 1}\n", 2, "gateway.workers", "0 to 256"),
    "out_of_range": ("log:\n  level: info\ngateway:\n  workers: 257\n", 4, "gateway.workers",
                     "allowed: 0 to 256"),
    "negative": ("gateway:\n  max_connections: -1\n", 2, "gateway.max_connections",
                 "0 to 10000000"),
    "too_big_for_64_bits": ("gateway:\n  max_connections: 18446744073709551617\n", 2,
                            "gateway.max_connections", "0 to 10000000"),
    "below_the_range_of_a_duration": ("gateway:\n  heartbeat: 999ms\n", 2, "gateway.heartbeat",
                                      "1s to 1h"),
    "no_unit": ("gateway:\n  heartbeat: 15\n", 2, "gateway.heartbeat", "1s to 1h"),
    "not_one_of_its_values": ("log:\n  level: loud\n", 2, "log.level", "error, warn, info, debug"),
    "not_built_yet": ("namespaces:\n  chat:\n    overflow: conflate\n", 3,
                      "namespaces.chat.overflow", "disconnect"),
    "duplicate": ("gateway:\n  workers: 3\n  workers: 4\n", 3, "gateway.workers", "line 2"),
    "duplicate_section": ("log:\n  level: info\nlog:\n  level: warn\n", 3, "log", "line 1"),
    "alias": ("gateway: &a\n  workers: 3\nredis: *a\n", 1, "alias", "not allowed"),
    "two_documents": ("log:\n  level: info\n---\nlog:\n  level: warn\n", 3, "document",
                      "not allowed"),
    "tab": ("gateway:\n\tworkers: 1\n", 2, "character", ""),
    "not_utf8": (b"log:\n  level: \xff\n", 2, "", ""),
    "retry_upside_down": ("gateway:\n  retry_min: 5s\n  retry_max: 2s\n", None, "gateway.retry_max",
                          "at least 5000ms"),
    "unix_socket_path_too_long": (f"redis:\n  address: unix:/{'a' * 107}\n", 2, "redis.address",
                                  "at most 107 bytes"),
    "prefix_without_colon": ("redis:\n  prefix: tide\n", 2, "redis.prefix", "colon"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_told_by_line_key_and_what_is_allowed(written, name):
    text, line, key, allowed = WRONG[name]
    path = written(text)
    for option in ([], ["--check-config"], ["--print-config"]):
        done = run("--config", path, *option)
        assert (done.returncode, done.stdout) == (2, "")
        place = f"{path}:{line}: " if line else ""
        first = done.stderr.splitlines()[0]
        assert first.startswith(place) and key in first and allowed in first, first


def test_the_broker_reads_the_same_file_the_same_way(written):
    path = written(WRONG["unknown_key"][0])
    done = run("--config", path, program="tidecast-broker")
    assert done.returncode == 2 and done.stderr.startswith(f"{path}:2: gateway.worker: ")


def test_a_missing_file_is_no_empty_file(tmp_path):
    done = run("--config", tmp_path / "none.yaml")
    assert done.returncode == 2
    assert done.stderr == f"{tmp_path}/none.yaml: can't be read: No such file or directory\n"


def test_a_directory_is_no_file(tmp_path):
    done = run("--config", tmp_path)
    assert done.returncode == 2 and str(tmp_path) in done.stderr


@pytest.mark.parametrize("where", ["--set", "TIDECAST_GATEWAY_WORKERS"])
def test_overrides_are_checked_like_the_file(where):
    if where == "--set":
        done = run("--set", "gateway.workers=x")
    else:
        done = run(environment={where: "x"})
    assert done.returncode == 2
    assert re.match(rf'{where}: gateway.workers: "x" .*allowed: 0 to 256', done.stderr)


def test_a_misspelt_variable_is_not_ignored():
    done = run("--check-config", environment={"TIDECAST_GATEWAY_WORKRES": "2"})
    assert done.returncode == 2 and "TIDECAST_GATEWAY_WORKRES" in done.stderr


def test_later_settings_win(written):
    path = written("gateway:\n  workers: 3\n  heartbeat: 20s\n  retry_max: 30s\n")
    done = run("--config", path, "--set", "gateway.workers=5", "--print-config",
               environment={"TIDECAST_GATEWAY_WORKERS": "4", "TIDECAST_GATEWAY_HEARTBEAT": "10s"})
    gateway = yaml.safe_load(done.stdout)["gateway"]
    assert (gateway["workers"], gateway["heartbeat"], gateway["retry_max"]) == (5, "10s", "30s")


def test_what_is_printed_can_be_read_again(written):
    printed = run("--config", ROOT / "config.yaml", "--print-config").stdout
    assert run("--config", written(printed), "--print-config").stdout == printed


def test_a_good_file_is_said_to_be_good():
    done = run("--config", ROOT / "config.yaml", "--check-config")
    assert (done.returncode, done.stdout, done.stderr) == (0, "config ok\n", "")


def secret_in(where, tmp_path):
    """Arguments and environment that set the password in one of the three ways."""
    path = tmp_path / "password"
    path.write_text(SECRET + "\n")
    config = tmp_path / "with-secret.yaml"
    config.write_text(f"redis:\n  password: {SECRET}\n")
    return {"file": (["--set", f"redis.password_file={path}"], {}),
            "environment": ([], {"TIDECAST_REDIS_PASSWORD": SECRET}),
            "config": (["--config", str(config)], {})}[where]


@pytest.mark.parametrize("where", ["file", "environment", "config"])
def test_a_password_is_never_printed(tmp_path, where):
    arguments, environment = secret_in(where, tmp_path)
    done = run(*arguments, "--print-config", environment=environment)
    assert done.returncode == 0 and SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("text", [f'redis:\n  password: "{SECRET}\\nb"\n',
                                  f"redis:\n  password: [{SECRET}]\n",
                                  f"redis:\n  pasword: {SECRET}\n"])
def test_a_wrong_password_setting_is_not_quoted(written, text):
    done = run("--config", written(text))
    assert done.returncode == 2 and SECRET not in done.stderr


def test_a_password_on_a_wrong_command_line_is_not_quoted():
    for arguments in ([f"--redis.password={SECRET}"], ["--set", f"redis.pasword={SECRET}"],
                      ["redis.password", SECRET], ["--set", f"redis.password={SECRET}\nb"]):
        done = run(*arguments)
        assert done.returncode == 2 and SECRET not in done.stderr + done.stdout, arguments


def test_a_port_that_is_taken_ends_with_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--set", f"gateway.listen=127.0.0.1:{port}", "--set", "admin.listen=",
                   "--set", "gateway.backplane=memory")
    assert done.returncode == 1 and "Address already in use" in done.stderr and str(port) in done.stderr
