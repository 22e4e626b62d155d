"""The service as a process: an HTTP server and the task that ends holds."""

from __future__ import annotations

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from velodock.http import routes
from velodock.http.routing import app
from velodock.models import ServiceError
from velodock.reservations import release_expired
from velodock.store import load_stations


def tick() -> None:
    """One sweep over the holds, then the next one is planned."""
    release_expired(routes.STORE, routes.CLOCK)
    timer = threading.Timer(routes.SETTINGS.sweep_seconds, tick)
    timer.daemon = True
    timer.start()


class Handler(BaseHTTPRequestHandler):
    """Turns requests into calls of the routes."""

    def do_GET(self) -> None:
        self.answer("GET")

    def do_POST(self) -> None:
        self.answer("POST")

    def do_DELETE(self) -> None:
        self.answer("DELETE")

    def answer(self, method: str) -> None:
        found = app.find(method, self.path)
        if found is None:
            self.send(404, {"error": "no such route"})
            return
        handler, arguments = found
        size = int(self.headers.get("Content-Length") or 0)
        if size:
            arguments["body"] = json.loads(self.rfile.read(size))
        try:
            self.send(200, handler(**arguments))
        except ServiceError as error:
            self.send(error.status, {"error": str(error)})

    def send(self, status: int, content: object) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    parser = argparse.ArgumentParser(description="Velodock dock service")
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument("--stations", type=Path, default=Path("../data/stations.csv"))
    options = parser.parse_args()
    routes.STORE.stations.update(load_stations(options.stations).stations)
    tick()
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
