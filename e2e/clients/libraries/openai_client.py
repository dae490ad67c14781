"""Many requests at once with the retries that the client has by itself."""

import asyncio
import os
import time

from openai import AsyncOpenAI
from service import *

versions("openai")


async def at_once(count, key, text):
    begun = time.monotonic()
    async with AsyncOpenAI(base_url=base_url, api_key=key) as client:
        asked = [
            client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}])
            for _ in range(count)
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
    answered = sum(not isinstance(answer, Exception) for answer in answers)
    failed = sorted({type(answer).__name__ for answer in answers if isinstance(answer, Exception)})
    return f"{answered} of {count} in {time.monotonic() - begun:.0f} s{' ' if failed else ''}{' '.join(failed)}"


async def behind_long(key):
    """Five answers of 42 s hold all places of the account; the sixth comes 5 s later."""
    begun = time.monotonic()
    long = asyncio.create_task(at_once(5, key, "sim:tokens=420,itl=100,reasoning=0 Hello"))
    await asyncio.sleep(5)
    said = await at_once(1, key, "sim:tokens=3,itl=0 Hello")
    await long
    return f"{said}, after {time.monotonic() - begun:.0f} s in all"


check("60 at once from one address", lambda: asyncio.run(at_once(60, api_key, "sim:tokens=3,itl=5,reasoning=0 Hello")))
starter = os.environ["WEICHE_STARTER_KEY"]
check("8 at once on Starter, answers of 4 s", lambda: asyncio.run(at_once(8, starter, "sim:tokens=40,itl=100,reasoning=0 Hello")))
check("one behind answers of 42 s", lambda: asyncio.run(behind_long(starter)))
