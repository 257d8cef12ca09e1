"""Metrics that only store predictions."""

from collections.abc import Sequence

from mmengine.evaluator import DumpResults
from mmengine.registry import METRICS


@METRICS.register_module()
class DumpSegResults(DumpResults):
    """Writes the label maps of a segmentor to a pickle file.

    Differs from mmengine's ``DumpResults`` in what it leaves out: the scores
    of all classes at every pixel (about 200 MB for an ADE20K image) and the
    ground truth.

    Args:
        out_file_path (str): file to write; must end with '.pkl' or
            '.pickle'.
        collect_device (str): device on which results of several processes
            are gathered, 'cpu' or 'gpu'. Defaults to 'cpu'.
        collect_dir (str, optional): folder through which they are gathered
            on 'cpu'. Defaults to None.
    """

    def process(self, data_batch: dict, data_samples: Sequence[dict]) -> None:
        """Keeps the label maps of one batch."""
        dropped = ('seg_logits', 'gt_sem_seg')
        super().process(
            data_batch,
            [
                {k: v for k, v in sample.items() if k not in dropped}
                for sample in data_samples
            ],
        )
