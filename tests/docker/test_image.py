"""The image persia-metrics, run by `docker run`."""

import compileall
import ssl
import urllib.request

import images as images_of_tests
import pytest
from engine import DockerError, docker, inspect, run
from servers import ROOT, fetch, wait_until
from tls import Authority

MEGABYTE = 1_000_000
BASE = images_of_tests.base_image()


@pytest.fixture
def agent_image(images):
    return images["persia-metrics"]


@pytest.fixture
def demo_image(images):
    return images["persia-metrics-demo"]


def published(identity, port=19091):
    """Where a port of a container is reached, by http."""
    (binding,) = inspect(identity)["NetworkSettings"]["Ports"][f"{port}/tcp"]
    return f"127.0.0.1:{binding['HostPort']}"


def output(image, *command, options=()):
    """The output of a container that must succeed."""
    return docker("run", "--rm", *options, image, *command)


def test_the_agents_image_adds_less_than_40_megabytes_to_its_base(agent_image):
    assert images_of_tests.size(agent_image) - images_of_tests.size(BASE) < 40 * MEGABYTE


def test_a_build_sees_only_what_git_tracks(tmp_path):
    """Anything else, such as Python's caches, would make the layers of each clone anew."""
    compileall.compile_dir(ROOT / "lib/python", maxlevels=0, quiet=1)
    (tmp_path / "Dockerfile").write_text('FROM scratch\nCOPY . /context\nCMD ["none"]\n')
    image = docker("build", "--quiet", "--file", tmp_path / "Dockerfile", ROOT).splitlines()[0]
    identity = docker("create", image)
    try:
        docker("cp", f"{identity}:/context", tmp_path)
    finally:
        docker("rm", identity)
        docker("image", "rm", image)
    seen = {str(path.relative_to(tmp_path / "context")) for path in (tmp_path / "context").rglob("*") if path.is_file()}
    assert "agent/CMakeLists.txt" in seen
    assert seen - set(run(["git", "-C", ROOT, "ls-files"])[1].splitlines()) == set()


def test_image_says_what_it_is(agent_image):
    config = inspect(agent_image, "image")["Config"]
    assert config["Entrypoint"] == ["persia-metrics-agent"]
    assert config["User"] == "10001:10001"
    assert list(config["ExposedPorts"]) == ["19091/tcp"]
    version = output(agent_image, "--version").split()[1]
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["Labels"].items()}
    assert (labels["title"], labels["version"]) == ("persia-metrics", version) and labels["description"]


def test_image_has_no_health_check_that_a_training_image_would_inherit(agent_image, demo_image):
    assert all("Healthcheck" not in inspect(image, "image")["Config"] for image in (agent_image, demo_image))


def test_only_the_demos_image_has_the_job_and_neither_has_a_compiler(agent_image, demo_image):
    look = ("-c", "for program in embedding_job g++ cmake; do command -v $program; done; true")
    assert output(agent_image, *look, options=["--entrypoint=sh"]) == ""
    assert output(demo_image, *look, options=["--entrypoint=sh"]) == "/usr/local/bin/embedding_job"


def test_commands_are_the_agents(agent_image):
    assert "\nUsage: persia-metrics-agent" in output(agent_image)
    assert "torchelastic_worker_group_flakiness_ratio" in output(agent_image, "explain", "torchelastic/workers.trainer.flakiness")
    settings = ["--volume", f"{ROOT}/config/global_config.yaml:/global_config.yaml:ro,z"]
    assert "dlrm_v1.0" in output(agent_image, "check-config", "--config=/global_config.yaml", options=settings)


