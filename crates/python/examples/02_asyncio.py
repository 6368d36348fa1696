"""Many requests at once: they are translated together, as one list would be."""

import asyncio

from attentive import Translation, Translator

translator = Translator("de-en")


async def request(number: int) -> Translation:
    """A handler of a web server, for example."""
    return await translator.atranslate(f"Ich habe {number} Bücher.")


async def main() -> None:
    for translation in await asyncio.gather(*map(request, range(2, 102))):
        print(translation.text)


asyncio.run(main())
