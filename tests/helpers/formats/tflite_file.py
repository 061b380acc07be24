"""TensorFlow Lite models built by hand."""

from __future__ import annotations

import flatbuffers
import numpy as np
import tflite

__all__ = ["TfliteFile"]

TYPES = {
    "float32": "FLOAT32", "float16": "FLOAT16", "int8": "INT8", "uint8": "UINT8",
    "int16": "INT16", "int32": "INT32", "int64": "INT64", "bool": "BOOL",
    "resource": "RESOURCE", "complex64": "COMPLEX64",
}  # fmt: skip


_TENSOR_FIELDS, _EXTERNAL_BUFFER = 11, 10
"""The package's classes have 10 fields."""


class TfliteFile:
    """A subgraph, tensor by tensor and operator by operator, and those that its operators call.

    >>> model = TfliteFile()
    >>> x = model.input("x", [1, 4])
    >>> model.output(model.op("RELU", [x], "y", [1, 4]))
    >>> model.save(path)
    """

    def __init__(self):
        self.tensors = []
        self.buffers = [b""]
        self.codes = []
        self.operators = []
        self.inputs = []
        self.outputs = []
        self._initial = []
        self.computes_initial = False
        """Whether the second subgraph negates what it assigns."""
        self.versions = {}
        """Of operators, by name; 1 for others."""
        self.are_behind = False
        """Whether the values of buffers, and options of bytes, lie behind the tables."""
        self.old_codes = True
        """Whether the field of 8 bits is written, which was there first."""
        self._subgraphs = []

    def begins_with(self, variable, data):
        """Assign an array to a variable in a second subgraph."""
        self._initial.append((variable, data))

    def subgraph(self):
        """Add a subgraph, and return its number and what makes its tensors and operators."""
        graph = TfliteFile()
        graph.buffers, graph.codes = self.buffers, self.codes
        self._subgraphs.append(graph)
        return len(self._subgraphs), graph

    def tensor(
        self, name, shape, dtype="float32", *, data=None, scale=None, zero=0, axis=0, **more
    ):
        """Add a tensor; return its index. ``scale`` may be a list, along ``axis``."""
        buffer = 0
        if data is not None:
            self.buffers.append(np.ascontiguousarray(data, dtype).tobytes())
            buffer = len(self.buffers) - 1
        scales = [] if scale is None else np.atleast_1d(scale).tolist()
        zeros = [zero] * len(scales)
        item = {"name": name, "shape": list(shape), "type": TYPES[dtype], "buffer": buffer,
                "scale": scales, "zero": zeros, "axis": axis, "dtype": dtype, **more}  # fmt: skip
        self.tensors.append(item)
        return len(self.tensors) - 1

    def input(self, name, shape, dtype="float32", **quant):
        """Add an input; return its index."""
        self.inputs.append(self.tensor(name, shape, dtype, **quant))
        return self.inputs[-1]

    def constant(self, name, data, **quant):
        """Add a constant of the array's own type; return its index."""
        data = np.asarray(data)
        return self.tensor(name, data.shape, data.dtype.name, data=data, **quant)

    def op(self, op, inputs, name, shape, dtype="float32", options=(), intermediates=(), **quant):
        """Add an operator with one result; return the result's index.

        ``options`` is the name of their table and a dictionary, or "custom" and bytes;
        ``intermediates`` are tensors.
        """
        return self.ops(op, inputs, [(name, shape, dtype, quant)], options, intermediates)[0]

    def ops(self, op, inputs, results, options=(), intermediates=()):
        """Add an operator with several results, each (name, shape, dtype, quantization)."""
        found = [self.tensor(name, shape, dtype, **q) for name, shape, dtype, q in results]
        if op not in self.codes:
            self.codes.append(op)
        table, values = options or (None, {})
        self.operators.append([
            self.codes.index(op),
            list(inputs),
            found,
            table,
            values,
            list(intermediates),
        ])
        return found

    def output(self, *indices):
        """Make tensors the outputs."""
        self.outputs += indices

    def save(self, path):
        """Write the file; return its path."""
        path.write_bytes(self.content())
        return path

    def content(self):
        """Return the file's bytes."""
        if not self.are_behind:
            return self._tables(None)
        behind = _Behind(start=len(self._tables(_Behind(start=2))))
        return self._tables(behind) + behind.data

    def _tables(self, behind):
        b = flatbuffers.Builder(1024)
        graphs = [self, *self._subgraphs]
        if self._initial:
            graphs.append(self._initializer())
        subgraphs = [self._subgraph(b, graph, behind) for graph in graphs]
        buffers = [self._buffer(b, data, behind) for data in self.buffers]
        codes = [self._code(b, op, self.versions.get(op, 1)) for op in self.codes]
        subgraphs = _vector(b, subgraphs)
        codes, buffers = _vector(b, codes), _vector(b, buffers)
        tflite.ModelStart(b)
        tflite.ModelAddVersion(b, 3)
        tflite.ModelAddOperatorCodes(b, codes)
        tflite.ModelAddSubgraphs(b, subgraphs)
        tflite.ModelAddBuffers(b, buffers)
        b.Finish(tflite.ModelEnd(b), file_identifier=b"TFL3")
        return bytes(b.Output())

    def _initializer(self):
        """Return the second subgraph, which shares buffers and operator codes."""
        graph = TfliteFile()
        graph.buffers, graph.codes = self.buffers, self.codes
        for name, data in self._initial:
            options = ("VarHandleOptions", {"SharedName": name})
            handle = graph.op("VAR_HANDLE", [], "handle", [], "resource", options)
            value = graph.constant("initial", data)
            if self.computes_initial:
                value = graph.op("NEG", [value], "computed", np.shape(data))
            graph.ops("ASSIGN_VARIABLE", [handle, value], [])
        return graph

    @classmethod
    def _subgraph(cls, b, graph, behind):
        tensors = [cls._tensor(b, item) for item in graph.tensors]
        operators = [cls._operator(b, behind, *item) for item in graph.operators]
        tensors, operators = _vector(b, tensors), _vector(b, operators)
        inputs, outputs = (_integers(b, x) for x in (graph.inputs, graph.outputs))
        name = b.CreateString("main")
        tflite.SubGraphStart(b)
        tflite.SubGraphAddTensors(b, tensors)
        tflite.SubGraphAddInputs(b, inputs)
        tflite.SubGraphAddOutputs(b, outputs)
        tflite.SubGraphAddOperators(b, operators)
        tflite.SubGraphAddName(b, name)
        return tflite.SubGraphEnd(b)

    @staticmethod
    def _buffer(b, data, behind):
        # What lies behind the tables comes before what a buffer has itself.
        own = data if behind is None else b"another value"
        vector = b.CreateByteVector(own) if data else None
        tflite.BufferStart(b)
        if vector is not None:
            tflite.BufferAddData(b, vector)
            if behind is not None:
                tflite.BufferAddOffset(b, behind.add(data))
                tflite.BufferAddSize(b, len(data))
        return tflite.BufferEnd(b)

    @staticmethod
    def _tensor(b, item):
        name, shape = b.CreateString(item["name"]), _integers(b, item["shape"])
        signature = item.get("signature")
        signature = None if signature is None else _integers(b, signature)
        scale = b.CreateNumpyVector(np.array(item["scale"], np.float32))
        zero = b.CreateNumpyVector(np.array(item["zero"], np.int64))
        tflite.QuantizationParametersStart(b)
        if item["scale"]:
            tflite.QuantizationParametersAddScale(b, scale)
            tflite.QuantizationParametersAddZeroPoint(b, zero)
            tflite.QuantizationParametersAddQuantizedDimension(b, item["axis"])
        tflite.QuantizationParametersAddDetailsType(b, item.get("details", 0))
        quant = tflite.QuantizationParametersEnd(b)
        b.StartObject(_TENSOR_FIELDS)
        b.PrependUint32Slot(_EXTERNAL_BUFFER, item.get("external_buffer", 0), 0)
        tflite.TensorAddShape(b, shape)
        if signature is not None:
            tflite.TensorAddShapeSignature(b, signature)
        tflite.TensorAddType(b, getattr(tflite.TensorType, item["type"]))
        tflite.TensorAddBuffer(b, item["buffer"])
        tflite.TensorAddName(b, name)
        tflite.TensorAddQuantization(b, quant)
        tflite.TensorAddIsVariable(b, item.get("is_variable", False))
        return tflite.TensorEnd(b)

    @staticmethod
    def _operator(b, behind, code, inputs, outputs, table, values, intermediates):
        inputs, outputs = _integers(b, inputs), _integers(b, outputs)
        between = _integers(b, intermediates) if intermediates else None
        options = custom = None
        if table == "custom":
            custom = b.CreateByteVector(values)
        elif table is not None:
            values = {key: _option(b, value) for key, value in values.items()}
            getattr(tflite, f"{table}Start")(b)
            for key, value in values.items():
                getattr(tflite, f"{table}Add{key}")(b, value)
            options = getattr(tflite, f"{table}End")(b)
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, code)
        tflite.OperatorAddInputs(b, inputs)
        tflite.OperatorAddOutputs(b, outputs)
        if between is not None:
            tflite.OperatorAddIntermediates(b, between)
        if custom is not None and behind is not None:
            tflite.OperatorAddLargeCustomOptionsOffset(b, behind.add(values))
            tflite.OperatorAddLargeCustomOptionsSize(b, len(values))
        elif custom is not None:
            tflite.OperatorAddCustomOptions(b, custom)
        if options is not None:
            tflite.OperatorAddBuiltinOptionsType(b, getattr(tflite.BuiltinOptions, table))
            tflite.OperatorAddBuiltinOptions(b, options)
        return tflite.OperatorEnd(b)

    def _code(self, b, op, version):
        number = getattr(tflite.BuiltinOperator, op, None)
        custom = None
        if number is None:
            number = tflite.BuiltinOperator.CUSTOM
            custom = b.CreateString(op.removeprefix("custom "))
        tflite.OperatorCodeStart(b)
        if self.old_codes:
            tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
        tflite.OperatorCodeAddBuiltinCode(b, number)
        tflite.OperatorCodeAddVersion(b, version)
        if custom is not None:
            tflite.OperatorCodeAddCustomCode(b, custom)
        return tflite.OperatorCodeEnd(b)


class _Behind:
    """Bytes behind the tables, which end at ``start``."""

    def __init__(self, start):
        self.start, self.data = start, b""

    def add(self, data):
        """Add some; return where in the file they lie."""
        self.data += data
        return self.start + len(self.data) - len(data)


def _option(b, value):
    """Return a scalar, or where a vector or a text of an option lies."""
    if isinstance(value, str):
        return b.CreateString(value)
    return _integers(b, value) if isinstance(value, list | tuple) else value


def _integers(b, values):
    return b.CreateNumpyVector(np.array(values, np.int32))


def _vector(b, offsets):
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return b.EndVector()
