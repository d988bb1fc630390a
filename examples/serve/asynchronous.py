# SPDX-License-Identifier: Apache-2.0
"""An asynchronous server: an ASGI application for uvicorn.

    MODEL=model.so python3 -m uvicorn asynchronous:application

The event loop never waits for a run: byoc's runners run the model. To replace the
model, rename the new file to MODEL and send the process SIGHUP: it loads the new
model in a thread, while requests run on the old one."""

import asyncio
import logging
import os
import signal

from service import Service

service = Service(os.environ["MODEL"], threads=1, runners=len(os.sched_getaffinity(0)))


async def reload():
    """Load the new model; if that fails, keep the old one and log the error."""
    try:
        await asyncio.to_thread(service.load)
    except Exception as error:
        logging.getLogger("uvicorn.error").error("%s: %s", service.path, error)


async def lifespan(receive, send):
    """Answer ASGI's events of startup and shutdown, and handle SIGHUP."""
    loop, tasks = asyncio.get_running_loop(), set()

    def start_reload():
        task = loop.create_task(reload())
        tasks.add(task)  # the event loop keeps only weak references
        task.add_done_callback(tasks.discard)

    while True:
        event = (await receive())["type"]
        if event == "lifespan.startup":
            loop.add_signal_handler(signal.SIGHUP, start_reload)
        await send({"type": event + ".complete"})
        if event == "lifespan.shutdown":
            return


async def read(receive):
    """The body of a request."""
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event.get("body", b""), event.get("more_body", False)
    return body


async def application(scope, receive, send):
    """The ASGI application."""
    if scope["type"] == "lifespan":
        return await lifespan(receive, send)
    model, name = service.current
    body = await read(receive)
    try:
        outputs = await model.run_async(None, service.feeds(model, body))
        status, response = "200 OK", service.response(outputs)
    except Exception as error:
        status, response = service.error_response(error)
    headers = [(b"content-length", b"%d" % len(response)), (b"x-model", name.encode())]
    await send({"type": "http.response.start", "status": int(status[:3]),
                "headers": headers})  # fmt: skip
    await send({"type": "http.response.body", "body": response})
