"""The experiments of the paper and of its KDD version, each by one command: tables, ablations, figures.

experiments   what they are, as data: experiments.toml
make          train what an experiment needs, each graph as a comparison of its own, and write what comes of it
table         rows × columns as Markdown, CSV and a page, beside what was published
"""
