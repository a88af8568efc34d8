"""Adam against torch's own, to the bit, and taken up again."""

import torch

from gamlp.train.adam import Adam


def parameters(seed=0):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(size, generator=draw).requires_grad_() for size in ((5, 3), (3,), (2, 2))]


def steps(adam, weights, numbers):
    for number in numbers:
        adam.zero_grad()
        draw = torch.Generator().manual_seed(number)
        loss = sum((torch.randn(one.shape, generator=draw) * one**2).sum() for one in weights[:2])  # the last has none
        loss.backward()
        adam.step()


def test_it_is_torchs_and_goes_on_from_what_was_kept():
    ours, torchs, again = parameters(), parameters(), parameters()
    adam = Adam(ours, learning_rate=0.1, weight_decay=0.01)
    steps(adam, ours, range(4))
    kept = {name: value.clone() for name, value in adam.state_dict().items()}
    with torch.no_grad():
        for one, value in zip(again, ours, strict=True):
            one.copy_(value)
    steps(adam, ours, range(4, 9))
    steps(torch.optim.Adam(torchs, lr=0.1, weight_decay=0.01, fused=True), torchs, range(9))
    resumed = Adam(again, learning_rate=0.1, weight_decay=0.01)
    resumed.load_state_dict(kept)
    steps(resumed, again, range(4, 9))
    for one, other, third in zip(ours, torchs, again, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, third)
    assert torch.equal(ours[2], parameters()[2])  # without a gradient it stays, weight decay or not
