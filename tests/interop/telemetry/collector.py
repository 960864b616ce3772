"""A collector of OTLP over HTTP, out of OpenTelemetry's own protobuf classes.

Listens at a free port of this machine and prints it. Prints each export as one line of JSON: the path, the headers and
the message, with ids in hexadecimal. With the argument `hang` it answers nothing, with a number it answers that status.
"""

import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

KINDS = {
    "/v1/traces": (ExportTraceServiceRequest, ExportTraceServiceResponse),
    "/v1/metrics": (ExportMetricsServiceRequest, ExportMetricsServiceResponse),
}
MODE = sys.argv[1] if len(sys.argv) > 1 else "200"
PRINTING = threading.Lock()


def hexadecimal(value):
    """Ids as OTLP's JSON has them."""
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex() if key in ("traceId", "spanId", "parentSpanId") else hexadecimal(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [hexadecimal(item) for item in value]
    return value


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request, response = KINDS[self.path]
        message = request()
        message.ParseFromString(body)
        line = {"path": self.path, "headers": dict(self.headers), "message": hexadecimal(MessageToDict(message))}
        with PRINTING:
            print(json.dumps(line), flush=True)
        if MODE == "hang":
            threading.Event().wait()
        answer = response().SerializeToString()
        self.send_response(int(MODE))
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
