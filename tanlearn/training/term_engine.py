"""Engine for gradient k-trees, with compiled epochs over terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import FloatArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels import terms
from tanlearn.kernels._lanes import LANES, padded
from tanlearn.training.engines import Engine
from tanlearn.training.losses import CompiledLoss
from tanlearn.training.optimizers import Adam
from tanlearn.training.tan_state import Plan
from tanlearn.training.term_state import TermState

__all__ = ["TermEngine"]

#: Decay of the mean squared gradients. A row of a term is updated rarely, so with 0.999, its step size would depend on
#: outdated gradients. On letter, the error was then half a percentage point higher than with 0.99.
DECAY = 0.99
#: Number of steps between two checks of all terms.
CHECK_EVERY = 100
#: Number of powers of the decay. Later powers are below 1e-17 and have no effect on a sum.
_POWERS = (DECAY ** np.arange(4096.0)).astype(np.float32)
#: Factor for the learning rate of the structure logits, which take one step in four steps of the terms. On vehicle, the
#: mean entropy of the choices after training was 2.6 nats if the logits took a step each time. With one step in four,
#: it was 3.4 nats with the factor 2, and 1.7 nats with the factor 4.
FASTER = 3.0


class TermEngine(Engine):
    """Compiled steps over terms that release the GIL.

    The score of a row does not include terms whose families have a missing value. ``weights`` has shape (n_samples,),
    float32, with mean 1.
    """

    # updated in place
    state: TermState  # type: ignore[assignment]

    def __init__(
        self, state: TermState, data: EncodedData, weights: FloatArray, loss: CompiledLoss, batch_size: int
    ) -> None:
        super().__init__(state, data)  # type: ignore[arg-type]
        self._checked = 0  # steps at the last check of all terms
        real = np.float32
        size, lanes = min(batch_size, data.n_samples), padded(data.n_classes)
        layout, candidates, form = state.layout, state.candidates, state.fixed_point
        n_terms, n_features = layout.n_tables, data.n_features
        self.adam = Adam(np.zeros(data.n_classes, real))
        self.structure_adam = Adam(state.phi)
        self.problem = terms.TermProblem(
            codes=data.codes,
            y=data.y,
            weight=weights,
            families=layout.arrays(),
            group=candidates.group,
            members=state.members,
            first_row=(layout.offset[:-1] - data.n_classes) // data.n_classes,
            is_independent=candidates.draws == "independent",
            missing=missing_code(data.codes.dtype),
            loss=loss.kind,
            loss_parameters=np.array(loss.kernel_parameters(), real),
            rounding=np.zeros(2, real) if form is None else np.array([form.step, 2**form.n_bits - 1], real),
        )
        n_rows = layout.n_cells // data.n_classes - 1
        self.parameters = terms.TermParameters(
            theta=state.cells,
            v=np.zeros(layout.n_cells + lanes, real)[: layout.n_cells],
            prior_m=self.adam.m,
            touched=np.zeros(n_rows, np.int32),
            phi=state.phi,
            phi_m=self.structure_adam.m,
            phi_v=self.structure_adam.v,
        )
        self._scratch = terms.TermScratch(
            batch_codes=np.empty((n_features, size), data.codes.dtype),
            scores=np.zeros((size, lanes), real),
            d_scores=np.zeros((size, lanes), real),
            n_moving=np.empty(1, np.intp),
            sums=np.zeros(size * lanes + LANES, real),
            noise=np.empty(n_terms, real),
            perturbed=np.empty(n_terms),
            selected=state.selected,
            d_choice=np.zeros(n_terms),
            d_phi=np.empty(n_terms),
            is_used=np.zeros(n_terms, np.bool_),
            start=np.empty(size, np.intp),
            rows=np.empty(size, np.intp),
            slot=np.zeros(n_rows, np.int32),
            d_rows=np.zeros(size * lanes, real),
            d_prior=np.empty(data.n_classes, real),
            highest=np.empty(n_features),
            ancestors=np.empty((n_features, -(-n_features // 64)), np.uint64),
        )

    def _total_loss(self, plan: Plan, rates: tuple[float, float], temperature: float) -> float:
        n_steps, real, n_done = len(plan.order), np.float32, self.adam.t
        n_structure_steps = len(range(-n_done % terms.STRUCTURE_STRIDE, n_steps, terms.STRUCTURE_STRIDE))
        steps = terms.TermSteps(
            order=plan.order,
            uniform=plan.noise,
            n_done=n_done,
            rate=real(rates[0]),
            decay_powers=_POWERS,
            prior_step_sizes=self.adam.advance(n_steps, rates[0]).astype(real),
            structure_step_sizes=self.structure_adam.advance(n_structure_steps, FASTER * rates[1]),
            beta1=real(self.adam.beta1),
            beta2=real(self.adam.beta2),
            epsilon=real(self.adam.epsilon),
            temperature=temperature,
        )
        return float(terms.train_terms(self.problem, self.parameters, steps, self._scratch))

    def _is_finite(self) -> bool:
        """Check the terms every 100 steps, because a check takes as long as several steps.

        If a term is not finite, the loss of each batch that uses the term is not finite, either.
        """
        if self.adam.t < self._checked + CHECK_EVERY:
            return True
        self._checked = self.adam.t
        return super()._is_finite()

    def set_state(self, state: Any) -> None:
        """Restore a state. Raise ValueError if it belongs to another problem, or a row was updated after its steps."""
        super().set_state(state)
        if self.parameters.touched.max(initial=0) > self.adam.t:
            raise ValueError(f"touched must contain at most n_steps ({self.adam.t}) steps.")
