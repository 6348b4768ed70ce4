"""What holds of every shipped profile of every kind."""

from __future__ import annotations

import re

import pytest

from rlsize.facts.fields import sourced_numbers
from rlsize.readers.profiles import FOLDERS, Catalogue

# An absolute path, a home folder, a drive, a parent folder, a file: address; no URL, path within a repository or unit.
LOCAL_PATH = re.compile(r"(?:^|[\s'\"(\[=,;])(?:/|~/|\.\./|[A-Za-z]:\\)[\w.~-]+|file:/")


def test_no_profile_has_a_fault(catalogue: Catalogue) -> None:
    """Form, names, sources, agreement of numbers and references: nothing is wrong."""
    assert [str(fault) for fault in catalogue.check()] == []


@pytest.mark.long
def test_every_profile_can_be_had_by_its_name_and_its_aliases(catalogue: Catalogue) -> None:
    """The catalogue gives what it lists."""
    for kind in FOLDERS:
        for name in catalogue.names(kind):
            profile = catalogue.get(kind, name)
            for alias in getattr(profile, "aliases", ()):
                assert catalogue.get(kind, alias.upper()) is profile


def test_every_number_has_a_source_that_says_something(catalogue: Catalogue) -> None:
    """A source is a document, a measurement, a definition or an admission, not a word."""
    for kind in FOLDERS:
        for name in catalogue.names(kind):
            profile = catalogue.get(kind, name)
            for path, number in sourced_numbers(profile):
                assert len(profile.sources[number.source]) > 15, (name, path)


def test_what_was_recalled_is_never_verified(catalogue: Catalogue) -> None:
    """A number whose source says that nobody read it is marked."""
    for kind in FOLDERS:
        for name in catalogue.names(kind):
            profile = catalogue.get(kind, name)
            for path, number in sourced_numbers(profile):
                if "recalled" in profile.sources[number.source]:
                    assert not number.verified, (name, path)


def test_profiles_name_no_place_of_their_making(catalogue: Catalogue) -> None:
    """Files hold public sources only: no path of anybody's machine."""
    for document in catalogue.documents():
        found = LOCAL_PATH.findall(repr(document.data))
        assert not found, (document.name, found)


def test_local_paths_are_told_from_urls_and_units() -> None:
    """The pattern above finds what it is for, and nothing else."""
    for text in ("read in /home/me/notes.txt", "file:///x/y", "'~/notes'", "C:\\notes", "../notes.md", "(/mnt/x)"):
        assert LOCAL_PATH.search(text), text
    for text in (
        "https://a.org/b/c",
        "org/repo@095f58a5:src/x.yaml",
        "GB/s",
        "tok/s / GPU",
        "1/2",
        "s b h (10 + 24/t)",
    ):
        assert not LOCAL_PATH.search(text), text
