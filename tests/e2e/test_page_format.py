"""The page's numbers and times as text."""

TEXTS = {
    "number(0)": "0",
    "number(0.00012)": "1.2e-4",
    "number(0.25)": "0.25",
    "number(9.876)": "9.88",
    "number(12.345)": "12.3",
    "number(-999)": "-999",
    "number(1500)": "1.5 k",
    "number(2e6)": "2 M",
    "number(NaN)": "–",
    "number(null)": "–",
    "number(Infinity)": "∞",
    "number(-Infinity)": "-∞",
    "number(0, 'seconds')": "0 s",
    "number(2e-9, 'seconds')": "2 ns",
    "number(0.0015, 'seconds')": "1.5 ms",
    "number(119, 'seconds')": "119 s",
    "number(150, 'seconds')": "2.5 min",
    "number(7200, 'seconds')": "2 h",
    "number(172800, 'seconds')": "2 d",
    "number(1023, 'bytes')": "1023 B",
    "number(2048, 'bytes')": "2 KiB",
    "number(3 * 1024 ** 3, 'bytes')": "3 GiB",
    "number(0.5, 'ratio')": "50 %",
    "number(5, '', true)": "5 /s",
    "number(1500, '', true)": "1.5 k/s",
    "number(2048, 'bytes', true)": "2 KiB/s",
    "duration(0.9)": "0 s",
    "duration(119)": "119 s",
    "duration(120)": "2 min",
    "duration(7199)": "119 min",
    "duration(7200)": "2 h",
    "duration(172799)": "47 h",
    "duration(172800)": "2 d",
    "ago(null)": "–",
    "ago(0.5)": "now",
    "ago(61)": "61 s ago",
    "unitOf('step_seconds', '')": "seconds",
    "unitOf('step_seconds_total', '')": "seconds",
    "unitOf('lookup_rpc_time_cost_sec', '')": "seconds",
    "unitOf('last_save_timestamp_seconds', '')": "time",
    "unitOf('cache_bytes_max', '')": "bytes",
    "unitOf('cache', 'bytes')": "bytes",
    "unitOf('hit_ratio', '')": "ratio",
    "unitOf('loss', '')": "",
    "number(1.5, 'time')": "00:00:01",
    "ticks(0, 10, 5, '').map(({ v, label }) => `${v}:${label}`).join()": "0:0,2:2,4:4,6:6,8:8,10:10",
    "ticks(0, 0.3, 3, 'seconds').map(({ label }) => label).join()": "0,100 ms,200 ms,300 ms",
    "ticks(-3000, 3000, 3, '', true).map(({ label }) => label).join()": "-2 k/s,0,2 k/s",
    "ticks(5, 5, 4, '').length": 0,
}


def test_each_number_and_time_has_its_text(job, browse):
    browser = browse(job.agent().url)
    browser.tell("Emulation.setTimezoneOverride", timezoneId="UTC")
    shown = browser.run(
        f"return import('/assets/format.js').then(({{ number, duration, ago, unitOf, ticks }}) => [{', '.join(TEXTS)}])"
    )
    assert dict(zip(TEXTS, shown)) == TEXTS
