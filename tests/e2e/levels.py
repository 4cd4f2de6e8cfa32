"""Which run has which tests: `--level=static|quick|gate|night|peers`. README.md of tests/ says what belongs where.

A module is of the gate unless it stands here, or its mark `static` or `current` says otherwise.
"""

import pytest

# Of `./run test` and of the gate: the promises that a change breaks first.
QUICK = """
    test_bad_metrics test_deaths test_events test_exec test_groups test_http test_log test_mapping test_mixed_job test_pipe
    test_progress test_quarantine test_reload test_retire test_run_mode test_scrape_formats test_supervisor
    test_supervisor_command test_supervisor_signals test_survival test_worker_metrics
""".split()

# Of the night, and why.
NIGHT = {
    "real torch": "test_docs test_origins test_stragglers test_torch test_torch_hooks test_torch_ranks test_torchrun",
    "long forms in a browser": "test_page test_page_jobs test_page_machine test_page_names test_page_phone test_page_views test_page_waits",
    "databases and days in real time": "test_alerts_day test_dashboards_data test_elastic_job test_remote_write_databases test_remote_write_faults",
    "promtool's hours, of the gate if config/prometheus changes": "test_alert_matrix test_prometheus_config",
    "builds of other programs": "test_consumer test_consumer_builds test_python_wheel test_reference",
    "tools": "test_bench test_mutate test_remote_write_receiver test_run_script test_screens_costs test_simulate",
}
_OF_THE_NIGHT = {module for modules in NIGHT.values() for module in modules.split()}

# Those in which a PushGateway, a Prometheus or a VictoriaMetrics takes part: `./run peers-test` gives them current releases.
PEERS = """
    test_alerts_day test_bad_metrics test_created_timestamps test_current_prometheus test_dashboards_data test_demo_job test_gateway
    test_groups test_mapping test_mixed_job test_native_histograms test_prometheus_alerts test_prometheus_config
    test_prometheus_discovery test_quarantine test_reload test_remote_write test_remote_write_databases test_remote_write_stanza
    test_retire test_scrape_formats test_short_processes test_survival test_tls test_worker_metrics
""".split()


def add_option(parser):
    parser.addoption("--level", choices=("static", "quick", "gate", "night", "peers"), help="only the tests of a level (levels.py)")


def pytest_configure(config):
    config.addinivalue_line("markers", "static: needs neither a build nor a server")
    config.addinivalue_line("markers", "night: of the night, though its module is of the gate")
    config.addinivalue_line("markers", "current: needs the releases that ./run peers builds")


def _levels(item):
    module = item.path.stem
    if item.get_closest_marker("static"):
        return {"static"}
    if item.get_closest_marker("current"):
        return {"peers"}
    peers = {"peers"} if module in PEERS else set()
    if module in _OF_THE_NIGHT or item.get_closest_marker("night"):
        return {"night"} | peers
    # A machine that runs only ./run test has no browser.
    quick = {"quick"} if module in QUICK and "browse" not in item.fixturenames else set()
    return {"gate"} | peers | quick


def pytest_collection_modifyitems(config, items):
    level = config.getoption("--level")
    if level is None:
        return
    left = [item for item in items if level not in _levels(item)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if level in _levels(item)]
    modules = {item.path.stem for item in items} | {item.path.stem for item in left}
    if len(modules) > len(_OF_THE_NIGHT) and (gone := sorted((_OF_THE_NIGHT | {*QUICK, *PEERS}) - modules)):
        raise pytest.UsageError(f"levels.py names modules that are not there: {', '.join(gone)}")
