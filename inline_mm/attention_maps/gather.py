"""Numbers and figures of a backbone's blocks over several images."""

import numpy as np
import torch
from mmengine.config import Config
from torch import nn

from ..errors import LaunchError
from .blocks import Pairs, average, measure, sample_rows, to_json
from .features import Features, collect
from .figures import draw_injectivity, draw_locality, draw_ranks
from .inputs import Picture, normalise
from .maps import Point, draw_maps
from .measures import METHODS

SEED = 0


class Gatherer:
    """Takes images, one after the other; has the averages at the end.

    Args:
        backbone (nn.Module): in evaluation mode, on `device`.
        cfg (Config): its config, for the normalisation of images.
        device (torch.device): where to compute.
        queries (int): see :func:`~.run.analyze`.
        note (str): what every figure says, may be empty.

    Attributes:
        others (dict[str, str]): why blocks, by name, are not looked at.
        maps (dict[str, bytes]): PNG files by name.
    """

    def __init__(
        self,
        backbone: nn.Module,
        cfg: Config,
        device: torch.device,
        queries: int,
        note: str,
    ) -> None:
        self.backbone = backbone
        self.cfg = cfg
        self.device = device
        self.queries = queries
        self.note = note
        self.others: dict[str, str] = {}
        self.maps: dict[str, bytes] = {}
        self._facts: dict[str, dict] = {}
        self._numbers: dict[str, list[dict]] = {}
        self._pairs: dict[str, dict[str, Pairs]] = {}
        self._images = 0

    def add(self, picture: Picture, points: list[Point]) -> None:
        """Measures an image.

        Args:
            picture (Picture): the image.
            points (list[Point]): queries whose maps are drawn, may be empty.

        Raises:
            LaunchError: if no block attends to the whole map.
        """
        self._images += 1
        pixels = picture.read()
        image = normalise(self.cfg, pixels).to(self.device)
        found, others = collect(self.backbone, image)
        self.others |= others
        if not found:
            raise LaunchError(
                f'no block attends to the whole map of {picture.path} '
                f'({others}); windows are not looked at'
            )
        chosen = _chosen(found)
        with torch.no_grad():
            for features in found:
                self._measure(features, features in chosen)
            for features in chosen if points else ():
                name = (
                    f'maps_{self._images:02d}_{picture.path.stem}_'
                    f'block{features.label}.png'
                )
                title = f'{_short(picture.path.name)}, block {features.label}'
                if features.kernels is not None:
                    title += ', without its local term'
                if self.note:
                    title += f', {self.note}'
                self.maps[name] = draw_maps(
                    features, points, pixels[..., ::-1], title
                )

    def _measure(self, features: Features, drawn: bool) -> None:
        name = features.name
        stage, block = features.place
        self._facts[name] = dict(
            name=name,
            label=features.label,
            stage=stage,
            block=block,
            heads=len(features.q),
            head_dim=features.q.shape[-1],
            normalization=features.normalization,
        )
        rows = sample_rows(features.hw_shape, self.queries, SEED)
        pairs = None
        if drawn:
            pairs = self._pairs.setdefault(
                name, {method: Pairs() for method in METHODS}
            )
        numbers = measure(features, rows, pairs)
        self._numbers.setdefault(name, []).append(numbers)

    @property
    def blocks(self) -> list[dict]:
        """Facts and averages of each block, in JSON's types."""
        return [
            self._facts[name]
            | dict(images=len(numbers))
            | to_json(average(numbers))
            for name, numbers in self._numbers.items()
        ]

    def draw(self) -> dict[str, bytes]:
        """All figures, PNG files by name."""
        blocks = self.blocks
        chosen = [block for block in blocks if block['name'] in self._pairs]
        return {
            'injectivity.png': draw_injectivity(
                chosen, self._pairs, self.note
            ),
            'locality.png': draw_locality(blocks, self.note),
            'effective_rank.png': draw_ranks(blocks, self.note),
            **self.maps,
        }


def _chosen(found: list[Features]) -> list[Features]:
    """The last block of each stage; of one stage the first, middle, last."""
    last = {features.place[0]: features for features in found}
    if len(last) > 1:
        return list(last.values())
    places = np.linspace(0, len(found) - 1, min(3, len(found)))
    return [found[round(place)] for place in places]


def _short(name: str, most: int = 32) -> str:
    """A file's name as a title has room for."""
    return name if len(name) <= most else f'{name[: most - 3]}...'
