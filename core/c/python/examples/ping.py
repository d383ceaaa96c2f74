#!/usr/bin/env python3
"""Sends 1,000 pings from 8 threads through Cenote's pool: ping.py mongodb://127.0.0.1:27017/"""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cenote.pymongo import Pool
from pymongo import MongoClient

with MongoClient[dict[str, Any]](sys.argv[1], _pool_class=Pool, maxPoolSize=4) as client, ThreadPoolExecutor(8) as threads:
    replies = list(threads.map(lambda _: client.admin.command("ping"), range(1000)))
    print(f"{sum(reply['ok'] == 1 for reply in replies)} pings")
