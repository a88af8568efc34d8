import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from sklearn.metrics import log_loss as sklearn_log_loss

from gamlp.train.metrics import accuracy, log_loss, macro_f1, mean_and_std


@pytest.fixture
def guesses():
    random = np.random.default_rng(0)
    return random.dirichlet(np.ones(4), size=50).astype(np.float32), random.integers(0, 4, 50)


def test_scores_are_scikit_learns(guesses):
    probabilities, labels = guesses
    predicted = probabilities.argmax(axis=1)
    assert accuracy(probabilities, labels) == pytest.approx(accuracy_score(labels, predicted))
    assert macro_f1(probabilities, labels) == pytest.approx(f1_score(labels, predicted, average="macro"))
    exact = probabilities.astype(np.float64)
    expected = sklearn_log_loss(labels, exact / exact.sum(axis=1, keepdims=True))
    assert log_loss(probabilities, labels) == pytest.approx(expected, rel=1e-5)


def test_a_class_that_occurs_nowhere_is_left_out_of_macro_f1():
    probabilities = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    assert macro_f1(probabilities, np.array([0, 1])) == 1.0


def test_a_certain_mistake_costs_much_but_not_infinity():
    assert log_loss(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(-np.log(np.finfo(np.float32).tiny))


def test_the_deviation_is_unbiased():
    assert mean_and_std([1.0, 2.0, 4.0]) == (pytest.approx(7 / 3), pytest.approx(np.std([1, 2, 4], ddof=1)))
    assert mean_and_std([5.0]) == (5.0, None)
