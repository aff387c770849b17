"""Graph of an ONNX model: its nodes, its constants, and the encoding of raw columns.

Shapes: n rows, C classes; the codes of a column (n,).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn._version import __version__
from tanlearn.exports.raw_columns import MISSING, RawColumn

__all__ = ["OUTPUTS", "Graph"]

#: Names of the outputs: of the most probable class, the class probabilities and the log joint.
OUTPUTS = ("output_label", "output_probability", "output_log_joint")
#: Versions of the operators, which onnxruntime supports since 1.12.
_OPERATORS, _ML_OPERATORS, _FORMAT = 17, 2, 8
#: Maximum number of bytes of a pair of integers in a lookup; integers are stored with as many bytes as they need.
_BYTES_PER_PAIR = 12


class Graph:
    """Nodes and constants of an ONNX graph."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        #: Type of codes and indices, and of scores.
        self.integer, self.number = onnx.TensorProto.INT64, onnx.TensorProto.DOUBLE
        self.n_bytes = 0  # of all constants

    def add(self, operator: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        output = output or f"tanlearn/{len(self._nodes)}/{operator}"
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def identity(self, value: str, output: str) -> str:
        """Append a copy of a value with another name."""
        return self.add("Identity", [value], output)

    def constant(self, array: AnyArray) -> str:
        """Append a constant and return its name."""
        name = f"tanlearn/constant/{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(array), name))
        self.n_bytes += np.asarray(array).nbytes
        return name

    def columns(self, arrays: Sequence[str]) -> str:
        """Append the array whose columns are arrays of shape (n,)."""
        axis = self.constant(np.array([1]))
        return self.add("Concat", [self.add("Unsqueeze", [one, axis]) for one in arrays], axis=1)

    def split(self, array: str, n_columns: int) -> list[str]:
        """Append the columns of an array, each of shape (n,)."""
        return [self.add("Gather", [array, self.constant(np.array(i))], axis=1) for i in range(n_columns)]

    def lookup(self, keys: AnyArray, values: AnyArray, array: str) -> str:
        """Append a lookup that maps integers, which are keys, to values, and other integers to -1."""
        if not len(keys):
            keys, values = np.array([-1]), np.array([-1])
        self.n_bytes += _BYTES_PER_PAIR * len(keys)
        pairs = {"keys_int64s": keys.tolist(), "values_int64s": values.tolist(), "default_int64": -1}
        return self.add("LabelEncoder", [array], domain="ai.onnx.ml", **pairs)

    def log_softmax(self, scores: str) -> str:
        """Append the normalization of log probabilities (n, C)."""
        return self.add("LogSoftmax", [scores], axis=1)

    def code(self, column: RawColumn, n_states: int) -> str:
        """Append the encoding of a column, and return the array of its codes. Shape: (n,)."""
        missing = n_states if column.missing == MISSING else column.missing
        axis = self.constant(np.array([1]))
        if column.categories and isinstance(column.categories[0], str):
            keys = [*column.categories, ""]
            values = [*range(len(column.categories)), missing]
            rule: dict[str, Any] = {
                "domain": "ai.onnx.ml",
                "keys_strings": keys,
                "values_int64s": values,
                "default_int64": n_states,
            }
            return self.add("Squeeze", [self.add("LabelEncoder", [column.name], **rule), axis])
        is_missing = self.add("Squeeze", [self.add("IsNaN", [column.name]), axis])
        if column.cut_points is not None:
            above = self.add("Greater", [column.name, self.constant(np.array([column.cut_points], np.float64))])
            ones = self.add("Cast", [above], to=self._onnx.TensorProto.INT64)
            code = self.add("ReduceSum", [ones, axis], keepdims=0)
        else:
            known = np.array([column.categories or []], np.float64)
            equal = self.add("Equal", [column.name, self.constant(known)])
            ones = self.add("Cast", [equal], to=self._onnx.TensorProto.INT64)
            offsets = self.constant(np.arange(known.size) - n_states)  # 0 for an unseen category
            sums = self.add("ReduceSum", [self.add("Mul", [ones, offsets]), axis], keepdims=0)
            code = self.add("Add", [sums, self.constant(np.array(n_states))])
        return self.add("Where", [is_missing, self.constant(np.array(missing)), code])

    def model(self, columns: Sequence[RawColumn], labels: AnyArray, title: str, *, has_log_joint: bool) -> Any:
        """Return the model."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        inputs = []
        for column in columns:
            is_text = bool(column.categories) and isinstance((column.categories or [0])[0], str)
            kind = types.STRING if is_text else types.DOUBLE
            inputs.append(helper.make_tensor_value_info(column.name, kind, [None, 1]))
        of_labels = types.STRING if labels.dtype == object else helper.np_dtype_to_tensor_dtype(labels.dtype)
        outputs = [helper.make_tensor_value_info(OUTPUTS[0], of_labels, [None])]
        scores = OUTPUTS[1 : 2 + has_log_joint]
        outputs += [helper.make_tensor_value_info(name, types.DOUBLE, [None, len(labels)]) for name in scores]
        graph = helper.make_graph(self._nodes, "tanlearn", inputs, outputs, self._constants, doc_string=title)
        versions = [helper.make_opsetid("", _OPERATORS), helper.make_opsetid("ai.onnx.ml", _ML_OPERATORS)]
        found = helper.make_model(graph, opset_imports=versions, producer_name="tanlearn", ir_version=_FORMAT)
        found.producer_version = __version__
        self._onnx.checker.check_model(found)
        return found
