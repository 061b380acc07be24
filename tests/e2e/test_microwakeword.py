"""microWakeWord's streaming networks: what TensorFlow Lite's kernels give of the original front."""

import numpy as np
import pytest
from audio import read_wav, sounds

import nnef_hw as nh

CUTS = {"marvin.wav": slice(0, 14_400), "short_wav_easy10s.wav": slice(16_000, 32_000)}


def probabilities(path, samples):
    """Codes of the original: features of samples behind silence, three frames a step."""
    tflite = pytest.importorskip("ai_edge_litert.interpreter", reason="pip install ai-edge-litert")
    original = pytest.importorskip("pymicro_features", reason="pip install -e '.[crosscheck]'")
    front, frames = original.MicroFrontend(), []
    for chunk in np.concatenate([np.zeros(320, np.int64), samples]).reshape(-1, 160):
        found = front.process_samples(chunk.astype("<i2").tobytes()).features
        frames += [found] if found else []
    # as firmware makes codes of them
    integers = np.rint(np.array(frames) * 25.6).astype(int)
    codes = ((integers * 256 + 333) // 666 - 128).clip(-128, 127).astype(np.int8)
    interpreter = tflite.Interpreter(
        str(path), experimental_op_resolver_type=tflite.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    given, taken = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    results = []
    for step in codes.reshape(-1, *given["shape"]):
        interpreter.set_tensor(given["index"], step)
        interpreter.invoke()
        results.append(int(interpreter.get_tensor(taken["index"]).ravel()[0]))
    return results


def test_every_probability_is_that_of_the_original(realworld, sense, rng):
    path = realworld / "t_mww_vad.tflite"
    if not path.is_file():
        pytest.skip(f"no {path.name}")
    step = nh.load(path).graph.tensor("serving_default_input_audio_0").quant.args["scale"]
    front = nh.features.micro_frontend(scale=256 / 666 * step)
    fixed = nh.load(path, front=front).quantize()
    heard = [read_wav(sense / name)[cut] for name, cut in CUTS.items()]
    heard += [sounds(rng, 14_400)[name] for name in ("clipped", "silence", "swelling")]
    for samples in heard:
        samples = samples[: samples.size // 480 * 480]
        [found] = fixed.run(samples.reshape(1, -1, 1, 1, 480, 1) / 32_768).values()
        codes = np.rint(found.reshape(-1) * 256).astype(int)
        assert codes.tolist() == probabilities(path, samples)
