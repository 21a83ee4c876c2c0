"""asyncio: subprocesses, streams over a socket, threads, timeouts, signals and cancellation."""
# needs:

import asyncio
import os
import signal
import sys

from show import show


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.read(100)).upper())
    await writer.drain()
    writer.close()


async def main() -> None:
    code = "import sys; print(sum(i ** 0.5 for i in range(1000))); sys.exit(int(sys.argv[1]))"
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(i), stdout=asyncio.subprocess.PIPE)
        for i in range(4)
    ]
    for child in children:
        show("child", ((await child.communicate())[0], child.returncode))
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    writer.write(b"shout")
    show("socket", await reader.read())
    writer.close()
    server.close()
    show("thread", await asyncio.to_thread(sum, range(1000)))
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.05)
    except TimeoutError:
        show("timeout", True)
    arrived = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, arrived.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(arrived.wait(), 10)
    show("signal", arrived.is_set())


asyncio.run(main())
