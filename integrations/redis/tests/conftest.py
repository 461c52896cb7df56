"""A user and a prefix of its own for each test, on the server that ADJUDGE_REDIS_URL names."""

import os
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest
import redis


@pytest.fixture(scope="session")
def url():
    """Name the server, which has to be there: nothing here is skipped."""
    found = os.environ.get("ADJUDGE_REDIS_URL")
    if not found:
        pytest.fail(
            "ADJUDGE_REDIS_URL is not set. Run `.ci/redis pytest integrations/redis`, which starts "
            "a server, or set it to the URL of one."
        )
    return found


@pytest.fixture
def server(url):
    """Give a client of the server, past any ledger or store."""
    with redis.Redis.from_url(url) as client:
        yield client


@pytest.fixture
def prefix(server):
    """Name a prefix under which there is nothing yet."""
    name = f"adjudge-test-{uuid4().hex}"
    yield name
    for key in server.scan_iter(f"{name}*"):
        server.delete(key)


@pytest.fixture
def user(server, prefix):
    """Name a user who may do what the guide says, under the prefix alone."""
    name = prefix.rpartition("-")[2]
    commands = "+eval +exists +hget +hmget +hset +hdel +hsetnx +hgetall +hlen +lrange +rpush"
    server.execute_command(
        "ACL", "SETUSER", name, "on", ">secret", f"~{prefix}:*", *commands.split(), "+config|get"
    )
    yield name
    server.execute_command("ACL", "DELUSER", name)


@pytest.fixture
def as_user(url, user):
    """Give the URL of the server for that user."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:secret@{host}"))
