"""Settings as data: TOML files with their source and their published result."""

from gamlp.recipes.recipe import Recipe, load_recipe, recipe_names

__all__ = ["Recipe", "load_recipe", "recipe_names"]
