"""os.abort: ends by SIGABRT."""
# needs:

import os
import resource

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print("before", flush=True)
os.abort()
