"""The named pipe of Benchmark AI's emit: changing writers, bad lines, killed agents, and a job's last values."""

import json
import signal
import stat
import sys
import threading

import pytest
from servers import wait_until

@pytest.fixture
def fifo(tmp_path):
    return tmp_path / "benchmark-ai-fifo"


def emit(fifo, *metrics):
    """As Benchmark AI's client library: Python's json, one line per call."""
    with open(fifo, "w") as pipe:
        for line in metrics:
            pipe.write(json.dumps(line) + "\n")
            pipe.flush()


def wait_for_pipe(agent, fifo):
    wait_until(lambda: fifo.exists() and agent.metrics(), "the pipe and the agent's pages")


def lines(agent, result):
    return agent.metrics().one("persia_agent_fifo_lines_total", result=result)


def test_what_clients_emit_arrives_as_its_last_values(job, gateway, fifo):
    agent = job.agent(f"--fifo={fifo}")
    wait_for_pipe(agent, fifo)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    emit(fifo, {"alexnet.batchsize16.latency": 12.5}, {"alexnet.batchsize16.latency": 11.25, "alexnet.loss": float("nan")})
    emit(fifo, {"alexnet.success": 1}, {"alexnet.success": 1}, {"alexnet.duration.ms": 250})  # as @prof calls its own
    emit(fifo, {"alexnet.power": 10.5, "labels": {"gpu": "a100"}})
    gateway.wait_for("benchmarkai_alexnet_power", 10.5, gpu="a100")
    seen = gateway.metrics()
    assert seen.one("benchmarkai_alexnet_batchsize16_latency") == 11.25
    assert str(seen.one("benchmarkai_alexnet_loss")) == "nan"
    assert seen.one("benchmarkai_alexnet_success") == 1
    assert seen.one("benchmarkai_alexnet_duration_ms") == 250
    assert seen.one("benchmarkai_alexnet_loss", role="benchmarkai", instance="rep_0", job=job.name) is not None
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0
    assert not fifo.exists()


