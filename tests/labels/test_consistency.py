from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gamlp.labels import AveragedTeacher, consistency_loss, kl_divergence, ramp_up, sharpen


def one_weight(value: float) -> nn.Linear:
    layer = nn.Linear(1, 1, bias=False)
    layer.weight.data.fill_(value)
    return layer


def test_the_average_by_hand():
    student = one_weight(1.0)
    teacher = AveragedTeacher(student, decay=0.6)
    seen = []
    for value in (3.0, 5.0, 10.0):
        student.weight.data.fill_(value)
        teacher.update()
        seen.append(teacher(torch.ones(1, 1)).item())
    # d = min(0.6, t/(t+1)): 1/2, then 0.6, 0.6
    assert seen == pytest.approx([2.0, 0.6 * 2 + 0.4 * 5, 0.6 * 3.2 + 0.4 * 10])


def test_buffers_are_averaged_and_counters_copied():
    student = nn.BatchNorm1d(1)
    teacher = AveragedTeacher(student, decay=0.9)
    student.running_mean.fill_(4.0)
    student.num_batches_tracked.fill_(7)
    teacher.update()
    assert teacher.average.running_mean.item() == pytest.approx(2.0)
    assert teacher.average.num_batches_tracked.item() == 7


def test_shared_weights_are_averaged_once():
    shared = one_weight(0.0)
    student = nn.Sequential(shared, shared)
    teacher = AveragedTeacher(student, decay=0.5)
    shared.weight.data.fill_(4.0)
    teacher.update()
    assert teacher.average[0].weight.item() == pytest.approx(2.0)


def test_the_teacher_has_no_dropout_no_gradient_and_no_part_in_the_student():
    student = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.9))
    teacher = AveragedTeacher(student, decay=0.9)
    teacher.train()
    x = torch.ones(3, 4)
    first = teacher(x)
    assert torch.equal(first, teacher(x))
    assert not first.requires_grad
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
    assert all(parameter.requires_grad for parameter in student.parameters())
    assert student.training
    assert len(teacher.state_dict()) == len(student.state_dict()) + 1
    student[0].weight.data.zero_()
    assert torch.equal(first, teacher(x))


def test_a_checkpoint_continues_to_the_same_bits():
    def run(teacher, student, values):
        for value in values:
            student.weight.data.fill_(value)
            teacher.update()

    student = one_weight(0.0)
    whole = AveragedTeacher(student, decay=0.9)
    run(whole, student, [1.0, 2.0])
    other = one_weight(99.0)
    resumed = AveragedTeacher(other, decay=0.9)
    resumed.load_state_dict({name: value.clone() for name, value in whole.state_dict().items()})
    run(whole, student, [3.0, 4.0])
    run(resumed, other, [3.0, 4.0])
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name])


def test_the_loss_by_hand():
    logits = torch.zeros(2, 2)
    teacher = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    # (0.9−0.5)² + (0.1−0.5)² = 0.32, and 0.02
    assert consistency_loss(logits, teacher).item() == pytest.approx((0.32 + 0.02) / 2)
    assert consistency_loss(logits, teacher, threshold=0.6).item() == pytest.approx(0.32)  # 0.6 does not exceed 0.6
    # T = ½ squares: 81:1 and 36:16
    squared = [(81 / 82 - 0.5) ** 2 * 2, (36 / 52 - 0.5) ** 2 * 2]
    assert consistency_loss(logits, teacher, temperature=0.5).item() == pytest.approx(sum(squared) / 2)
    kl = 0.9 * math.log(1.8) + 0.1 * math.log(0.2)
    result = consistency_loss(logits, teacher, threshold=0.7, divergence=kl_divergence)
    assert result.item() == pytest.approx(kl, rel=1e-5)


def test_the_gradient_equals_float64_differences():
    torch.manual_seed(0)
    teacher = torch.softmax(torch.randn(5, 3, dtype=torch.float64), dim=1)
    logits = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    for divergence in ({}, {"divergence": kl_divergence}):
        assert torch.autograd.gradcheck(
            lambda x, d=divergence: consistency_loss(x, teacher, threshold=0.4, temperature=0.5, **d), (logits,)
        )


def test_an_unsure_teacher_teaches_nothing():
    logits = torch.randn(2, 2, requires_grad=True)
    loss = consistency_loss(logits, torch.full((2, 2), 0.5), threshold=0.9)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros(2, 2))


def test_no_gradient_reaches_the_teacher():
    teacher = torch.tensor([[0.9, 0.1]], requires_grad=True)
    consistency_loss(torch.zeros(1, 2, requires_grad=True), teacher).backward()
    assert teacher.grad is None


def test_sharpening_to_the_limit_is_hard_and_finite():
    rows = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(sharpen(rows, 1.0), rows)
    torch.testing.assert_close(sharpen(rows, 1e-4), torch.tensor([[1.0, 0, 0], [1.0, 0, 0]]))


def test_the_ramp_by_hand():
    assert [ramp_up(step, 10) for step in (0, 5, 10, 99)] == pytest.approx([math.exp(-5), math.exp(-1.25), 1, 1])
    assert ramp_up(0, 0) == 1


def test_the_ramp_of_one_step_begins_low_and_none_is_full_at_once():
    assert ramp_up(0, 1) == pytest.approx(math.exp(-5))
    assert ramp_up(1, 1) == ramp_up(0, 0) == ramp_up(3, -1) == 1.0


def test_updates_are_counted_in_whole_numbers():
    teacher = AveragedTeacher(nn.Linear(2, 2), 0.9)
    assert teacher.state_dict()["updates"].dtype == torch.int64


def test_an_update_leaves_the_teacher_without_a_gradient():
    student = nn.Linear(2, 2)
    teacher = AveragedTeacher(student, 0.9)
    teacher.update()
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
    assert not teacher(torch.ones(1, 2, requires_grad=True)).requires_grad


def test_a_student_that_has_grown_is_refused():
    student = nn.Sequential(nn.Linear(2, 2))
    teacher = AveragedTeacher(student, 0.9)
    student.append(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="longer"):
        teacher.update()


def test_a_row_without_an_answer_is_left_out():
    """Of several labels a node, a gap is a question whose answers are 0 and 0."""
    teacher = torch.tensor([[0.9, 0.1], [0.0, 0.0]])
    assert consistency_loss(torch.zeros(2, 2), teacher).item() == pytest.approx(0.32)


def test_the_answers_to_each_question_are_sharpened_for_themselves():
    answers = torch.tensor([[[0.75, 0.25], [0.5, 0.5]]])  # (B, Q, K); T = ½ squares: 9:1 and 1:1
    torch.testing.assert_close(sharpen(answers, 0.5), torch.tensor([[[0.9, 0.1], [0.5, 0.5]]]))


def test_the_ramp_does_not_begin_before_its_first_step():
    assert ramp_up(-3, 10) == pytest.approx(math.exp(-5))
