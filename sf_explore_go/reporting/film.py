"""Pictures of an episode, and films made of them: what the agent sees beside the map with its path.

The map is drawn once per episode; each step adds one stroke to it, in the colour of its phase.
"""

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path

import cv2
import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from sf_explore_go.core.errors import UsageError
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.doom.mapview import EXPLORE, GO, INK, SPLIT_COLOURS

Picture = NDArray[np.uint8]

HEIGHT = 480  # of view and map, pixels
HEADER = 44
MIN_WIDTH = 760  # what the header's text and badge take; narrower worlds stand in the middle
MARGIN = 12
TEXT_SIZE = 17
MAP_SHARE = 0.77  # of the map figure's width; the rest is its legend
FORMATS = (".mp4", ".gif")
COLOURS = {Phase.EXPLORE: EXPLORE, Phase.GO: GO}
NAMES = {Phase.EXPLORE: "explore phase", Phase.GO: "go phase"}
KEPT = (*SPLIT_COLOURS.values(), EXPLORE, GO, INK, "white")  # colours that a GIF's palette must not lose
END_SHOWN = 1000  # milliseconds for which a GIF shows the last picture of an episode


def check_video_path(path: Path) -> None:
    """Refuse a path that cannot become a film, before anything is played for it."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--save_video={path}: the name must end in {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise UsageError(f"--save_video={path}: the folder {path.parent} does not exist")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"--save_video={path}: it cannot be written there")


def rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return red, green, blue


def path_map(world: World, goal: int | None) -> "PathMap | None":
    """A fresh map of the world; None if it has none."""
    figure = world.map_figure()
    return None if figure is None else PathMap(world, figure, goal)


class PathMap:
    """A world's map with the path of one episode on it."""

    def __init__(self, world: World, figure: Figure, goal: int | None) -> None:
        figure.set_dpi(HEIGHT / figure.get_figheight())
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        whole = np.asarray(canvas.buffer_rgba())[..., :3]
        self._picture: Picture = whole[:, : round(MAP_SHARE * whole.shape[1])].copy()
        self._axes, self._rows = figure.axes[0], whole.shape[0]
        self._last: tuple[int, int] | None = None
        if goal is not None and (position := world.goal_position(goal)) is not None:
            cv2.circle(self._picture, self.pixel(position), 17, rgb(INK), 3, cv2.LINE_AA)

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
    missing = max(0, MIN_WIDTH - body.shape[1])
    body = np.pad(body, ((0, 0), (missing // 2, missing - missing // 2), (0, 0)), constant_values=255)
    body = body[:, : body.shape[1] // 2 * 2]
    return np.concatenate([header(body.shape[1], text, phase), body])


def header(width: int, text: str, phase: Phase) -> Picture:
    """The line of text, in a smaller type where it would run under the badge that names the phase."""
    head = Image.new("RGB", (width, HEADER), "white")
    draw = ImageDraw.Draw(head)
    name, bold, right = NAMES[phase], font(TEXT_SIZE, bold=True), width - MARGIN
    left = right - draw.textlength(name, font=bold) - 20
    room = left - 2 * MARGIN
    size = min(TEXT_SIZE, int(TEXT_SIZE * room / draw.textlength(text, font=font(TEXT_SIZE))))
    draw.text((MARGIN, HEADER // 2), text, fill=INK, font=font(size), anchor="lm")
    draw.rounded_rectangle((left, 7, right, HEADER - 7), 8, fill=COLOURS[phase])
    draw.text((right - 10, HEADER // 2), name, fill="white", font=bold, anchor="rm")
    return np.asarray(head)


def save_video(path: Path, episodes: Iterable[Iterable[Picture]], fps: float) -> int:
    """Write a film of episodes; the name appears only when it is complete. Returns the number of its frames."""
    temporary = path.with_name(f".{path.stem}.tmp{path.suffix.lower()}")
    write = write_gif if path.suffix.lower() == ".gif" else write_mp4
    try:
        count = write(temporary, episodes, fps)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def write_mp4(path: Path, episodes: Iterable[Iterable[Picture]], fps: float) -> int:
    """H.264 with the pixels that every browser plays, and its index in front, so that it starts before it is loaded."""
    import av  # large, and only films need it

    count = 0
    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000), options={"crf": "20"})
        stream.pix_fmt = "yuv420p"
        for frame in chain.from_iterable(episodes):
            if count == 0:
                stream.height, stream.width = frame.shape[:2]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            count += 1
        container.mux(stream.encode())
    return count


def write_gif(path: Path, episodes: Iterable[Iterable[Picture]], fps: float) -> int:
    """About half the size and every second frame, since a GIF is large."""
    pictures: list[Image.Image] = []
    durations: list[int] = []
    for frames in episodes:
        few = [with_few_colours(frame) for frame in every_second(frames)]
        pictures += few
        durations += [round(2000 / fps)] * (len(few) - 1) + [END_SHOWN]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=durations, loop=0)
    return len(pictures)


def every_second(frames: Iterable[Picture]) -> Iterator[Picture]:
    """Every second frame, and the last in any case: it says how the episode ended."""
    number, frame = 0, None
    for number, frame in enumerate(frames):
        if number % 2 == 0:
            yield frame
    if frame is not None and number % 2 == 1:
        yield frame


def with_few_colours(frame: Picture) -> Image.Image:
    """A smaller picture of 256 colours. The most frequent ones would leave out small marks on the map."""
    small = Image.fromarray(cv2.resize(frame, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA))
    kept = [part for colour in KEPT for part in rgb(colour)]
    frequent = small.quantize(256 - len(KEPT)).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette((kept + frequent)[: 3 * 256])
    return small.quantize(palette=palette, dither=Image.Dither.NONE)