def test_a_million_lines_of_ten_writers_with_bad_ones_among_them(job, fifo):
    agent = job.agent(f"--fifo={fifo}", "--push-interval=1")
    wait_for_pipe(agent, fifo)
    writers, each, bad_every = 10, 100_000, 1000

    def write(number):
        good = f'{{"million.step": 1, "million.writer{number}": 2}}\n'.encode()
        chunk = b"".join(b"no JSON at all\n" if i % bad_every == 0 else good for i in range(each // 100))
        with open(fifo, "wb", buffering=0) as pipe:
            for _ in range(100):
                # At most PIPE_BUF bytes at a time, as emit does.
                for line in split(chunk):
                    pipe.write(line)

    def split(chunk):
        begin = 0
        while begin < len(chunk):
            end = chunk.rfind(b"\n", begin, begin + 4096) + 1
            yield chunk[begin:end]
            begin = end

    threads = [threading.Thread(target=write, args=(i,)) for i in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bad = writers * 100 * (each // 100 // bad_every)
    wait_until(lambda: lines(agent, "good") == writers * each - bad and lines(agent, "bad") == bad, "all lines to be counted", 60)
    assert agent.output().count("is not a JSON object") == 1
    assert '"no JSON at all"' in agent.output()


def test_nothing_is_lost_when_the_agent_is_killed_between(job, gateway, fifo, tmp_path):
    rules = tmp_path / "mapping.yaml"
    rules.write_text("mappings:\n- match: steps\n  group: benchmarkai\n  name: steps_total\n  type: counter\n")
    first = job.agent(f"--fifo={fifo}", f"--mapping-file={rules}")
    wait_for_pipe(first, fifo)
    emit(fifo, *[{"steps": 1}] * 30)
    wait_until(lambda: lines(first, "good") == 30, "the lines to be read")
    first.signal(signal.SIGKILL)
    first.wait()
    assert fifo.exists()
    second = job.agent(f"--fifo={fifo}", f"--mapping-file={rules}")
    wait_for_pipe(second, fifo)
    emit(fifo, *[{"steps": 1}] * 12)
    gateway.wait_for("steps_total", 42)


def test_a_command_finds_the_pipe_and_its_last_words_arrive(job, gateway, fifo):
    """The pipe is there when the command starts."""
    script = "import json, os\nassert os.environ['BENCHMARK_AI'] == 'fifo'\nopen(os.environ['BENCHMARK_AI_FIFO_FILEPATH'], 'w').write(json.dumps({'last.words': 7}) + '\\n')"
    flags = [f"--fifo={fifo}", "--push-interval=3600"]
    agent = job.exec(sys.executable, "-c", script, flags=flags)
    assert agent.wait() == 0, agent.output()
    gateway.wait_for("benchmarkai_last_words", 7)
    assert not list(job.segments.glob("*.seg"))
    assert not fifo.exists()


def test_an_agent_with_a_pipe_is_idle_when_its_workers_are(job, fifo):
    agent = job.agent(f"--fifo={fifo}", "--exit-when-idle=0.5s")
    wait_for_pipe(agent, fifo)
    emit(fifo, {"a": 1})
    worker = job.worker()
    worker.tell("count my_app batches 1")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 1, "the worker to be seen")
    assert agent.metrics().one("persia_agent_segments", state="live") == 1
    assert agent.metrics().one("persia_process_up", role="benchmarkai") is None
    worker.leave()
    assert agent.wait() == 0


def test_zero_bytes_in_names_and_labels_make_no_two_streams_one(job, fifo):
    agent = job.agent(f"--fifo={fifo}")
    wait_for_pipe(agent, fifo)
    emit(fifo, {"v": 1, "labels": {"a": "b"}}, {"v\0a\0b": 5}, {"u": 1, "labels": {"a": "b", "c": "d"}}, {"u": 7, "labels": {"a": "b\0c\0d"}})
    emit(fifo, {"last": 1})
    wait_until(lambda: agent.metrics().one("benchmarkai_last") == 1, "the values")
    seen = agent.metrics()
    assert seen.one("benchmarkai_v", a="b") == 1
    assert seen.one("benchmarkai_u", a="b", c="d") == 1


SHOW = 'echo "mode=$BENCHMARK_AI path=$BENCHMARK_AI_FIFO_FILEPATH"'


def test_what_is_no_pipe_stays_and_costs_the_pipe_alone(job, fifo):
    fifo.write_text("precious")
    said = f'named pipe "{fifo}": is not a named pipe'
    strict = job.agent(f"--fifo={fifo}", "--strict")
    assert strict.wait() == 1
    agent = job.agent(f"--fifo={fifo}")
    wait_until(lambda: agent.metrics().one("persia_agent_config_errors") == 1, "the error on /metrics")
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0
    command = job.exec("sh", "-c", SHOW, flags=[f"--fifo={fifo}"])
    assert command.wait() == 0
    assert "mode= path=\n" in command.output()
    for process in (strict, agent, command):
        assert said in process.output()
    assert fifo.read_text() == "precious"


def test_what_the_job_sets_itself_stays(job, fifo):
    command = job.exec("sh", "-c", SHOW, flags=[f"--fifo={fifo}"], env={"BENCHMARK_AI": "fifo", "BENCHMARK_AI_FIFO_FILEPATH": "/the/jobs/own"})
    assert command.wait() == 0
    assert "mode=fifo path=/the/jobs/own\n" in command.output()
    assert "the agent reads" in command.output()


def test_without_metrics_nobody_is_told_of_the_pipe(job, fifo):
    command = job.exec("sh", "-c", SHOW, flags=[f"--fifo={fifo}", "--enable-metrics=false"])
    assert command.wait() == 0
    assert "mode= path=\n" in command.output() and not fifo.exists()


def test_the_pipe_of_another_agent_is_found_if_it_is_read(job, fifo):
    first = job.agent(f"--fifo={fifo}")
    wait_for_pipe(first, fifo)
    second = job.exec("sh", "-c", SHOW, flags=[f"--fifo={fifo}"])
    assert second.wait() == 0 and f"mode=fifo path={fifo}\n" in second.output()
    unread = job.exec("sh", "-c", SHOW, flags=[f"--fifo={fifo}-2"])
    assert unread.wait() == 0 and "mode= path=\n" in unread.output()


def test_the_library_writes_what_the_agent_reads(job, gateway, fifo):
    """emit of the C++ library, in fifo mode, by a worker under the agent."""
    worker = job.exec_worker(f"--fifo={fifo}", env={"BENCHMARK_AI_FIFO_MAX_WAIT_TIME": "30"})
    worker.tell("emit cpp.latency 12.5")
    worker.tell("emit cpp.endless inf")
    gateway.wait_for("benchmarkai_cpp_latency", 12.5)
    gateway.wait_for("benchmarkai_cpp_endless", float("inf"))
    assert worker.leave() == 0
