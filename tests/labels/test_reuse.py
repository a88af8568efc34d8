import torch

from gamlp.labels import reuse_labels


def test_reuse_fills_missing_rows_and_no_others():
    rows = torch.tensor([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    reused = reuse_labels(torch.tensor([0, -1, 1]), rows)
    assert reused.tolist() == [[1, 0], rows[1].tolist(), [0, 1]]
    assert rows[0].tolist() != [1, 0]  # the argument is left alone


def test_there_is_a_column_for_every_class_whether_it_is_given_or_not():
    reused = reuse_labels(torch.tensor([0, -1]), torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]))
    torch.testing.assert_close(reused, torch.tensor([[1, 0, 0], [0.1, 0.1, 0.8]]))
