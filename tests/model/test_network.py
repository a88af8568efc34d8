import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from gamlp.errors import ShapeError
from gamlp.model import build_network, count_parameters
from gamlp.model.mixer import SubsetMixer
from gamlp.model.registry import COMBINERS
from gamlp.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from reference_network import ReferenceNetwork, parameter_pairs

F, C = 6, 4


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def inputs(settings, rows, *, subsets=0):
    lead = (rows, subsets) if subsets else (rows,)
    labels = numbers(rows, C, seed=1).softmax(1) if settings.labels else None
    return numbers(*lead, settings.hops + 1, F), labels, numbers(rows, F, seed=2)


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("hop_layers", [0, 1, 2])
def test_every_legal_setting_runs_forward_and_backward(combiner, hop_layers):
    choices = itertools.product([False, True], [False, True], [False, True], [1, 2, 3], [0, 2], [0, 2])
    for number, (residual, batch_norm, labels, layers, hops, subsets) in enumerate(choices):
        if number % 3:  # a third of all, and each value with each other
            continue
        settings = Settings(
            combiner=combiner, hop_layers=hop_layers, residual=residual, batch_norm=batch_norm, labels=labels,
            head_residual="features" if number % 2 else "first",
            head_layers=layers, jk_layers=layers, label_layers=layers, hops=hops, hidden=F,
            input_dropout=0.1, attention_dropout=0.3,
        )  # fmt: skip
        network = build_network(settings, features=F, classes=C, subsets=subsets)
        logits, weights = network(*inputs(settings, 5, subsets=subsets))
        logits.square().sum().backward()
        assert logits.shape == (5, C)
        assert weights.shape == (5, hops + 1)
        torch.testing.assert_close(weights.sum(1), torch.ones(5))
        assert torch.isfinite(logits).all()
        for name, parameter in network.named_parameters():
            assert parameter.grad is not None, (settings, name)
            assert torch.isfinite(parameter.grad).all(), (settings, name)


