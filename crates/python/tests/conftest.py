"""What the tests share: a translator, German sentences, and the command line's program to compare with."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import attentive

SENTENCES = [
    "Guten Morgen! Wie geht es dir?",
    "Wo ist der Bahnhof? Ich habe meine Tasche verloren!",
    "",
    "Ein Hund rennt über die Wiese, und zwei Katzen schlafen.",
    "DAS IST ALLES GROSS GESCHRIEBEN.",
    "Siehe https://example.org für mehr, oder schreib an a@b.de 🙂",
    "42",
    "Der Zug kommt um 8:15 Uhr an, wenn er nicht zu spät ist.",
]


@pytest.fixture(autouse=True)
def ctrl_c_interrupts() -> None:
    """A shell lets its background jobs ignore Ctrl-C, and Python leaves that as it is."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def translator() -> attentive.Translator:
    return attentive.Translator("de-en")


@pytest.fixture
def sentences() -> list[str]:
    return list(SENTENCES)


@pytest.fixture(scope="session")
def many() -> list[str]:
    """Some hundred different sentences."""
    subjects = ["Der Hund", "Die Katze", "Mein Bruder", "Das Kind", "Eine Frau", "Der Zug", "Unser Lehrer"]
    verbs = ["sieht", "sucht", "kauft", "findet", "braucht", "verliert"]
    things = ["einen Ball", "das rote Auto", "die alte Uhr", "ein Buch", "viel Wasser", "den Schlüssel"]
    return [f"{subject} {verb} {thing}." for subject in subjects for verb in verbs for thing in things]


@pytest.fixture(scope="session")
def command_line() -> Callable[..., str]:
    """Runs the program `attentive` that ATTENTIVE_BINARY names; gives what it writes."""
    binary = os.environ.get("ATTENTIVE_BINARY")
    if not binary:
        pytest.skip("SKIPPED: ATTENTIVE_BINARY does not name the command line's program")

    def run(*arguments: str, text: str = "") -> str:
        command = [str(Path(binary).resolve()), "--quiet", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout

    return run
