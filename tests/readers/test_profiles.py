"""The catalogue: finding profiles, user folders on top, and files that are wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.readers import profiles, shipped
from rlsize.readers.profiles import FOLDERS, VARIABLE, Catalogue, shipped_folder, user_folders
from rlsize.readers.yaml_documents import Document, read_document

if TYPE_CHECKING:
    from collections.abc import Callable

LINK = """\
rlsize: {kind: link, version: 1}
name: my-link
title: My link
aliases: [mine]
specification:
  scope: network
  bandwidth_one_direction: {value: 10 GB/s, source: us}
  bandwidth_both_directions: {value: 20 GB/s, source: us}
sources:
  us: measured by us on our machines
"""
GPU = """\
rlsize: {kind: gpu, version: 1}
name: my-gpu
title: My GPU
vendor: us
specification:
  bf16_dense: {value: 100 TFLOP/s, source: us}
  memory: {value: 80 GB, source: us}
  memory_usable: {value: 80 GiB, source: us}
  memory_bandwidth: {value: 1 TB/s, source: us}
  scale_up:
    link: nvlink4
    bandwidth_one_direction: {value: 450 GB/s, source: us}
    bandwidth_both_directions: {value: 900 GB/s, source: us}
    domain_gpus: {value: 8, source: us}
  gpus_per_node: {value: 8, source: us}
sources:
  us: measured by us on our machines
"""
PRICE = """\
rlsize: {kind: price, version: 1}
name: my-price
cloud: ours
gpu: h100-sxm
gpu_listed: H100
gpus: {value: 8, source: us}
usd_per_gpu_hour: {value: 2 usd/h, source: us}
usd_per_instance_hour: {value: 16 usd/h, source: us}
commitment: reserved
as_of: 2026-11-01
as_of_meaning: published
trust: high
sources:
  us: our contract of that day
"""
RATES = """\
rlsize: {kind: rates, version: 1}
measured_at: '2026-11-20T09:30:00+00:00'
source: {method: observe}
instance_tokens_per_second: {mean: 3620 tok/s, spread: 140 tok/s, instances: 13}
train_seconds: 20 s
"""
CLUSTER = """\
rlsize: {kind: cluster, version: 1}
name: my-cluster
title: My cluster
gpu: h100-sxm
gpus_per_node: {value: 8, source: us}
scale_up: nvlink4
interconnect: infiniband-400g
nic: {value: 400 Gb/s, source: us}
sources:
  us: our order of that day
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file into a user folder and gives the folder."""

    def writer(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return tmp_path

    return writer


def faults_in(folder: Path) -> list[str]:
    """What the check says of one user folder."""
    return [str(fault) for fault in Catalogue([folder]).check(folder)]


def refusal(kind: str, name: str, folder: Path | None = None) -> str | None:
    """The message of a look-up that is refused, None where it is answered."""
    try:
        Catalogue([folder] if folder else []).get(kind, name)
    except InputError as error:
        return str(error)
    return None


class TestNames:
    """A name, or an alias, in any case, and nothing else."""

    def test_case_does_not_matter(self) -> None:
        """`H100-SXM`, ` h100 ` and `h100-sxm` are one profile."""
        catalogue = Catalogue()
        assert catalogue.get("gpu", "H100-SXM") is catalogue.get("gpu", " h100 ") is catalogue.get("gpu", "h100-sxm")

    def test_an_unknown_name_is_answered_with_the_nearest(self) -> None:
        """A slip of the keyboard costs one look at the message."""
        with pytest.raises(InputError, match=r"no gpu profile 'h1000-sxm'\s+did you mean h100-sxm"):
            Catalogue().get("gpu", "h1000-sxm")

    def test_part_of_a_name_is_answered_with_the_names_that_hold_it(self) -> None:
        """Where a word could mean several links, none is chosen in silence."""
        with pytest.raises(InputError, match="infiniband-200g or infiniband-400g or infiniband-800g"):
            Catalogue().get("link", "InfiniBand")
        with pytest.raises(InputError, match="xgmi-mi300x or xgmi-mi355x"):
            Catalogue().get("link", "xgmi")

    @pytest.mark.parametrize(
        "name",
        ["../../etc/passwd", "/etc/passwd", "..", "", "h100-sxm.yaml", "gpus/h100-sxm", "a\0b", "x" * 10**6, "*"],
    )
    def test_a_name_is_never_a_path(self, name: str) -> None:
        """Names are looked up among the listed files, so none leads out of the folders."""
        with pytest.raises(InputError, match="there is no gpu profile") as raised:
            Catalogue().get("gpu", name)
        assert len(str(raised.value)) < 2000

    @given(st.text(max_size=300))
    def test_any_text_is_a_name_or_unknown(self, name: str) -> None:
        """Whatever is typed, the answer is a profile or a message."""
        message = refusal("link", name)
        assert message is None or "there is no link profile" in message

    def test_an_unknown_kind_is_refused(self) -> None:
        """Kinds are the folders, with the nearest one offered."""
        with pytest.raises(InputError, match="did you mean gpu"):
            Catalogue().names("gpus")

    def test_names_are_the_files(self) -> None:
        """Listing needs no file to be read."""
        listed = sorted(path.stem for path in (shipped_folder() / "links").glob("*.yaml"))
        assert Catalogue().names("link") == listed

    def test_one_profile_is_read_without_the_others(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A look-up by name opens one file, here in a folder of one's own."""
        shutil.copytree(shipped_folder() / "gpus", tmp_path / "gpus")
        opened: list[str] = []

        def noted(path: Path) -> Document:
            opened.append(path.name)
            return read_document(path)

        monkeypatch.setattr(profiles, "read_document", noted)
        Catalogue([tmp_path]).get("gpu", "h100-sxm")
        assert opened == ["h100-sxm.yaml"]

    def test_documents_are_the_files_as_data(self) -> None:
        """The raw content is there for reference pages, without the header."""
        documents = list(Catalogue().documents("cluster"))
        assert sorted(str(document.data["name"]) for document in documents) == Catalogue().names("cluster")
        assert all("rlsize" not in document.data for document in documents)


