"""A child with faulthandler that reads address 0: it dies by SIGSEGV with a traceback, whose addresses are left out here."""
# needs:

import faulthandler
import re
import subprocess
import sys
import tempfile

from show import show

done = subprocess.run(
    [sys.executable, "-X", "faulthandler", "-c", "import ctypes; ctypes.string_at(0)"], capture_output=True
)
show("code", done.returncode)
print(re.sub(r"0x[0-9a-f]+", "ADDRESS", done.stderr.decode().partition("\n\nExtension")[0]))
with tempfile.TemporaryFile() as file:
    faulthandler.dump_traceback(file)
    file.seek(0)
    print(re.sub(r"0x[0-9a-f]+", "ADDRESS", file.read().decode()))
