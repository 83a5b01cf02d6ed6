"""The image's scripts, as far as they can be tried without a container engine; docs/scaling.md says how to build it."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """What launch/docker.sh gives to Docker."""
    environment = os.environ | {"DOCKER": "echo", "RUNS": str(tmp_path / "new runs"), "SHM_SIZE": "3g"}
    command = ["launch/docker.sh", "train", "--env=my_way_home_train"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return result.stdout.split(" ")


def test_docker_script_passes_what_a_training_needs(words: list[str], tmp_path: Path) -> None:
    assert (tmp_path / "new runs").is_dir()
    line = " ".join(words)
    assert line.startswith("run --rm --shm-size=3g ")
    assert f"--user {os.getuid()}:{os.getgid()} " in line
    assert f"--volume {tmp_path}/new runs:/work/train_dir " in line
    assert line.endswith("sf-explore-go train --env=my_way_home_train\n")


def test_compose_file_has_a_trainer_and_tensorboard_on_the_same_runs() -> None:
    services = yaml.safe_load(Path("launch/compose.yaml").read_text())["services"]
    runs = services["trainer"]["volumes"][0]
    assert runs.endswith(":/work/train_dir")
    assert services["tensorboard"]["volumes"] == [f"{runs}:ro"]
    assert {service["image"] for service in services.values()} == {"${IMAGE:-sf-explore-go}"}
    assert services["trainer"]["shm_size"]
    gpu = yaml.safe_load(Path("launch/compose.gpu.yaml").read_text())["services"]
    assert set(gpu) <= set(services)


def test_everything_the_dockerfile_copies_exists_and_is_not_ignored() -> None:
    allowed = [line[1:] for line in Path(".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert all(Path(name).exists() for name in allowed)
    for line in Path("Dockerfile").read_text().splitlines():
        words = [word for word in line.split() if not word.startswith("--")]
        if words[:1] == ["COPY"] and words[1] != ".":
            assert set(words[1:-1]) <= set(allowed)
