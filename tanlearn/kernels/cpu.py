"""CPU kernels that also have a CUDA version of the same name in ``cuda/cuda_kernels.py``."""

from tanlearn.kernels.adam import adam_step as adam_step
from tanlearn.kernels.aode import log_sum_joint as log_sum_joint
from tanlearn.kernels.aode import pick_rows as pick_rows
from tanlearn.kernels.counts import count_classes as count_classes
from tanlearn.kernels.counts import count_families as count_families
from tanlearn.kernels.counts import count_pairs as count_pairs
from tanlearn.kernels.losses import loss_rows as loss_rows
from tanlearn.kernels.losses import weigh_rows as weigh_rows
from tanlearn.kernels.mathematics import normalize as normalize
from tanlearn.kernels.mathematics import normalize_adjoint as normalize_adjoint
from tanlearn.kernels.scores import choice_gradient as choice_gradient
from tanlearn.kernels.scores import log_joint as log_joint
from tanlearn.kernels.scores import log_joint_adjoint as log_joint_adjoint
from tanlearn.kernels.trees import draw_arborescence as draw_arborescence
from tanlearn.kernels.trees import draw_independent as draw_independent
from tanlearn.kernels.trees import gumbel as gumbel
from tanlearn.kernels.trees import perturb as perturb
from tanlearn.kernels.trees import size_penalty_gradient as size_penalty_gradient
from tanlearn.kernels.trees import structure_gradient as structure_gradient
