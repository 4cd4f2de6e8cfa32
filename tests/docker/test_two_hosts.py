"""A job whose roles share no memory: two containers, each under `exec`, and one gateway."""

from job import JOB, CountedJob, groups


def test_two_agents_push_one_job(project, tmp_path):
    job = CountedJob(tmp_path / "reports")
    hosts = project("tests/docker/two_hosts.yml", REPORTS=str(tmp_path / "reports"))
    hosts.up()
    for name in ("near", "far"):
        container = hosts.container(name)
        assert container.wait() == 0, container.logs()
    job.wait_until_counts_agree(hosts)
    labels = [group["labels"] for group in groups(hosts) if group["labels"].get("job") == JOB]
    addresses = {role: {each["ip_addr"] for each in labels if each["role"] == role} for role in ("trainer", "data_compose", "server")}
    assert addresses["trainer"] | addresses["data_compose"] == addresses["server"] and len(addresses["server"]) == 2
