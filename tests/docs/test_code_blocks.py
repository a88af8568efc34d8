"""Every code block of README and documentation runs, page by page, in a folder of its own."""

import os
import shlex

import pytest
from pages import PAGES, ROOT, blocks, commands

from gamlp.cli import main
from gamlp.cli.app import app

SHORTENED = ("train", "compare", "tune")
TEXT = {"", "text", "toml", "json"}  # output and files, not code
KNOWN = {command.name or command.callback.__name__ for command in app.registered_commands}


def page_name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # importing PyG
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=page_name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for block in blocks(page):
        if block.left_out or block.language in TEXT:
            continue
        if block.language == "python":
            code = compile("\n" * (block.line - 1) + block.code, page_name(page), "exec")
            exec(code, namespace)
        else:
            for command in commands(block):
                run_command(command, block, page)


def run_command(command, block, page):
    place = f"{page_name(page)}, line {block.line}: {command}"
    name, *words = shlex.split(command, comments=True)
    assert name == "gamlp", f"{place} is not run; say why in a comment above the block"
    added = block.options if words[0] in SHORTENED and "--resume" not in words else ()
    with pytest.raises(SystemExit) as left:
        main([*map(os.path.expanduser, words), *added])
    assert not left.value.code, place


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_says_what_it_is(page):
    for block in blocks(page):
        assert block.language in {"python", "sh", *TEXT}, f"{page_name(page)}, line {block.line}"
        if not block.language or block.language == "text":
            assert not block.code.lstrip().startswith(("gamlp ", "make ", "pip ", "python ")), (
                f"{page_name(page)}, line {block.line}: commands belong into a sh block"
            )


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_commands_that_are_left_out_exist(page, capfd):
    """What is not run is at least a command with options that it has, a target of make, or a file that is there."""
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for block in blocks(page):
        for command in commands(block) if block.left_out and block.language == "sh" else []:
            for part in command.split("&&"):
                name, *words = shlex.split(part, comments=True)
                if name == "gamlp" and words[0] in KNOWN:
                    with pytest.raises(SystemExit):
                        main([words[0], "--help"])
                    options = capfd.readouterr().out
                    assert all(word in options for word in words if word.startswith("--")), command
                elif name == "gamlp":
                    assert words[0].startswith("--"), command
                elif name == "make":
                    assert all(f"\n{word}:" in targets for word in words if "=" not in word), command
                elif name.endswith("python") and words[0].endswith(".py"):
                    assert (ROOT / words[0]).exists(), command
