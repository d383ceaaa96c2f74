"""A plugin of pytest that lets PyMongo's tests run with Cenote's pool: it takes the place of PyMongo's class before they import it."""

import cenote.pymongo
import pymongo.synchronous.pool

pymongo.synchronous.pool.Pool = cenote.pymongo.Pool  # type: ignore[misc]
