"""What is noted during a test, for its record."""

from collections import Counter
from statistics import median
from time import perf_counter

import torch
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.logging import print_log
from torch import Tensor, nn

WARM_UP = 5  # images at the start whose times don't count


class ResultHook(Hook):
    """Keeps what mmengine's test loop throws away.

    - the checkpoint's ``meta``;
    - the values of each class, which the hosts' metrics print only;
    - the time of the model's forward, decoding of its predictions included.

    Attributes:
        meta (dict): the loaded checkpoint's, empty if it has none.
        per_class (dict): values in percent by class, by 'box_ap', 'mask_ap',
            'iou' and 'acc', as far as the metrics have them.
    """

    def __init__(self) -> None:
        self.meta: dict = {}
        self.per_class: dict[str, dict[str, float]] = {}
        self._times: list[float] = []
        self._shapes: Counter = Counter()
        self._device: torch.device | None = None
        self._began = 0.0
        self._handles: list = []

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Keeps what the file says of its run.

        Args:
            runner (Runner): the runner of the test.
            checkpoint (dict): the file's content.
        """
        self.meta = checkpoint.get('meta') or {}

    def before_test(self, runner) -> None:
        """Begins to watch the metrics and the model.

        Args:
            runner (Runner): the runner of the test.
        """
        for metric in runner.test_loop.evaluator.metrics:
            kinds = {kind.__name__ for kind in type(metric).__mro__}
            if 'CocoMetric' in kinds:
                _keep_average_precision(metric, self.per_class)
            elif 'IoUMetric' in kinds:
                _keep_intersection(metric, self.per_class)
        model = runner.model
        while hasattr(model, 'module'):
            if 'TTAModel' in type(model).__name__:
                return  # several passes for an image: no latency
            model = model.module
        self._device = next(model.parameters()).device
        self._handles = [
            model.register_forward_pre_hook(self._start, with_kwargs=True),
            model.register_forward_hook(self._stop, with_kwargs=True),
        ]

    def after_test(self, runner) -> None:
        """Leaves the model as it was.

        Args:
            runner (Runner): the runner of the test.
        """
        for handle in self._handles:
            handle.remove()

    def _start(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        self._wait()
        self._began = perf_counter()

    def _stop(
        self, module: nn.Module, args: tuple, kwargs: dict, output
    ) -> None:
        self._wait()
        seconds = perf_counter() - self._began
        images = kwargs.get('inputs', args[0] if args else None)
        if isinstance(images, Tensor):
            self._times += [seconds / len(images)] * len(images)
            self._shapes[tuple(images.shape[-2:])] += len(images)

    def _wait(self) -> None:
        if self._device.type == 'cuda':
            torch.cuda.synchronize(self._device)

    def latency(self) -> dict | None:
        """The time of an image.

        Returns:
            dict | None: 'ms' (median over the images), 'images' (how many,
            without those that warmed up), 'input_shape' ([height, width] of
            most of them, padding included) and the 'device' in words. None
            if nothing was timed.
        """
        if not self._times:
            return None
        times = self._times[min(WARM_UP, len(self._times) // 2) :]
        return dict(
            ms=1000 * median(times),
            images=len(times),
            input_shape=list(self._shapes.most_common(1)[0][0]),
            device=(
                torch.cuda.get_device_name(self._device)
                if self._device.type == 'cuda'
                else f'{self._device.type}, {torch.get_num_threads()} threads'
            ),
        )


def _keep_average_precision(metric: BaseMetric, kept: dict) -> None:
    """Lets mmdet's metric hand over its values by class.

    Its ``classwise`` gives boxes and masks one name, so that the masks'
    values replace the boxes': they are computed one after the other. The
    metrics stay as the config wants them.
    """
    compute = metric.compute_metrics
    wanted, classwise = metric.metrics, metric.classwise
    names = dict(bbox='box_ap', segm='mask_ap')
    suffix = '_precision'

    def compute_one_by_one(results: list) -> dict:
        found = {}
        try:
            for kind in wanted:
                metric.metrics, metric.classwise = [kind], True
                part = compute(results)
                by_class = {k for k in part if k.endswith(suffix)}
                if kind in names:
                    kept[names[kind]] = {
                        key.removesuffix(suffix): 100 * float(part[key])
                        for key in sorted(by_class)
                    }
                found.update(
                    (key, value)
                    for key, value in part.items()
                    if classwise or key not in by_class
                )
        except Exception as error:  # the metrics matter more
            kept.clear()
            print_log(f'no values by class: {error!r}', logger='current')
            metric.metrics, metric.classwise = wanted, classwise
            return compute(results)
        finally:
            metric.metrics, metric.classwise = wanted, classwise
        return found

    metric.compute_metrics = compute_one_by_one


def _keep_intersection(metric: BaseMetric, kept: dict) -> None:
    """Keeps the values by class that mmseg's metric takes its means of."""
    split = metric.total_area_to_metrics

    def split_and_keep(*areas) -> dict:
        found = split(*areas)
        classes = metric.dataset_meta['classes']
        for key, values in found.items():
            if len(values.shape) == 1 and len(values) == len(classes):
                kept[key.lower()] = {
                    name: 100 * float(value)
                    for name, value in zip(classes, values, strict=True)
                }
        return found

    metric.total_area_to_metrics = split_and_keep
