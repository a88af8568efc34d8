"""A network that was written as a file says what the network says."""

import json

import numpy as np
import pytest
import torch

from gamlp.errors import InputError, MissingExtraError
from gamlp.model import build_network
from gamlp.model.cpu import plain_torch, runs_on
from gamlp.model.export import example, export_network
from gamlp.settings import Settings


def trained(**settings):
    """Return a network with weights and running statistics that are nothing special."""
    network = build_network(Settings(hops=3, hidden=8, **settings), features=5, classes=3)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in network.state_dict().values():
            value.uniform_(0.1, 0.6, generator=generator)
    return network.eval()


def rows(network, count=7):
    generator = torch.Generator().manual_seed(1)
    return {name: torch.randn(count, *one.shape[1:], generator=generator) for name, one in example(network).items()}


@pytest.mark.parametrize("settings", [{"combiner": "smoothing"}, {"combiner": "jk", "labels": False}])
def test_torch_export_gives_the_same_logits_for_any_number_of_rows(settings, tmp_path):
    network = trained(**settings)
    inputs = export_network(network, tmp_path / "network.pt2", classes=["a", "b", "c"])
    assert ("labels" in inputs, "stationary" in inputs) == (
        settings.get("labels", True),
        "smoothing" in settings.values(),
    )
    kept = {"classes.json": ""}
    program = torch.export.load(tmp_path / "network.pt2", extra_files=kept).module()
    assert json.loads(kept["classes.json"]) == ["a", "b", "c"]
    for count in (2, 7):
        given = rows(network, count)
        with torch.no_grad():
            torch.testing.assert_close(program(**given), tuple(network(**given)), atol=1e-6, rtol=1e-5)


@pytest.mark.slow
def test_onnx_gives_the_same_logits(tmp_path):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    network = trained(combiner="recursive")
    export_network(network, tmp_path / "network.onnx", classes=["a", "b", "c"])
    session = runtime.InferenceSession(str(tmp_path / "network.onnx"))
    given = rows(network)
    logits, attention = session.run(["logits", "attention"], {name: one.numpy() for name, one in given.items()})
    with torch.no_grad():
        expected = network(**given)
    np.testing.assert_allclose(logits, expected.logits.numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(attention, expected.weights.numpy(), atol=1e-6)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == ["a", "b", "c"]


def test_the_fused_operations_step_aside_and_come_back():
    x = torch.ones(2, 3)
    assert runs_on(x)
    with plain_torch():
        assert not runs_on(x)
    assert runs_on(x)


@pytest.mark.parametrize("settings", [{}, {"head_residual": "features"}, {"head_layers": 1, "hop_layers": 0}])
def test_an_embedding_is_what_the_last_layer_reads(settings):
    """The last layer, by hand, makes the logits of it."""
    network = trained(labels=False, batch_norm=False, **settings)
    given, head = rows(network), network.head
    with torch.no_grad():
        rows_read, logits = network.embed(**given), network(**given).logits
        last = rows_read @ head.weights[-1] + head.biases[-1]
        if settings.get("head_residual"):
            last = last + given["hops"][:, 0] @ head.maps["3"]
            last = torch.where(last > 0, last, head.slope * last)
    torch.testing.assert_close(last, logits)


def test_what_cannot_be_written_is_said(tmp_path, monkeypatch):
    import sys

    with pytest.raises(InputError, match=r"ends in .onnx or .pt2"):
        export_network(trained(), tmp_path / "network.bin")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"gamlp\[onnx\]"):
        export_network(trained(labels=False), tmp_path / "network.onnx")
    assert not list(tmp_path.iterdir())
