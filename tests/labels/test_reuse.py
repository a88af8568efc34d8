import torch

from gamlp.labels import reuse_labels


def test_reuse_fills_missing_rows_and_no_others():
    rows = torch.tensor([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    reused = reuse_labels(torch.tensor([0, -1, 1]), rows)
    assert reused.tolist() == [[1, 0], rows[1].tolist(), [0, 1]]
    assert rows[0].tolist() != [1, 0]  # the argument is left alone
