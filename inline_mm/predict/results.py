"""A host's predictions for one picture: in words, and drawn."""

from abc import ABC, abstractmethod

import numpy as np
from mmengine.registry import VISUALIZERS
from mmengine.structures import PixelData

TOP = 5


class Result(ABC):
    """What a kind of model predicts.

    Args:
        classes (list[str]): names of the classes.
        score (float): detections below are left out.
    """

    def __init__(self, classes: list[str], score: float) -> None:
        self.classes = classes
        self.score = score

    @abstractmethod
    def describe(self, sample) -> dict:
        """The prediction in JSON's types.

        Args:
            sample (BaseDataElement): what the model returned.

        Returns:
            dict: entries of the picture's record.
        """

    @abstractmethod
    def draw(self, image: np.ndarray, sample) -> np.ndarray:
        """The prediction over the picture.

        Args:
            image (np.ndarray): RGB, (H, W, 3), uint8.
            sample (BaseDataElement): what the model returned.

        Returns:
            np.ndarray: RGB, uint8.
        """

    def mask(self, sample) -> np.ndarray | None:
        """Class of each pixel, (H, W); None where there is no such thing.

        Args:
            sample (BaseDataElement): what the model returned.
        """
        return None


class Detections(Result):
    """Boxes and masks of mmdet."""

    def __init__(self, classes: list[str], score: float) -> None:
        super().__init__(classes, score)
        self._visualizer = _visualizer('DetLocalVisualizer')
        self._visualizer.dataset_meta = dict(classes=classes, palette=None)

    def describe(self, sample) -> dict:
        """Boxes in pixels (x1, y1, x2, y2); masks as COCO's RLE."""
        from pycocotools import mask as coco

        found = sample.pred_instances
        found = found[found.scores >= self.score]
        detections = []
        for index, label in enumerate(found.labels.tolist()):
            detection = dict(
                label=label,
                name=self.classes[label],
                score=found.scores[index].item(),
                bbox=found.bboxes[index].tolist(),
            )
            if 'masks' in found:
                bits = np.asfortranarray(found.masks[index].numpy(), np.uint8)
                code = coco.encode(bits)
                detection['mask'] = dict(code, counts=code['counts'].decode())
            detections.append(detection)
        return dict(detections=detections)

    def draw(self, image: np.ndarray, sample) -> np.ndarray:
        """Boxes, names, scores and masks."""
        self._visualizer.add_datasample(
            'image', image, sample, draw_gt=False, pred_score_thr=self.score
        )
        return self._visualizer.get_image()


class Segmentation(Result):
    """Class maps of mmseg."""

    def __init__(self, classes: list[str], score: float) -> None:
        super().__init__(classes, score)
        self._visualizer = _visualizer('SegLocalVisualizer')
        self._visualizer.dataset_meta = dict(
            classes=classes, palette=_palette(len(classes))
        )

    def mask(self, sample) -> np.ndarray:
        """Class of each pixel, (H, W), uint8 or uint16."""
        pixels = sample.pred_sem_seg.data[0].numpy()
        return pixels.astype(np.uint8 if len(self.classes) <= 256 else 'u2')

    def describe(self, sample) -> dict:
        """Share of the picture of each class that occurs, largest first."""
        counts = np.bincount(self.mask(sample).ravel())
        shares = counts / counts.sum()
        order = [i for i in np.argsort(-shares).tolist() if shares[i]]
        return dict(
            classes=[
                dict(label=i, name=self.classes[i], share=float(shares[i]))
                for i in order
            ]
        )

    def draw(self, image: np.ndarray, sample) -> np.ndarray:
        """Colours and names of the classes over the picture."""
        # As an array: numpy takes a tensor of one pixel for an index.
        shown = sample.new()
        shown.pred_sem_seg = PixelData(data=sample.pred_sem_seg.data.numpy())
        self._visualizer.add_datasample('image', image, shown, draw_gt=False)
        return self._visualizer.get_image()


class Classification(Result):
    """Scores of mmpretrain."""

    def __init__(self, classes: list[str], score: float) -> None:
        super().__init__(classes, score)
        self._visualizer = _visualizer('UniversalVisualizer')

    def describe(self, sample) -> dict:
        """The best five classes."""
        scores, labels = sample.pred_score.topk(min(TOP, len(self.classes)))
        return dict(
            classes=[
                dict(label=label, name=self.classes[label], score=score)
                for score, label in zip(
                    scores.tolist(), labels.tolist(), strict=True
                )
            ]
        )

    def draw(self, image: np.ndarray, sample) -> np.ndarray:
        """The best class and its score beside the picture."""
        self._visualizer.visualize_cls(
            image, sample, classes=self.classes, draw_gt=False
        )
        return self._visualizer.get_image()


RESULTS = dict(mmdet=Detections, mmseg=Segmentation, mmpretrain=Classification)


def _palette(number: int) -> list[list[int]]:
    """Colours that stay the same from picture to picture."""
    colours = np.random.RandomState(0).randint(0, 255, (number, 3))
    return colours.tolist()


def _visualizer(kind: str):
    """A host's visualizer; mmengine wants each to have a name."""
    return VISUALIZERS.build(dict(type=kind, name='image_demo'))
