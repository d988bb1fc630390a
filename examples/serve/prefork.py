# SPDX-License-Identifier: Apache-2.0
"""A pre-forking server: a WSGI application for gunicorn.

    MODEL=model.so gunicorn --preload --workers 4 prefork

Gunicorn loads the model once, then forks: the workers share the mapped file and the
packed weights. Each worker creates its own threads in its first run. To replace the
model, rename the new file to MODEL and send gunicorn's process SIGUSR2, then SIGTERM:
a second gunicorn starts, and the first one ends when its requests have ended."""

import os

from service import Service

service = Service(os.environ["MODEL"], threads=1)


def application(environ, start_response):
    """The WSGI application."""
    model, name = service.current
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    try:
        outputs = model.run(None, service.feeds(model, body))
        status, response = "200 OK", service.response(outputs)
    except Exception as error:
        status, response = service.error_response(error)
    start_response(status, [("Content-Length", str(len(response))),
                            ("X-Model", name)])  # fmt: skip
    return [response]
