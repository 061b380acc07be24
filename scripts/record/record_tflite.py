"""Record what TensorFlow Lite's reference kernels compute of the tests' operators.

python scripts/record/record_tflite.py needs ai-edge-litert (pip install nnef-hw[crosscheck]).
"""

import sys
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

sys.path.extend(
    str(x) for x in (Path(__file__).parents[2] / "tests/helpers").rglob("*") if x.is_dir()
)
from tflite_cases import RESULTS, operator_cases
from tflite_kernel_cases import kernel_cases
from tflite_quantized_cases import quantized_cases


def compute(content, inputs):
    """Return the outputs of a model."""
    interpreter = Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def main():
    """Write the results of every case, by its name and number of the output."""
    results = {}
    for name, case in operator_cases().items():
        for index, values in enumerate(compute(case.model.content(), case.inputs)):
            results[f"{name}/{index}"] = values
    for name, case in (quantized_cases() | kernel_cases()).items():
        samples = zip(*case.inputs, strict=True)
        rows = [compute(case.model.content(), [x[None] for x in row]) for row in samples]
        results[name] = np.concatenate([row[0] for row in rows])
    RESULTS.parent.mkdir(exist_ok=True)
    np.savez_compressed(RESULTS, **results)
    print(f"{len(results)} results")


if __name__ == "__main__":
    main()
