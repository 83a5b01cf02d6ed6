"""Pictures of an episode, and films made of them: what the agent sees beside the map with its path.

The map is drawn once per episode; each step adds one stroke to it, in the colour of its phase.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from sf_explore_go.core.errors import UsageError
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.worlds.doom.mapview import EXPLORE, GO, INK, map_figure
from sf_explore_go.worlds.doom.scenario import Scenario

Picture = NDArray[np.uint8]

HEIGHT = 480  # of view and map, pixels
HEADER = 44
MAP_SHARE = 0.77  # of the map figure's width; the rest is its legend
FORMATS = (".mp4", ".gif")
COLOURS = {Phase.EXPLORE: EXPLORE, Phase.GO: GO}
NAMES = {Phase.EXPLORE: "explore phase", Phase.GO: "go phase"}


def check_video_path(path: Path) -> None:
    """Refuse a path that cannot become a film, before anything is played for it."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--save_video={path}: allowed are names that end in {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise UsageError(f"--save_video={path}: the folder {path.parent} does not exist")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"--save_video={path}: it cannot be written there")


def rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return red, green, blue


class PathMap:
    """A scenario's map with the path of one episode on it."""

    def __init__(self, scenario: Scenario, goal: int | None) -> None:
        figure = map_figure(scenario, dpi=HEIGHT / 6.6)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        whole = np.asarray(canvas.buffer_rgba())[..., :3]
        self._picture: Picture = whole[:, : round(MAP_SHARE * whole.shape[1])].copy()
        self._axes, self._rows = figure.axes[0], whole.shape[0]
        self._last: tuple[int, int] | None = None
        if goal is not None:
            point = scenario.point(goal)
            cv2.circle(self._picture, self.pixel((point.x, point.y)), 17, rgb(INK), 3, cv2.LINE_AA)

    def pixel(self, position: tuple[float, float]) -> tuple[int, int]:
        x, y = self._axes.transData.transform(position)
        return round(float(x)), round(self._rows - float(y))

    def move(self, position: tuple[float, float], phase: Phase) -> None:
        """Add the step that led here."""
        here = self.pixel(position)
        if self._last is not None:
            cv2.line(self._picture, self._last, here, rgb(COLOURS[phase]), 3, cv2.LINE_AA)
        self._last = here

    def show(self, angle: float, phase: Phase) -> Picture:
        """The map as it is now, with the player as a dot that points where it looks."""
        picture = self._picture.copy()
        if self._last is not None:
            turn = np.radians(angle)
            tip = (round(self._last[0] + 15 * float(np.cos(turn))), round(self._last[1] - 15 * float(np.sin(turn))))
            cv2.line(picture, self._last, tip, rgb(INK), 3, cv2.LINE_AA)
            cv2.circle(picture, self._last, 7, rgb(COLOURS[phase]), -1, cv2.LINE_AA)
            cv2.circle(picture, self._last, 7, (255, 255, 255), 1, cv2.LINE_AA)
        return picture


def font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """The one that matplotlib brings, so that films look the same everywhere."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts/ttf" / name), size)


def compose(view: Picture, beside: Picture | None, text: str, phase: Phase) -> Picture:
    """One frame: the agent's view, the map beside it if there is one, and a line of text above; even sides."""
    scale = HEIGHT / view.shape[0]
    large = cv2.resize(view, (round(view.shape[1] * scale), HEIGHT), interpolation=cv2.INTER_NEAREST)
    parts = [large] if beside is None else [large, beside[:HEIGHT]]
    body = np.concatenate(parts, axis=1)
    body = body[:, : body.shape[1] // 2 * 2]
    head = Image.new("RGB", (body.shape[1], HEADER), "white")
    draw = ImageDraw.Draw(head)
    draw.text((12, HEADER // 2), text, fill=INK, font=font(17), anchor="lm")
    name, right = NAMES[phase], body.shape[1] - 12
    width = draw.textlength(name, font=font(17, bold=True))
    draw.rounded_rectangle((right - width - 20, 7, right, HEADER - 7), 8, fill=COLOURS[phase])
    draw.text((right - 10, HEADER // 2), name, fill="white", font=font(17, bold=True), anchor="rm")
    return np.concatenate([np.asarray(head), body])


def save_video(path: Path, frames: Iterable[Picture], fps: float) -> int:
    """Write a film; the name appears only when it is complete. Returns the number of its frames."""
    temporary = path.with_name(f".{path.stem}.tmp{path.suffix.lower()}")
    write = write_gif if path.suffix.lower() == ".gif" else write_mp4
    try:
        count = write(temporary, frames, fps)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def write_mp4(path: Path, frames: Iterable[Picture], fps: float) -> int:
    writer: Any = None
    count = 0
    for frame in frames:
        if writer is None:
            size = (frame.shape[1], frame.shape[0])
            writer = open_writer(path, fps, size)
        writer.write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
        count += 1
    if writer is not None:
        writer.release()
    return count


def open_writer(path: Path, fps: float, size: tuple[int, int]) -> Any:
    """MPEG-4: OpenCV's wheel has no H.264, and VP9, which it has, takes minutes where this takes seconds."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), fps, size)
    if writer.isOpened():
        return writer
    raise UsageError(f"--save_video={path.name}: OpenCV here can write no MP4; allowed is a name that ends in .gif")


def write_gif(path: Path, frames: Iterable[Picture], fps: float) -> int:
    """Half the size and every second frame, since a GIF is large."""
    small = [
        Image.fromarray(cv2.resize(frame, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)).quantize(64)
        for number, frame in enumerate(frames)
        if number % 2 == 0
    ]
    small[0].save(path, save_all=True, append_images=small[1:], duration=round(2000 / fps), loop=0)
    return len(small)
