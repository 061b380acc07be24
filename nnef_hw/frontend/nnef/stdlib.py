"""The operators of NNEF 1.0.5, in NNEF's own words."""

from __future__ import annotations

__all__ = ["STANDARD_OPERATORS"]

STANDARD_OPERATORS = """
# variables and constants
fragment external<? = scalar>(shape: integer[]) -> (output: tensor<?>);
fragment variable<? = scalar>(shape: integer[], label: string) -> (output: tensor<?>);
fragment constant<? = scalar>(shape: integer[], value: ?[]) -> (output: tensor<?>);
fragment update<?>(variable: tensor<?>, value: tensor<?>) -> (result: tensor<?>);

# element-wise
fragment copy<?>(x: tensor<?>) -> (y: tensor<?>);
fragment neg(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment rcp(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment exp(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment log(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment sin(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment cos(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment tan(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment sinh(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment cosh(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment tanh(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment asin(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment acos(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment atan(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment asinh(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment acosh(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment atanh(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment abs(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment sign(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment floor(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment ceil(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment round(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment sqr(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment sqrt(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment rsqr(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment rsqrt(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment log2(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment relu(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment sigmoid(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment softplus(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment gelu(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment silu(x: tensor<scalar>) -> (y: tensor<scalar>);
fragment not(x: tensor<logical>) -> (y: tensor<logical>);
fragment add(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>);
fragment sub(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>);
fragment mul(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>);
fragment div(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>);
fragment pow(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>);
fragment min(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>);
fragment max(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>);
fragment lt(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<logical>);
fragment gt(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<logical>);
fragment le(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<logical>);
fragment ge(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<logical>);
fragment eq(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<logical>);
fragment ne(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<logical>);
fragment and(x: tensor<logical>, y: tensor<logical>) -> (z: tensor<logical>);
fragment or(x: tensor<logical>, y: tensor<logical>) -> (z: tensor<logical>);
fragment select<?>(condition: tensor<logical>, true_value: tensor<?>, false_value: tensor<?>) ->
    (output: tensor<?>);
fragment clamp(x: tensor<scalar>, a: tensor<scalar>, b: tensor<scalar>) -> (y: tensor<scalar>);
fragment elu(x: tensor<scalar>, alpha: scalar = 1.0) -> (y: tensor<scalar>);
fragment selu(x: tensor<scalar>, alpha: scalar = 1.67326319, lambda: scalar = 1.05070102) -> (y:
    tensor<scalar>);
fragment prelu(x: tensor<scalar>, alpha: tensor<scalar>) -> (y: tensor<scalar>);
fragment leaky_relu(x: tensor<scalar>, alpha: scalar) -> (y: tensor<scalar>);
fragment softmax(x: tensor<scalar>, axes: integer[] = [1]) -> (y: tensor<scalar>);

# sliding windows
fragment conv(input: tensor<scalar>, filter: tensor<scalar>, bias: tensor<scalar> = 0.0, border:
    string = 'constant', padding: (integer,integer)[] = [], stride: integer[] = [], dilation:
    integer[] = [], groups: integer = 1) -> (output: tensor<scalar>);
fragment deconv(input: tensor<scalar>, filter: tensor<scalar>, bias: tensor<scalar> = 0.0, border:
    string = 'constant', padding: (integer,integer)[] = [], stride: integer[] = [], dilation:
    integer[] = [], output_shape: integer[] = [], groups: integer = 1) -> (output:
    tensor<scalar>);
fragment separable_conv(input: tensor<scalar>, plane_filter: tensor<scalar>, point_filter:
    tensor<scalar>, bias: tensor<scalar> = 0.0, border: string = 'constant', padding:
    (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = [], groups: integer =
    1) -> (output: tensor<scalar>);
fragment separable_deconv(input: tensor<scalar>, plane_filter: tensor<scalar>, point_filter:
    tensor<scalar>, bias: tensor<scalar> = 0.0, border: string = 'constant', padding:
    (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = [], output_shape:
    integer[] = [], groups: integer = 1) -> (output: tensor<scalar>);
fragment box(input: tensor<scalar>, size: integer[], border: string = 'constant', padding:
    (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = [], normalize: logical
    = false) -> (output: tensor<scalar>);
fragment debox(input: tensor<scalar>, size: integer[], border: string = 'constant', padding:
    (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = [], output_shape:
    integer[] = [], normalize: logical = false) -> (output: tensor<scalar>);
fragment argmax_pool(input: tensor<scalar>, size: integer[], border: string = 'constant', padding:
    (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = []) -> (index:
    tensor<integer>);
fragment sample(input: tensor<scalar>, index: tensor<integer>, size: integer[], border: string =
    'constant', padding: (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] =
    []) -> (output: tensor<scalar>);
fragment desample(input: tensor<scalar>, index: tensor<integer>, size: integer[], border: string =
    'constant', padding: (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] =
    [], output_shape: integer[] = []) -> (output: tensor<scalar>);
fragment max_pool_with_index(input: tensor<scalar>, size: integer[], border: string = 'constant',
    padding: (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = []) ->
    (output: tensor<scalar>, index: tensor<integer>);
fragment max_pool(input: tensor<scalar>, size: integer[], border: string = 'constant', padding:
    (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = []) -> (output:
    tensor<scalar>);
fragment avg_pool(input: tensor<scalar>, size: integer[], border: string = 'constant', padding:
    (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = []) -> (output:
    tensor<scalar>);
fragment rms_pool(input: tensor<scalar>, size: integer[], border: string = 'constant', padding:
    (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = []) -> (output:
    tensor<scalar>);
fragment nearest_downsample(input: tensor<scalar>, factor: integer[]) -> (output: tensor<scalar>);
fragment area_downsample(input: tensor<scalar>, factor: integer[]) -> (output: tensor<scalar>);
fragment nearest_upsample(input: tensor<scalar>, factor: integer[]) -> (output: tensor<scalar>);
fragment multilinear_upsample(input: tensor<scalar>, factor: integer[], method: string =
    'symmetric', border: string = 'replicate') -> (output: tensor<scalar>);

# reductions
fragment sum_reduce(input: tensor<scalar>, axes: integer[], normalize: logical = false) ->
    (output: tensor<scalar>);
fragment mean_reduce(input: tensor<scalar>, axes: integer[]) -> (output: tensor<scalar>);
fragment max_reduce(input: tensor<scalar>, axes: integer[]) -> (output: tensor<scalar>);
fragment min_reduce(input: tensor<scalar>, axes: integer[]) -> (output: tensor<scalar>);
fragment argmax_reduce(input: tensor<scalar>, axes: integer[]) -> (output: tensor<integer>);
fragment argmin_reduce(input: tensor<scalar>, axes: integer[]) -> (output: tensor<integer>);
fragment any_reduce(input: tensor<logical>, axes: integer[]) -> (output: tensor<logical>);
fragment all_reduce(input: tensor<logical>, axes: integer[]) -> (output: tensor<logical>);
fragment moments(input: tensor<scalar>, axes: integer[]) -> (mean: tensor<scalar>, variance:
    tensor<scalar>);

# shapes
fragment reshape<?>(input: tensor<?>, shape: integer[], axis_start: integer = 0, axis_count:
    integer = -1) -> (output: tensor<?>);
fragment transpose<?>(input: tensor<?>, axes: integer[]) -> (output: tensor<?>);
fragment squeeze<?>(input: tensor<?>, axes: integer[]) -> (output: tensor<?>);
fragment unsqueeze<?>(input: tensor<?>, axes: integer[]) -> (output: tensor<?>);
fragment concat<?>(values: tensor<?>[], axis: integer) -> (value: tensor<?>);
fragment stack<?>(values: tensor<?>[], axis: integer) -> (value: tensor<?>);
fragment split<?>(value: tensor<?>, axis: integer, ratios: integer[]) -> (values: tensor<?>[]);
fragment unstack<?>(value: tensor<?>, axis: integer) -> (values: tensor<?>[]);
fragment slice<?>(input: tensor<?>, axes: integer[], begin: integer[], end: integer[], stride:
    integer[] = []) -> (output: tensor<?>);
fragment tile<?>(input: tensor<?>, repeats: integer[]) -> (output: tensor<?>);
fragment pad(input: tensor<scalar>, padding: (integer,integer)[], border: string = 'constant',
    value: scalar = 0.0) -> (output: tensor<scalar>);
fragment gather<?>(input: tensor<?>, indices: tensor<integer>, axis: integer = 0) -> (output:
    tensor<?>);
fragment cast<?>(input: tensor<>) -> (output: tensor<?>);
fragment copy_n<?>(x: tensor<?>, times: integer) -> (y: tensor<?>[]);
fragment add_n(x: tensor<scalar>[]) -> (y: tensor<scalar>);

# matrices
fragment matmul(A: tensor<scalar>, B: tensor<scalar>, transposeA: logical = false, transposeB:
    logical = false) -> (C: tensor<scalar>);
fragment linear(input: tensor<scalar>, filter: tensor<scalar>, bias: tensor<scalar> = 0.0) ->
    (output: tensor<scalar>);

# normalization
fragment batch_normalization(input: tensor<scalar>, mean: tensor<scalar>, variance:
    tensor<scalar>, offset: tensor<scalar>, scale: tensor<scalar>, epsilon: scalar) -> (output:
    tensor<scalar>);
fragment local_response_normalization(input: tensor<scalar>, size: integer[], alpha: scalar = 1.0,
    beta: scalar = 0.5, bias: scalar = 1.0) -> (output: tensor<scalar>);
fragment local_mean_normalization(input: tensor<scalar>, size: integer[]) -> (output:
    tensor<scalar>);
fragment local_variance_normalization(input: tensor<scalar>, size: integer[], bias: scalar = 0.0,
    epsilon: scalar = 0.0) -> (output: tensor<scalar>);
fragment local_contrast_normalization(input: tensor<scalar>, size: integer[], bias: scalar = 0.0,
    epsilon: scalar = 0.0) -> (output: tensor<scalar>);
fragment l1_normalization(input: tensor<scalar>, axes: integer[], bias: scalar = 0.0, epsilon:
    scalar = 0.0) -> (output: tensor<scalar>);
fragment l2_normalization(input: tensor<scalar>, axes: integer[], bias: scalar = 0.0, epsilon:
    scalar = 0.0) -> (output: tensor<scalar>);

# regions of interest
fragment avg_roi_pool(input: tensor<scalar>, rois: tensor<scalar>, batch_index: tensor<integer>,
    output_size: integer[]) -> (output: tensor<scalar>);
fragment max_roi_pool(input: tensor<scalar>, rois: tensor<scalar>, batch_index: tensor<integer>,
    output_size: integer[]) -> (output: tensor<scalar>);
fragment roi_resample(input: tensor<scalar>, rois: tensor<scalar>, batch_index: tensor<integer>,
    output_size: integer[], method: string = 'symmetric') -> (output: tensor<scalar>);
fragment avg_roi_align(input: tensor<scalar>, rois: tensor<scalar>, batch_index: tensor<integer>,
    output_size: integer[], sampling_rate: integer[], resize_method: string = 'symmetric') ->
    (output: tensor<scalar>);
fragment max_roi_align(input: tensor<scalar>, rois: tensor<scalar>, batch_index: tensor<integer>,
    output_size: integer[], sampling_rate: integer[], resize_method: string = 'symmetric') ->
    (output: tensor<scalar>);

# quantization
fragment min_max_linear_quantize(x: tensor<scalar>, min: tensor<scalar>, max: tensor<scalar>,
    bits: integer, signed: logical, symmetric: logical) -> (y: tensor<scalar>);
fragment zero_point_linear_quantize(x: tensor<scalar>, zero_point: tensor<integer>, scale:
    tensor<scalar>, bits: integer, signed: logical, symmetric: logical) -> (y: tensor<scalar>);
fragment linear_quantize(x: tensor<scalar>, min: tensor<scalar>, max: tensor<scalar>, bits:
    integer) -> (y: tensor<scalar>);
fragment logarithmic_quantize(x: tensor<scalar>, max: tensor<scalar>, bits: integer) -> (y:
    tensor<scalar>);
"""
