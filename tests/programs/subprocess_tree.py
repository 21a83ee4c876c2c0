"""A tree of processes, three deep and two wide; shells, pipes, exit codes and signals of children."""
# needs:

import math
import os
import subprocess
import sys

from show import show

if len(sys.argv) > 1:
    depth = int(sys.argv[1])
    total = sum(math.sin(i) for i in range(depth * 1000))
    if depth > 1:
        for _ in range(2):
            total += float(subprocess.check_output([sys.executable, __file__, str(depth - 1)]))
    print(total)
    sys.exit()
show("tree", subprocess.check_output([sys.executable, __file__, "3"]))
show("shell", subprocess.run("echo out; echo err >&2; exit 7", shell=True, capture_output=True))
show("pipe", subprocess.run("printf 'b\\na\\n' | sort | tr a-z A-Z", shell=True, capture_output=True).stdout)
show("input", subprocess.run(["cat"], input=b"abc" * 50000, capture_output=True).stdout)
show("killed", subprocess.run(["sh", "-c", "kill -TERM $$"]).returncode)
show("environment", subprocess.check_output(["env"], env={"ONLY": "this"}))
show("missing", type(subprocess.getstatusoutput("no_such_command_here")[0]))
try:
    subprocess.run(["/no/such/program"])
except FileNotFoundError as error:
    show("raised", error.filename)
child = os.fork()
if child == 0:
    os.execvp(sys.executable, [sys.executable, "-c", "import sys; sys.exit(9)"])
show("exec", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
show("spawn", os.spawnvp(os.P_WAIT, "sh", ["sh", "-c", "exit 4"]))
show(
    "posix_spawn",
    os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 5"], os.environ), 0)[1]),
)
show("popen", os.popen("echo through popen").read())