class TestUserFolders:
    """User folders come on top of what ships."""

    def test_a_new_profile_is_found(self, write: Callable[[str, str], Path]) -> None:
        """One file in the right folder is enough."""
        catalogue = Catalogue([write("links/my-link.yaml", LINK)])
        assert catalogue.get("link", "MINE").specification.bandwidth_one_direction.value == 10e9
        assert "nvlink4" in catalogue.names("link")

    def test_a_file_of_the_same_name_replaces_the_shipped_one(self, write: Callable[[str, str], Path]) -> None:
        """The user knows better; the shipped aliases then follow the user's file."""
        folder = write("links/nvlink4.yaml", LINK.replace("my-link", "nvlink4"))
        catalogue = Catalogue([folder])
        assert catalogue.get("link", "nvlink4").specification.bandwidth_one_direction.value == 10e9
        assert catalogue.path_of("link", "nvlink4") == folder / "links" / "nvlink4.yaml"
        assert catalogue.names("link").count("nvlink4") == 1

    def test_later_folders_win(self, tmp_path: Path) -> None:
        """Of two user folders the last one counts."""
        for folder, bandwidth in (("first", 10), ("second", 30)):
            (tmp_path / folder / "links").mkdir(parents=True)
            text = LINK.replace("10 GB/s", f"{bandwidth} GB/s").replace("20 GB/s", f"{2 * bandwidth} GB/s")
            (tmp_path / folder / "links" / "my-link.yaml").write_text(text)
        link = Catalogue([tmp_path / "first", tmp_path / "second"]).get("link", "my-link")
        assert link.specification.bandwidth_one_direction.value == 30e9

    def test_the_environment_names_folders_and_flags_come_after_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """RLSIZE_PROFILES holds several folders, separated as in PATH; empty parts count for nothing."""
        monkeypatch.setenv(VARIABLE, "a::b")
        assert user_folders([Path("c")]) == [Path("a"), Path("b"), Path("c")]
        monkeypatch.delenv(VARIABLE)
        assert user_folders() == []

    def test_a_folder_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        """A mistyped folder is not passed over in silence; all of them are named."""
        with pytest.raises(InputError) as raised:
            Catalogue([tmp_path / "one", tmp_path / "two"])
        assert len(raised.value.faults) == 2

    @pytest.mark.parametrize("folder", ["a\0b", "x" * 5000, "no/such/place"])
    def test_an_impossible_folder_is_an_error(self, folder: str) -> None:
        """Names that no file system takes are answered like folders that are not there."""
        with pytest.raises(InputError, match="no such folder of profiles"):
            Catalogue([folder])

    def test_a_folder_that_may_not_be_listed_is_a_fault(
        self, write: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The check reports it, a look-up refuses."""
        folder = write("links/my-link.yaml", LINK)
        catalogue = Catalogue([folder])

        def refuse(_: Path) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "iterdir", refuse)
        assert ["cannot be listed: Permission denied" in str(fault) for fault in catalogue.check(folder)] == [True]
        with pytest.raises(InputError, match="cannot be listed"):
            catalogue.get("link", "my-link")

    def test_a_broken_neighbour_does_no_harm(self, write: Callable[[str, str], Path]) -> None:
        """One wrong file is found by the check, and spoils neither names nor aliases of the others."""
        write("links/broken.yaml", "a: [")
        catalogue = Catalogue([write("links/my-link.yaml", LINK)])
        assert catalogue.get("link", "mine").name == "my-link"
        assert catalogue.get("link", "ndr").name == "infiniband-400g"
        with pytest.raises(InputError, match="not valid YAML"):
            catalogue.get("link", "broken")

    def test_a_packaged_folder_stands_before_the_checkout(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An installed wheel carries the profiles inside the package; a checkout has them at its top."""
        module = tmp_path / "src" / "rlsize" / "readers" / "profiles.py"
        monkeypatch.setattr(shipped, "__file__", str(module))
        assert shipped_folder() == tmp_path / "profiles"
        (module.parents[1] / "profiles").mkdir(parents=True)
        assert shipped_folder() == module.parents[1] / "profiles"


class TestDigest:
    """The digest tells that a fact has moved."""

    def test_it_is_short_and_the_same_each_time(self) -> None:
        """Sixteen hexadecimal digits."""
        assert Catalogue().digest() == Catalogue().digest()
        assert len(bytes.fromhex(Catalogue().digest())) == 8

    def test_it_moves_with_a_number_a_name_and_a_file(self, write: Callable[[str, str], Path]) -> None:
        """Content, names and presence all count."""
        folder = write("links/my-link.yaml", LINK)
        digests = {Catalogue().digest(), Catalogue([folder]).digest()}
        write("links/my-link.yaml", LINK.replace("10 GB/s", "11 GB/s"))
        digests.add(Catalogue([folder]).digest())
        (folder / "links" / "my-link.yaml").rename(folder / "links" / "our-link.yaml")
        digests.add(Catalogue([folder]).digest())
        assert len(digests) == 4

    def test_line_ends_and_places_do_not_count(self, write: Callable[[str, str], Path], tmp_path: Path) -> None:
        """A checkout on another system or in another folder has the same digest."""
        folder = write("links/my-link.yaml", LINK)
        other = tmp_path / "other"
        (other / "links").mkdir(parents=True)
        (other / "links" / "my-link.yaml").write_bytes(LINK.replace("\n", "\r\n").encode())
        assert Catalogue([folder]).digest() == Catalogue([other]).digest()

    def test_what_cannot_be_read_does_not_stop_it(self, tmp_path: Path) -> None:
        """A folder that is called like a profile still gives a digest."""
        (tmp_path / "links" / "folder.yaml").mkdir(parents=True)
        assert Catalogue([tmp_path]).digest() != Catalogue().digest()


class TestCheck:
    """The check finds all that is wrong, and never raises."""

    @pytest.mark.parametrize(
        ("name", "text"),
        [("links/my-link", LINK), ("gpus/my-gpu", GPU), ("prices/my-price", PRICE), ("clusters/my-cluster", CLUSTER)],
    )
    def test_a_good_file_has_no_fault(self, write: Callable[[str, str], Path], name: str, text: str) -> None:
        """The examples that the other tests spoil are good."""
        assert faults_in(write(f"{name}.yaml", text)) == []

    @pytest.mark.parametrize(
        ("name", "text", "old", "new", "says"),
        [
            (
                "links/my-link",
                LINK,
                "name: my-link",
                "name: your-link",
                "'your-link', but the file is called 'my-link'",
            ),
            ("links/my-link", LINK, "{value: 10 GB/s, source: us}", "{value: 10 GB/s, source: use}", "'use' is not in"),
            ("links/my-link", LINK, "sources:\n", "sources:\n  they: a page\n", "no number names the source 'they'"),
            ("links/my-link", LINK, "measured by us on our machines", '" "', "the source says nothing"),
            ("links/my-link", LINK, "20 GB/s", "10 GB/s", "both directions are 10 GB/s, one is 10 GB/s"),
            ("links/my-link", LINK, "10 GB/s", "10 GB", "10 GB is not a bandwidth: 'GB' is not one of its units"),
            ("links/my-link", LINK, "10 GB/s", "-10 GB/s", "must be more than 0"),
            ("links/my-link", LINK, "{value: 10 GB/s, source: us}", "10 GB/s", "bandwidth_one_direction"),
            ("links/my-link", LINK, "scope: network", "scope: moon", "scope"),
            ("links/my-link", LINK, "title:", "titel:", "did you mean title"),
            ("links/my-link", LINK, "aliases: [mine]", "aliases: [my-link, h]\nname: x", "stands twice"),
            ("links/my-link", LINK, "kind: link", "kind: gpu", "is a gpu file, not a link file"),
            ("gpus/my-gpu", GPU, "80 GiB", "80 MiB", "usable memory is 0.00 times"),
            ("gpus/my-gpu", GPU, "80 GiB", "96 GB", "usable memory is 1.20 times"),
            ("gpus/my-gpu", GPU, "900 GB/s", "450 GB/s", "both directions"),
            ("gpus/my-gpu", GPU, "link: nvlink4", "link: nvlink44", "did you mean nvlink4"),
            ("gpus/my-gpu", GPU, "link: nvlink4", "link: nvlink5", "the link nvlink5 says 9e+11"),
            ("gpus/my-gpu", GPU, "domain_gpus: {value: 8", "domain_gpus: {value: 8.5", "whole number"),
            ("prices/my-price", PRICE, "gpu: h100-sxm", "gpu: h1000-sxm", "did you mean h100-sxm"),
            ("prices/my-price", PRICE, "16 usd/h", "20 usd/h", "8 GPUs at this price make 16 usd/h"),
            ("prices/my-price", PRICE, "2026-11-01", "last week", "'last week' is not a date"),
            ("clusters/my-cluster", CLUSTER, "gpu: h100-sxm", "gpu: h100000", "there is no gpu profile"),
            ("clusters/my-cluster", CLUSTER, "scale_up: nvlink4", "scale_up: nvlink5", "joined by nvlink4"),
            ("clusters/my-cluster", CLUSTER, "infiniband-400g", "infiniband-200g", "says 2.5e+10"),
            ("clusters/my-cluster", CLUSTER, "{value: 8,", "{value: 4,", "the GPU h100-sxm says 8"),
        ],
    )
    def test_each_fault_is_named(
        self, write: Callable[[str, str], Path], name: str, text: str, old: str, new: str, says: str
    ) -> None:
        """What is wrong, and in which file and line."""
        assert old in text
        faults = faults_in(write(f"{name}.yaml", text.replace(old, new, 1)))
        assert any(says in fault for fault in faults), faults
        assert all(f"{name}.yaml" in fault for fault in faults)

    def test_all_faults_of_all_files_come_at_once(self, write: Callable[[str, str], Path]) -> None:
        """Three wrong files of three kinds and a good one make three groups of faults."""
        write("links/my-link.yaml", LINK.replace("20 GB/s", "30 GB/s").replace("title: My link", "title: [1]"))
        write("links/other.yaml", LINK.replace("20 GB/s", "30 GB/s").replace("[mine]", "[]"))
        write("gpus/my-gpu.yaml", "")
        faults = faults_in(write("prices/my-price.yaml", PRICE))
        assert len(faults) == 4  # the second link also has another name than its file
        assert sum("links/my-link.yaml" in fault for fault in faults) == 1
        assert sum("links/other.yaml" in fault for fault in faults) == 2
        assert sum("gpus/my-gpu.yaml" in fault for fault in faults) == 1

    def test_two_files_must_not_share_an_alias(self, write: Callable[[str, str], Path]) -> None:
        """Inside one folder an alias names one profile, and never another's own name."""
        write("links/my-link.yaml", LINK.replace("[mine]", "[Ours, your-link]"))
        faults = faults_in(write("links/your-link.yaml", LINK.replace("my-link", "your-link").replace("mine", "ours")))
        assert len(faults) == 2
        assert any("alias ours already names my-link" in fault for fault in faults)
        assert any("alias your-link already names your-link" in fault for fault in faults)

    def test_shipped_folders_are_checked_too(self, write: Callable[[str, str], Path]) -> None:
        """Without a folder the check goes over all of them, so a user's fault shows beside the shipped profiles."""
        catalogue = Catalogue([write("links/nvlink4.yaml", LINK)])
        assert any("but the file is called 'nvlink4'" in str(fault) for fault in catalogue.check())

    def test_a_profile_with_a_fault_of_its_own_is_not_used(self, write: Callable[[str, str], Path]) -> None:
        """A number whose source is missing is refused, not only reported."""
        catalogue = Catalogue([write("links/my-link.yaml", LINK.replace("source: us", "source: them"))])
        with pytest.raises(InputError, match="'them' is not in sources"):
            catalogue.get("link", "my-link")

    def test_what_would_never_be_read_is_named(self, write: Callable[[str, str], Path]) -> None:
        """A wrong ending, a folder in the singular: both would be passed over in silence."""
        write("links/mine.yml", LINK)
        write("gpu/my-gpu.yaml", GPU)
        write("links/README.md", "A note.")
        faults = faults_in(write("links/.hidden", ""))
        assert len(faults) == 2
        assert any("did you mean gpus?" in fault for fault in faults)
        assert any("ends in .yaml" in fault for fault in faults)

    def test_rates_are_profiles_by_the_names_of_their_files(self, write: Callable[[str, str], Path]) -> None:
        """A rates file has no name of its own; it is listed, read and checked all the same."""
        write("rates/node-a.yaml", RATES)
        folder = write("rates/node-b.yaml", RATES)
        assert faults_in(folder) == []
        catalogue = Catalogue([folder])
        assert catalogue.names("rates") == ["node-a", "node-b"]
        assert catalogue.get("rates", "node-b").train_seconds == 20
        assert "spread" in faults_in(write("rates/node-b.yaml", RATES.replace("mean", "spread")))[0]

    def test_a_folder_without_profiles_is_named(self, tmp_path: Path) -> None:
        """Pointing one level too deep or too high is a fault."""
        shutil.copytree(shipped_folder() / "links", tmp_path / "deep" / "links")
        assert ["holds no profiles" in fault for fault in faults_in(tmp_path / "deep" / "links")] == [True]

    @pytest.mark.parametrize("kind", FOLDERS)
    def test_folders_and_links_in_place_of_files(self, tmp_path: Path, kind: str) -> None:
        """Directories, dangling links and loops that are named like profiles become faults."""
        folder = tmp_path / FOLDERS[kind]
        (folder / "folder.yaml").mkdir(parents=True)
        (folder / "dangling.yaml").symlink_to(tmp_path / "nowhere")
        (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
        faults = faults_in(tmp_path)
        assert len(faults) == 3
        assert all(FOLDERS[kind] in fault for fault in faults)

    def test_a_file_in_place_of_the_kinds_folder_holds_nothing(self, write: Callable[[str, str], Path]) -> None:
        """`links` as a file is no folder of links."""
        write("gpus/my-gpu.yaml", GPU)
        assert Catalogue([write("links", "")]).names("link") == Catalogue().names("link")

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(kind=st.sampled_from(sorted(FOLDERS)), content=st.binary(max_size=300))
    def test_junk_is_a_fault(self, tmp_path: Path, kind: str, content: bytes) -> None:
        """Random bytes as a profile give a message, in the check and on look-up."""
        shutil.rmtree(tmp_path)
        (tmp_path / FOLDERS[kind]).mkdir(parents=True)
        (tmp_path / FOLDERS[kind] / "junk.yaml").write_bytes(content)
        faults = faults_in(tmp_path)
        assert faults
        assert all("junk.yaml" in fault for fault in faults)
        assert refusal(kind, "junk", tmp_path)

    @pytest.mark.long
    @settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(data=st.data())
    def test_a_damaged_profile_is_read_or_refused(self, tmp_path: Path, data: st.DataObject) -> None:
        """A good file with a part overwritten by anything never ends in a traceback."""
        text = data.draw(st.sampled_from([LINK, GPU, PRICE, CLUSTER]))
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 20)))
        junk = data.draw(st.text("{}[]:,&*!|>'\"%@`#-? \n\t0aé\0" + "null", max_size=12))
        shutil.rmtree(tmp_path)
        for folder in FOLDERS.values():
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "damaged.yaml").write_text(text[:at] + junk + text[until:], encoding="utf-8")
        assert faults_in(tmp_path)
        for kind in FOLDERS:
            message = refusal(kind, "damaged", tmp_path)
            assert message is None or "damaged.yaml" in message
