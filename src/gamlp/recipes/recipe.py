"""Settings as data: a recipe says where its values come from and what was published with them.

    settings of a run  =  defaults ← adapted to the graph ← [settings] ← the method ← [methods.NAME] ← --set

each later one winning over the earlier. A recipe is a TOML file, in the package or of the user's own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError, MissingFileError, SettingsError, did_you_mean
from gamlp.methods import Method, method_named
from gamlp.recipes.adapt import TRIED, Outline, adapted, adapted_method, adapted_network
from gamlp.storage.files import write_text

Published = tuple[float, float | None]  # mean and std in %; not everyone publishes a std
TEXTS = ("title", "source", "method")


@dataclass(frozen=True)
class Recipe:
    """One file of settings."""

    name: str
    title: str
    source: str = ""
    method: str = "gamlp-jk"  # what `gamlp train` runs when no method is named and nothing is `tried`
    tried: Sequence[str] = ()  # with settings from here: a portfolio tries them beside what it tries on any graph
    adapt: bool = False  # whether settings not given here are fitted to the graph's sizes
    sizes: Mapping[str, int] = field(default_factory=dict)  # features, classes, subsets: gives the parameter count
    published: Mapping[str, Published] = field(default_factory=dict)  # method → test accuracy in %, std
    published_valid: Mapping[str, Published] = field(default_factory=dict)  # … → validation accuracy
    settings: Mapping[str, Any] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def resolve(self, method: Method, overrides: Mapping[str, Any] = {}, outline: Outline | None = None) -> Any:
        """Return the settings of one run of a method; an override that contradicts the method's name is refused."""
        fitted = method.adapted(adapted(outline)) if self.adapt and outline is not None else {}
        method.check_overrides(overrides)
        own = {**self.methods.get(method.base, {}), **self.methods.get(method.name, {})}
        if self.tried and method.takes("usual"):
            own["usual"] = [self.candidate(name) for name in self.tried]
        common = method.shared(self.settings)
        return method.settings_from({**fitted, **common, **method.fixed, **own, **overrides})

    def method_for(self, outline: Outline, given: Collection[str] = (), *, network: bool = False) -> str:
        """Return what is run on such a graph when no method is named; one `network` on hops where that is asked for.

        A setting that is `given` and that a mixture of methods does not have asks for it, too.
        """
        alone = adapted_network(outline) if self.adapt else self.method
        method = adapted_method(outline) if self.adapt or (self.tried and outline.nodes <= TRIED) else alone
        fits = method_named(method).setting_names()
        return alone if network or not all(key in fits for key in given) else method

    def candidate(self, name: str) -> dict[str, Any]:
        """Return a method with all its settings of this recipe, as a portfolio keeps it.

        A portfolio does not tell nodes of the split from others: it predicts all, and reliable ones are among all.
        """
        method = method_named(name)
        every = ("rows", "reliable_from") if method.staged else ("rows",)
        settings = self.resolve(method, {key: "all" for key in every if method.takes(key)})
        return {"method": name, "settings": method.settings_data(settings)}


def recipe_names() -> list[str]:
    """Return the names of the recipes in the package."""
    folder = resources.files("gamlp.recipes")
    return sorted(Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".toml"))


def usual_recipe(what: Sequence[str]) -> str:
    """Return the recipe of a graph, as it was named: that of a known data set, else the one that adapts itself.

    The largest connected component of a data set, as photo-lcc, has the recipe of the data set.
    """
    name = what[0].removesuffix("-lcc")
    return name if len(what) == 1 and name in recipe_names() else "default"


def load_recipe(name: str | Path) -> Recipe:
    """Load a recipe of the package by name, or a file of the user's own by path."""
    path = Path(name)
    if str(name) in recipe_names():
        text = (resources.files("gamlp.recipes") / f"{name}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml":
        try:
            if not path.is_file():  # nor a pipe, which may never end
                raise FileNotFoundError("there is no such file")
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MissingFileError(f"The recipe {path} cannot be read ({error}).\nIs the path right?") from error
    else:
        raise SettingsError(f"There is no recipe '{name}'.\n{did_you_mean(str(name), recipe_names())}")
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also brackets in brackets, and numbers of thousands of digits
        raise FormatError(f"The recipe {name} is not valid TOML: {error}.\nCorrect that line.") from error
    return recipe_from(path.stem if path.suffix == ".toml" else str(name), content)


def recipe_from(name: str, content: dict[str, Any]) -> Recipe:
    """Check the content of a recipe file: every key is known, every setting possible."""
    check_tables(name, content)
    published = {
        key: {method: published_of(name, values) for method, values in content.get(key, {}).items()}
        for key in ("published", "published_valid")
    }
    recipe = Recipe(**{"name": name, "title": name, **content, **published})
    for method in (recipe.method, *recipe.tried, *recipe.methods):
        recipe.resolve(method_named(method))
    return recipe


def check_tables(name: str, content: dict[str, Any]) -> None:
    """Refuse unknown keys, and a value of the wrong kind."""
    known = {one.name for one in fields(Recipe)} - {"name"}
    for key, value in content.items():
        if key not in known:
            raise SettingsError(f"Recipe {name}: there is no key '{key}'.\n{did_you_mean(key, known)}")
        kind: type = str if key in TEXTS else bool if key == "adapt" else list if key == "tried" else dict
        if not isinstance(value, kind) or (key == "tried" and not all(isinstance(one, str) for one in value)):  # type: ignore[attr-defined]
            kinds = {str: "text in quotes", bool: "true or false", list: "names of methods", dict: f"a table, [{key}]"}
            words = kinds[kind]
            raise SettingsError(f"Recipe {name}: {key} = {value!r}.\nExpected {words}.")
    for method, values in content.get("methods", {}).items():
        if not isinstance(values, dict):
            raise SettingsError(f"Recipe {name}: methods.{method} = {values!r}.\nExpected a table, [methods.{method}].")


def published_of(recipe: str, values: Any) -> Published:
    """Read [mean] or [mean, std]."""
    numbers = isinstance(values, list) and all(isinstance(value, int | float) for value in values)
    if not numbers or len(values) not in (1, 2):
        raise SettingsError(f"Recipe {recipe}: published = {values!r}.\nWrite [mean] or [mean, std], in %.")
    return float(values[0]), float(values[1]) if len(values) == 2 else None


def write_recipe(path: Path, content: Mapping[str, Any]) -> Recipe:
    """Write `content` as TOML (text, numbers, booleans, lists of these, tables) and return it as it is read back."""
    return load_recipe(write_text(path, as_toml(content)))


def as_toml(content: Mapping[str, Any], prefix: str = "") -> str:
    """Return keys, then tables, as TOML."""
    plain = {key: value for key, value in content.items() if not isinstance(value, Mapping)}
    lines = [f"{bare(key)} = {literal(value)}\n" for key, value in plain.items()]
    for key, table in content.items():
        if isinstance(table, Mapping):
            inner = as_toml(table, f"{prefix}{bare(key)}.")
            holds_only_tables = table and all(isinstance(value, Mapping) for value in table.values())
            lines.append(inner if holds_only_tables else f"\n[{prefix}{bare(key)}]\n{inner}")
    return "".join(lines)


def bare(key: str) -> str:
    """Quote a key where TOML needs it."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else literal(key)


def literal(value: Any) -> str:
    """Return one value."""
    if isinstance(value, bool | str):  # TOML has the words and escapes of JSON, and one control character more
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{bare(key)} = {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return repr(value)  # whole numbers, and floats with every digit: 0.001, 1e-05
