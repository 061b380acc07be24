"""Sensors of motion as data: registers, rates, ranges."""

from nnef_hw.boards.interfaces.motion.sensor import MotionSensor, Write

__all__ = ["MPU6050", "SENSORS"]

_FILTERS = ((184, 1), (94, 2), (44, 3), (21, 4), (10, 5), (5, 6))
"""Bandwidths in Hz of the sensor's filter, and the values of its register."""


def _mpu6050(rate: int, acceleration: int, rotation: int) -> tuple[Write, ...]:
    """Return the registers of an MPU-6050, as its register map (RM-MPU-6000A) has them."""
    band = next((value for width, value in _FILTERS if 2 * width <= rate), _FILTERS[-1][1])
    return (
        (0x6B, 0x01),  # PWR_MGMT_1: awake, clock of the gyroscope
        (0x19, 0x00),  # SMPLRT_DIV: 1,000 instants per second, of which the newest one is read
        (0x1A, band),  # CONFIG: the widest filter below half of the rate
        (0x1B, MPU6050.rotations.index(rotation) << 3),  # GYRO_CONFIG
        (0x1C, MPU6050.accelerations.index(acceleration) << 3),  # ACCEL_CONFIG
    )


MPU6050 = MotionSensor(
    name="mpu6050", title="an MPU-6050", address=0x68, identity=(0x75, 0x68), register=0x3B,
    acceleration=(0, 1, 2), rotation=(4, 5, 6), accelerations=(2, 4, 8, 16),
    rotations=(250, 500, 1000, 2000), most_rate=1000, writes=_mpu6050,
)  # fmt: skip
SENSORS = (MPU6050,)
