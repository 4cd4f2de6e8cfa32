"""A headless Chromium for the tests of the agent's page. It can only connect to loopback.

The tests of a module share one browser, and each test starts in a new tab. Not thread-safe.
"""

import base64
import contextlib
import os
import subprocess
import tempfile
from urllib.parse import urlsplit

import urllib3
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chromium.remote_connection import ChromiumRemoteConnection
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.action_chains import ActionChains
from servers import Process, fetch, find_program, free_port, wait_until

FLAGS = (
    "--headless=new",
    "--force-prefers-reduced-motion",  # a smooth scroll ends at a moment that no test knows
    "--no-sandbox",  # root cannot use the sandbox; the only pages are our own
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers limit /dev/shm
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

# The browser reports violations of the page's security policy as events.
_WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""

# The driver and the browser are a process group, which ends when its standard input closes, even if the tests are killed.
_BOTH = 'trap : TERM; "$0" "$1" & shift; "$@" & cat >/dev/null; kill -KILL 0'

_GONE = (WebDriverException, urllib3.exceptions.HTTPError)


class Browser:
    def __init__(self, log):
        """`log`: a file for the output of the driver."""
        self.driver = self._process = None
        self._log = log

    def new_tab(self, width=1400, height=1200, scheme="light"):
        """Replaces all tabs by an empty one. Starts the browser if it is not running or does not answer."""
        try:
            self._replace_tabs()
        except _GONE:  # it crashed in an earlier test
            self.stop()
            self._start()
        # Script, size and colour scheme belong to a tab.
        self.tell("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
        self.resize(width, height)
        self.prefer(scheme)

    def _start(self):
        self.stop()  # one that did not answer in time
        # The browser is started here: the driver would connect to the name localhost, which a system without /etc/hosts cannot resolve.
        address, driver_port = f"127.0.0.1:{free_port()}", free_port()
        self._files = tempfile.TemporaryDirectory(prefix="persia-e2e-browser-", ignore_cleanup_errors=True)
        command = ["sh", "-c", _BOTH, find_program("chromedriver"), f"--port={driver_port}", find_program("chromium"), *FLAGS]
        command += [f"--remote-debugging-port={address.split(':')[1]}", f"--user-data-dir={self._files.name}/profile"]
        self._process = Process(command, self._log, env={**os.environ, "TMPDIR": self._files.name}, stdin=subprocess.PIPE)
        url = f"http://127.0.0.1:{driver_port}"
        wait_until(lambda: fetch(f"{url}/status")[0] == 200, "the browser's driver", 90)
        wait_until(lambda: fetch(f"http://{address}/json/version")[0] == 200, "the browser", 90)
        options = webdriver.ChromeOptions()
        options.debugger_address = address
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Remote(ChromiumRemoteConnection(url, "goog", "chrome"), options=options)
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(30)

    def _replace_tabs(self):
        if self.driver is None:
            self._start()
            return
        ActionBuilder(self.driver).clear_actions()
        earlier = self.driver.window_handles
        self.driver.switch_to.new_window("tab")
        latest = self.driver.current_window_handle
        for handle in earlier:
            self.driver.switch_to.window(handle)
            self.driver.close()
        self.driver.switch_to.window(latest)
        self.driver.get_log("browser")

    def leave(self):
        """Stops the page, so that it does not poll an agent that is gone."""
        if self.driver is not None:
            with contextlib.suppress(*_GONE):
                self.driver.get("about:blank")

    def stop(self):
        """Ends the browser and its driver."""
        if self.driver is not None:
            with contextlib.suppress(*_GONE):
                self.driver.quit()
            self.driver = None
        if self._process is not None:
            self._process.popen.stdin.close()
            self._process.stop()
            self._process = None
            self._files.cleanup()

    def tell(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self.driver.execute("executeCdpCommand", {"cmd": command, "params": parameters})["value"]

    def resize(self, width, height):
        """Sets the size of the viewport; a width below 500 is a phone."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def prefer(self, scheme):
        """Emulates the system's colour scheme, dark or light."""
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        """Opens a page with empty storage, or a file."""
        parts = urlsplit(url)
        if parts.netloc:  # a file has no storage of its own
            self.tell("Storage.clearDataForOrigin", origin=f"{parts.scheme}://{parts.netloc}", storageTypes="all")
        self.driver.get(url)

    def run(self, script, *arguments):
        """Returns the result of the function body `script`, called with `arguments`."""
        return self.driver.execute_script(script, *arguments)

    def text(self, selector):
        """The visible text of an element; None if there is no such element."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def wait_for(self, script, what, *arguments, seconds=60):
        return wait_until(lambda: self.run(script, *arguments), what, seconds)

    def press(self, *keys):
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def mouse(self):
        return ActionChains(self.driver)

    def double_click(self, element):
        """In the middle of the element. The count of clicks is told: by their times, a busy machine's may be two single ones."""
        place = "const box = arguments[0].getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]"
        x, y = self.run(place, element)
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def complaints(self):
        """Console messages since the last call, and violations of the page's policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")] + self.run("return window.violations")

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.tell("Page.captureScreenshot")["data"]))
