"""Fixtures of the tests on a real Docker engine: the images, and compose projects that leave nothing behind."""

import os
import sys
import uuid
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "examples/demo"), str(TESTS / "e2e")]

import images as images_of_tests  # noqa: E402
from engine import Project, docker  # noqa: E402


@pytest.fixture(scope="session")
def images():
    """The images that the compose files name, all in the engine: image by service's kind (images.py)."""
    return images_of_tests.make()


@pytest.fixture(scope="module")
def project(images, tmp_path_factory):
    """Creates compose projects: project("docker-compose.yml"). After the module's tests their containers, networks and volumes are
    removed."""
    made = []

    def create(*files, **environment):
        name = f"persia-test-{uuid.uuid4().hex[:8]}"
        directory = tmp_path_factory.mktemp("project")
        made.append(Project(name, *files, directory=directory, environment={**os.environ, **environment}))
        return made[-1]

    yield create
    for each in made:
        each.down(volumes=True)


@pytest.fixture
def container(images):
    """Starts a container: container(image, *command, options=[...]) gives its id. It is removed after the test."""
    started = []

    def run(image, *command, options=()):
        started.append(docker("run", "--detach", *options, image, *command))
        return started[-1]

    yield run
    for identity in started:
        docker("rm", "--force", "--volumes", identity)
