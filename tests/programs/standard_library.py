"""sqlite, json, regular expressions, hashes, compression, pickles, struct, csv, dates: next to no floating point, much C code."""
# needs:

import base64
import bz2
import csv
import datetime
import difflib
import hashlib
import io
import json
import lzma
import pickle
import random
import re
import sqlite3
import statistics
import struct
import zlib

from show import show

random.seed(16)
words = ["".join(random.choices("abcdefg", k=5)) for _ in range(2000)]
text = " ".join(words)
base = sqlite3.connect(":memory:")
base.execute("create table words (word text, size real)")
base.executemany("insert into words values (?, ?)", ((word, len(word) * 1.5) for word in words))
show(
    "sqlite",
    base.execute("select word, sum(size), avg(size) from words group by word order by 2 desc, 1 limit 5").fetchall(),
)
show("json", json.loads(json.dumps({"words": words[:50], "numbers": [0.1, 1e300, -0.0, 1 / 3]})))
show("regex", len(re.findall(r"(?:a[b-d]|e.)+g?", text)))
for name in ("md5", "sha1", "sha256", "sha3_512", "blake2b"):
    show(name, hashlib.new(name, text.encode()).hexdigest())
show("pbkdf2", hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 1000))
for module in (zlib, bz2, lzma):
    packed = module.compress(text.encode())
    show(module.__name__, (packed, module.decompress(packed) == text.encode())[1])
    show("packed", packed)
show("pickle", pickle.loads(pickle.dumps(words)) == words)
show("struct", struct.unpack("<ffdq", struct.pack("<ffdq", 1.5, 1e-40, 2.5, 7)))
show("csv", list(csv.reader(io.StringIO("a,b\n1,'2'\n"))))
show("base64", base64.b85encode(text.encode())[:30])
show("dates", str(datetime.datetime(2000, 2, 28) + datetime.timedelta(days=2.25)))
show("statistics", (statistics.fmean(range(1000)), statistics.stdev(range(1000))))
show("diff", len(list(difflib.unified_diff(words[:200], words[100:300]))))
show("random", [random.gauss(0, 1) for _ in range(5)])
show("floats", [float(word) for word in ("0.1", "1e-320", "123456789.123456789", "inf")])
show("format", f"{1 / 3:.17g} {1e22:.3f} {0.1 + 0.2!r} {2**0.5:a>20}")
