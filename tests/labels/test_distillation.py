from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gamlp.labels import distillation_loss, kl_divergence, soften, squared_difference


def paper_loss(student_logits, teacher):
    """Σ_i α_i Σ_j P_ij log(P_ij / Q_ij) in float64, divided by the number of rows."""
    total = 0.0
    for logits, row in zip(student_logits, teacher, strict=True):
        normalizer = sum(math.exp(value) for value in logits)
        for value, target in zip(logits, row, strict=True):
            if target > 0:
                total += max(row) * target * math.log(target / (math.exp(value) / normalizer))
    return total / len(teacher)


def test_by_hand():
    # P = (3/4, 1/4), Q = (1/2, 1/2): KL = 3/4·ln(3/2) + 1/4·ln(1/2), α = 3/4
    expected = 0.75 * (0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert distillation_loss(torch.zeros(1, 2), torch.tensor([[0.75, 0.25]])).item() == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [1.0, 0.3, 0.001])
def test_equals_a_float64_loop(temperature):
    random = np.random.default_rng(3)
    student, teacher = random.normal(size=(2, 30, 6)).astype(np.float32)
    teacher = soften(teacher, temperature)
    loss = distillation_loss(torch.from_numpy(student), torch.from_numpy(teacher))
    assert loss.item() == pytest.approx(paper_loss(student.astype(float), teacher.astype(float)), rel=1e-5)


def test_a_hard_teacher_gives_cross_entropy_and_its_gradient():
    logits = torch.tensor([[2.0, -1.0, 0.5]], requires_grad=True)
    loss = distillation_loss(logits, torch.tensor([[1.0, 0.0, 0.0]]))
    loss.backward()
    q = torch.softmax(logits.detach(), dim=1)
    assert loss.item() == pytest.approx(-math.log(q[0, 0]), rel=1e-6)
    torch.testing.assert_close(logits.grad, q - torch.tensor([[1.0, 0.0, 0.0]]))


def test_it_is_zero_only_where_the_student_agrees():
    logits = torch.tensor([[0.3, -0.2, 1.0]])
    assert distillation_loss(logits, torch.softmax(logits, dim=1)).item() == pytest.approx(0, abs=1e-7)
    assert distillation_loss(-logits, torch.softmax(logits, dim=1)).item() > 0.1


def test_an_extreme_student_stays_finite():
    logits = torch.tensor([[1e4, -1e4]], requires_grad=True)
    loss = distillation_loss(logits, torch.tensor([[0.0, 1.0]]))
    loss.backward()
    assert loss.item() == pytest.approx(2e4)
    assert torch.isfinite(logits.grad).all()


def test_an_empty_batch_costs_nothing_and_can_be_differentiated():
    logits = torch.zeros(0, 3, requires_grad=True)
    loss = distillation_loss(logits, torch.zeros(0, 3))
    loss.backward()
    assert loss.item() == 0


def test_differences_are_summed_over_the_answers_to_each_question():
    target, student = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]]), torch.full((1, 2, 2), 0.5)  # (B, Q, K)
    torch.testing.assert_close(squared_difference(target, student.log()), torch.tensor([[0.5, 0.0]]))
    torch.testing.assert_close(kl_divergence(target, student.log()), torch.tensor([[math.log(2), 0.0]]))
