"""A plugin of pytest that lets PyMongo's tests run with Cenote's pools: they take the place of PyMongo's before the tests import them."""

import cenote.pymongo
import pymongo.asynchronous.pool
import pymongo.synchronous.pool

pymongo.asynchronous.pool.Pool = cenote.pymongo.AsyncPool  # type: ignore[misc]
pymongo.synchronous.pool.Pool = cenote.pymongo.Pool  # type: ignore[misc]