@pytest.mark.parametrize("combiner", COMBINERS)
def test_a_node_is_classified_alone(combiner):
    settings = Settings(combiner=combiner, hops=3, hidden=8)
    network = build_network(settings, features=F, classes=C)
    given = inputs(settings, 300)
    network(*given)  # moves the running statistics away from 0 and 1
    network.eval()
    logits, weights = network(*given)
    others = torch.randperm(300, generator=torch.Generator().manual_seed(3))
    for rows in ([0], [17, 4], others):
        alone = network(*(x[rows] for x in given))
        torch.testing.assert_close(alone.logits, logits[rows], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(alone.weights, weights[rows], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("combiner", ["recursive", "jk"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reference_network_gives_the_same_logits_and_gradients(combiner, residual, dtype):
    settings = Settings(
        combiner=combiner, residual=residual, hops=3, hidden=16, head_layers=4, jk_layers=3, label_layers=3, dropout=0
    )
    network = build_network(settings, features=F, classes=C, seed=1).to(dtype)
    reference = ReferenceNetwork(settings, features=F, classes=C).double()
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    with torch.no_grad():
        for theirs, ours in parameter_pairs(reference, network):
            theirs.copy_(ours)
    hops, labels, _ = inputs(settings, 300)
    target = torch.arange(300) % C
    logits = network(hops.to(dtype), labels.to(dtype)).logits
    expected = reference(hops.double(), labels.double())
    tight = {"rtol": 1e-9, "atol": 1e-9} if dtype == torch.float64 else {"rtol": 2e-4, "atol": 2e-4}
    torch.testing.assert_close(logits.double(), expected, **tight)
    functional.cross_entropy(logits, target).backward()
    functional.cross_entropy(expected, target).backward()
    for parameter in itertools.chain(network.parameters(), reference.parameters()):
        parameter.data = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
    pairs = parameter_pairs(reference, network)
    assert sum(theirs.numel() for theirs, _ in pairs) == count_parameters(network)
    for theirs, ours in pairs:
        torch.testing.assert_close(ours.detach().double(), theirs.detach(), **tight)
    network.eval(), reference.eval()
    # running statistics: put the parameters' values (gradients now) through both once more, in evaluation
    after = network(hops.to(dtype), labels.to(dtype)).logits.double()
    torch.testing.assert_close(after, reference(hops.double(), labels.double()), **tight)


def literal_logits(network, hops, labels, weights):
    """Hˡ = δ(Wˡ Hˡ⁻¹ + X⁰), l = 1 … L, H⁰ = Σ_l wˡ xˡ, as the paper writes, row by row; then the label branch."""
    head, branch = network.head, network.label_branch
    rows = []
    for x, w, y in zip(hops, weights, labels, strict=True):
        h = (w[:, None] * x).sum(0)
        for weight, bias in zip(head.weights, head.biases, strict=True):
            width = weight.shape[1]
            first = x[0] if width == F else head.maps[str(width)].T @ x[0]
            u = weight.T @ h + bias + first
            h = torch.where(u > 0, u, head.slope * u)
        rows.append(h + branch.weights[0].T @ y + branch.biases[0])
    return torch.stack(rows)


@pytest.mark.parametrize(("hidden", "layers"), [(9, 3), (F, 2), (C, 2), (9, 1)])
def test_the_head_of_the_paper_is_its_equation(hidden, layers):
    settings = Settings(
        combiner="recursive", hops=3, hop_layers=0, hidden=hidden, head_layers=layers, head_residual="features",
        residual=False, batch_norm=False, dropout=0, label_layers=1,
    )  # fmt: skip
    network = build_network(settings, features=F, classes=C, seed=1)
    for parameter in network.parameters():  # biases begin as 0
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    widths = {width for width in [hidden] * (layers - 1) + [C] if width != F}
    head = sum(pair[0] * pair[1] + pair[1] for pair in itertools.pairwise([F] + [hidden] * (layers - 1) + [C]))
    assert count_parameters(network.head) == head + 1 + sum(F * width for width in widths)
    hops, labels, _ = inputs(settings, 20)
    found = network(hops, labels)  # the fused operations
    found.logits.square().sum().backward()
    fused = {name: parameter.grad.double() for name, parameter in network.named_parameters()}
    network.double().zero_grad()
    hops, labels = hops.double(), labels.double()
    plain = network(hops, labels)
    expected = literal_logits(network, hops, labels, plain.weights)
    torch.testing.assert_close(plain.logits, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.logits.double(), expected, rtol=1e-4, atol=1e-5)
    expected.square().sum().backward()
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(fused[name], parameter.grad, rtol=1e-3, atol=1e-4)
    given = [parameter for name, parameter in network.named_parameters() if name.startswith("head.")]
    torch.autograd.gradcheck(lambda *_: network(hops[:4], labels[:4]).logits, given)


def test_sgc_is_a_linear_classifier():
    settings = Settings(
        combiner="last", hops=2, hop_layers=0, head_layers=1, residual=False, labels=False, batch_norm=False
    )
    network = build_network(settings, features=F, classes=C)
    assert count_parameters(network) == F * C + C
    x = numbers(5, 3, F)
    weight, bias = (dict(network.named_parameters())[name] for name in ("head.weights.0", "head.biases.0"))
    bias.data = numbers(C, seed=3)
    torch.testing.assert_close(network(x).logits, x[:, 2] @ weight + bias)


def test_without_hops_the_weights_are_one():
    settings = Settings(combiner="last", hops=0, hop_layers=0, labels=False)
    network = build_network(settings, features=F, classes=C)
    assert torch.equal(network(numbers(3, 1, F)).weights, torch.ones(3, 1))


def test_half_precision_hops_are_read():
    settings = Settings(combiner="mean", hops=2, hidden=8, labels=False)
    network = build_network(settings, features=F, classes=C).eval()
    hops = numbers(4, 3, F).half()
    assert torch.equal(network(hops).logits, network(hops.float()).logits)


def test_mixer_by_hand():
    mixer = SubsetMixer(hops=2, subsets=2, features=2)
    hops = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]])  # (B, S, K+1, F)
    assert mixer(hops).tolist() == [[[3, 4], [5, 6]]]  # at first the mean of the subsets
    mixer.weights[0].data = torch.tensor([[1.0, 10.0], [2.0, 0.0]])
    mixer.weights[1].data = torch.tensor([[100.0, 1000.0], [0.0, 2.0]])
    assert mixer(hops).tolist() == [[[1 + 500, 20 + 6000], [6, 16]]]


@pytest.mark.parametrize("combiner", COMBINERS)
def test_same_seed_same_bits_and_torch_left_alone(combiner):
    settings = Settings(combiner=combiner, hops=2, hidden=8)
    torch.manual_seed(5)
    first = build_network(settings, features=F, classes=C, seed=7).state_dict()
    drawn = torch.rand(3)
    torch.manual_seed(5)
    torch.testing.assert_close(drawn, torch.rand(3), rtol=0, atol=0)
    torch.manual_seed(99)
    second = build_network(settings, features=F, classes=C, seed=7).state_dict()
    other = build_network(settings, features=F, classes=C, seed=8).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["head.weights.0"], other["head.weights.0"])


def test_a_run_resumes_at_any_step_to_the_same_bits():
    settings = Settings(combiner="recursive", hops=2, hidden=8, input_dropout=0.2, attention_dropout=0.5)
    hops, labels, _ = inputs(settings, 50)

    def train(network, steps):
        optimizer = torch.optim.SGD(network.parameters(), 0.1)
        for step in steps:
            network.set_step(3, step)
            optimizer.zero_grad()
            functional.cross_entropy(network(hops, labels).logits, torch.arange(50) % C).backward()
            optimizer.step()
        return network.state_dict()

    whole = train(build_network(settings, features=F, classes=C), range(6))
    half = train(build_network(settings, features=F, classes=C), range(4))
    resumed = build_network(settings, features=F, classes=C, seed=1)
    resumed.load_state_dict(half)
    torch.rand(10)
    resumed.eval()(hops, labels)
    rest = train(resumed.train(), range(4, 6))
    assert all(torch.equal(whole[name], rest[name]) for name in whole)
    assert not torch.equal(half["head.weights.0"], rest["head.weights.0"])


@pytest.mark.parametrize(("shape", "found"), [((3, 2, F), "(2, 6)"), ((3, 3, F + 1), "(3, 7)")])
def test_wrong_shapes_are_named(shape, found):
    network = build_network(Settings(combiner="mean", hops=2, hidden=8, labels=False), features=F, classes=C)
    with pytest.raises(ShapeError) as error:
        network(torch.zeros(shape))
    assert found in str(error.value)
    assert "(3, 6)" in str(error.value)


def test_missing_labels_are_named():
    network = build_network(Settings(combiner="mean", hops=2, hidden=8), features=F, classes=C)
    with pytest.raises(ShapeError, match="label branch"):
        network(torch.zeros(3, 3, F))
    assert np.isfinite(network(torch.zeros(3, 3, F), torch.zeros(3, C)).logits.detach().numpy()).all()