@pytest.mark.parametrize("user", ["10001:10001", "0:0", "65534:65534", "4242:4242"])
def test_any_user_runs_the_agent_confined(agent_image, container, user):
    confined = ["--user", user, "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    agent = container(agent_image, "run", "--listen=:19091", "--gateway=off", options=[*confined, "--publish=127.0.0.1::19091"])
    url = f"http://{published(agent)}"
    wait_until(lambda: fetch(url + "/-/ready")[0] == 200, f"an agent of user {user}")
    assert "persia_agent_build_info" in fetch(url + "/metrics")[1]
    assert run(["docker", "exec", agent, "persia-metrics-healthcheck"])[0] == 0
    docker("stop", agent)
    assert inspect(agent)["State"]["ExitCode"] == 0


def test_pages_are_served_by_ipv6_and_ipv4(agent_image, container):
    options = ["--sysctl=net.ipv6.conf.all.disable_ipv6=0", "--publish=127.0.0.1::19091"]
    agent = container(agent_image, "run", "--listen=[::]:19091", "--gateway=off", options=options)
    wait_until(lambda: fetch(f"http://{published(agent)}/-/ready")[0] == 200, "the agent's page by IPv4")
    assert run(["docker", "exec", agent, "persia-metrics-healthcheck", "[::1]:19091"])[0] == 0


def test_exec_runs_a_job_and_has_its_exit_code(demo_image):
    assert "listens on" in run(["docker", "run", "--rm", demo_image, "exec", "--gateway=off", "--", "embedding_job", "--duration=2"])[2]
    assert run(["docker", "run", "--rm", demo_image, "exec", "--gateway=off", "--", "sh", "-c", "exit 7"], check=False)[0] == 7


@pytest.mark.parametrize(
    "trouble",
    [["--env=PERSIA_METRICS_ENABLED=0"], ["--env=PERSIA_METRICS_LISTEN_ADDR=192.0.2.1:19091"], ["--env=PERSIA_METRICS_PUSH_INTERVAL=never"]],
    ids=["metrics-off", "cannot-bind", "wrong-setting"],
)
def test_trouble_of_the_metrics_is_no_trouble_of_the_job(demo_image, container, trouble):
    job = container(demo_image, "exec", "--gateway=off", "--", "embedding_job", "--duration=2", options=trouble)
    assert docker("wait", job) == "0", run(["docker", "logs", job])
    assert "Health" not in inspect(job)["State"]


def test_health_check_fails_without_an_agent(agent_image):
    with pytest.raises(DockerError, match="exit code 1"):
        output(agent_image, options=["--entrypoint=persia-metrics-healthcheck"])


@pytest.fixture
def authority(tmp_path):
    tmp_path.chmod(0o755)
    return Authority(tmp_path)


def readable(*files):
    for file in files:
        file.chmod(0o644)


def test_pages_are_served_by_tls(agent_image, container, authority):
    readable(*authority.issue("agent", "IP:127.0.0.1"))
    (authority.directory / "web.yml").write_text("tls_server_config: {cert_file: agent.pem, key_file: agent.key}\n")
    serve = ["run", "--listen=:19091", "--gateway=off", "--web.config.file=/tls/web.yml"]
    agent = container(
        agent_image, *serve, options=["--volume", f"{authority.directory}:/tls:ro,z", "--publish=127.0.0.1::19091"]
    )
    page = f"https://{published(agent, 19091)}/-/healthy"
    context = ssl.create_default_context(cafile=authority.file)

    def healthy():
        with urllib.request.urlopen(page, timeout=10, context=context) as answer:
            return answer.read() == b"Healthy.\n"

    wait_until(healthy, "the page by TLS")


def test_gateway_behind_tls_is_verified_by_the_images_certificates(agent_image, images, container, authority):
    assert int(output(agent_image, "-c", "BEGIN CERT", "/etc/ssl/certs/ca-certificates.crt", options=["--entrypoint=grep"])) > 100
    readable(*authority.issue("gateway", "DNS:gateway"))
    (authority.directory / "web.yml").write_text("tls_server_config: {cert_file: gateway.pem, key_file: gateway.key}\n")
    tls = f"{authority.directory}:/tls:ro,z"
    gateway = container(
        images["prom/pushgateway"], "--web.config.file=/tls/web.yml", options=["--volume", tls, "--publish=127.0.0.1::9091"]
    )
    push = ["run", "--gateway=https://gateway:9091", "--job=tls", "--push-interval=0.5"]
    link = ["--link", f"{gateway}:gateway"]
    refused = container(agent_image, *push, options=link)
    wait_until(lambda: "certificate" in "".join(run(["docker", "logs", refused])[1:]), "an error that names the certificate")
    # As in an image that adds an authority to the system's.
    trusted = ["--volume", f"{authority.file}:/etc/ssl/certs/ca-certificates.crt:ro,z"]
    container(agent_image, *push, options=[*link, *trusted])
    context = ssl.create_default_context(cafile=authority.file)
    context.check_hostname = False

    def pushed():
        with urllib.request.urlopen(f"https://{published(gateway, 9091)}/metrics", timeout=5, context=context) as answer:
            return 'job="tls"' in answer.read().decode()

    wait_until(pushed, "the job on the gateway")
